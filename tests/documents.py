"""Documents that show the output of programs: run them in order and return the document with the actual output.

- A ``py`` block that starts with ``# name.py`` is a file from there on.
- A ``console`` block is a session in the folder with these files; see ``tests.console``.
- A ``py run`` block is executed on torch; the ``text`` block right after it shows what it prints, and the exception
  that ends it.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import warnings
from typing import TYPE_CHECKING

from tests.console import replay
from tests.fixture_reader import fenced_blocks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.fixture_reader import Block

_FILE_NAME = re.compile(r"# (\w+\.py)\n")


def as_it_is(document: str, folder: Path) -> str:
    """``document`` with the current output of its sessions and programs."""
    lines = document.split("\n")
    for block, text in reversed(list(_replaced(document, folder))):
        lines[block.line : block.line + block.text.count("\n")] = text.rstrip("\n").split("\n")
    return "\n".join(lines)


def _replaced(document: str, folder: Path) -> Iterator[tuple[Block, str]]:
    """The blocks that show output, each with its new text."""
    program: Block | None = None
    for block in fenced_blocks(document):
        named = _FILE_NAME.match(block.text)
        if block.language == "py" and "run" in block.words:
            program = block
        elif block.language == "py" and named:
            (folder / named[1]).write_text(block.text, encoding="utf-8")
        elif block.language == "console":
            yield block, replay(block.text, folder)
        elif block.language == "text" and program is not None:
            yield block, executed(program.text, folder)
        if block is not program:
            program = None


def executed(program: str, folder: Path) -> str:
    """What ``program`` prints in ``folder``, and the exception that it ends with."""
    output = io.StringIO()
    with _importing_from(folder), contextlib.redirect_stdout(output), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(program, "<document>", "exec"), {"__name__": "__main__"})
        except Exception as error:  # noqa: BLE001  (the document shows it)
            print(f"{type(error).__name__}: {error}")
    return output.getvalue()


@contextlib.contextmanager
def _importing_from(folder: Path) -> Iterator[None]:
    """Let programs import files of ``folder`` as they are now."""
    before, write_bytecode = os.getcwd(), sys.dont_write_bytecode
    known = set(sys.modules)
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        os.chdir(before)
        sys.path.remove(str(folder))
        sys.dont_write_bytecode = write_bytecode
        for name in set(sys.modules) - known:
            if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(folder)):
                del sys.modules[name]
