"""``ctxlint server``: the language server for editors."""

from __future__ import annotations

import gc
import logging
import sys
from typing import TYPE_CHECKING

from ctxlint.commands.argument_parser import Parser

if TYPE_CHECKING:
    from collections.abc import Sequence


def run(arguments: Sequence[str]) -> int:
    """Serve one client on standard input and output until it ends; returns the exit code."""
    options = parser().parse_args(arguments)
    gc.disable()  # for the imports; the worker collects garbage
    try:
        import lsprotocol  # noqa: F401
        import pygls  # noqa: F401
    except ImportError as error:
        print(
            f'ctxlint: error: the language server needs {error.name}; run `pip install "ctxlint[lsp]"`',
            file=sys.stderr,
        )
        return 2
    logging.basicConfig(
        level=logging.DEBUG if options.verbose else logging.ERROR,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    from ctxlint.run.second_process import SecondProcess

    second = SecondProcess()  # before there are threads, and before it would have what it does not need
    import_asyncio()
    if not options.verbose:
        from ctxlint.editor.protocol_types import import_protocol_types

        import_protocol_types()
    from ctxlint.editor import language_server as server

    return server.run(second)


def import_asyncio() -> None:
    """Import asyncio as where Python has no ``ssl``: nothing here is encrypted, and loading OpenSSL takes long."""
    hidden = "ssl" not in sys.modules
    if hidden:
        sys.modules["ssl"] = None  # type: ignore[assignment]
    try:
        import asyncio  # noqa: F401
    finally:
        if hidden:
            del sys.modules["ssl"]


def parser() -> Parser:
    """The parser of ``ctxlint server``."""
    made = Parser(
        prog="ctxlint server",
        description="Run the language server for editors, on standard input and output.",
    )
    made.add_argument("--stdio", action="store_true", help="use standard input and output (always on)")
    made.add_argument("-v", "--verbose", action="store_true", help="log every message to standard error")
    return made
