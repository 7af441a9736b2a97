"""``ctxlint help``: the help of ctxlint, or of one command."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ctxlint.commands import COMMANDS, module_of
from ctxlint.commands.argument_parser import Parser
from ctxlint.config.options import nearest

if TYPE_CHECKING:
    from collections.abc import Sequence


def run(arguments: Sequence[str]) -> int:
    """Print the ``--help`` of the command."""
    options_parser = parser()
    command = options_parser.parse_args(arguments).command
    if command not in COMMANDS:
        options_parser.error(f"unknown command `{command}`{nearest(command, COMMANDS)}")
    import_module(module_of(command)).parser().print_help()
    return 0


def parser() -> Parser:
    """The parser of ``ctxlint help``."""
    made = Parser(prog="ctxlint help", description="Print the help of ctxlint, or of one command.")
    made.add_argument("command", nargs="?", default="check", metavar="COMMAND", help="the command (default: check)")
    return made
