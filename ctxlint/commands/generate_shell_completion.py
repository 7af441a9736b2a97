"""``ctxlint generate-shell-completion``: a script that completes commands, options, rules and paths in a shell.

The scripts are created by shtab from the parsers of the commands.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ctxlint.commands import COMMANDS, module_of
from ctxlint.commands.argument_parser import Parser
from ctxlint.commands.arguments import add_options
from ctxlint.config.options import BY_KEY
from ctxlint.config.project_files import ConfigurationError
from ctxlint.rule_names import rule_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SHELLS = ("bash", "fish", "zsh")

_SUMMARIES = {
    "check": "lint files and folders",
    "clean": "remove caches",
    "explain": "show the contract of the Functions of a file",
    "config": "list or describe the options of the configuration",
    "generate-shell-completion": "print a completion script",
    "help": "print the help of a command",
    "rule": "list the rules, or explain one",
    "server": "run the language server",
}
_FOLDERS = ("cache_dir",)
_FILES = ("paths", "config", "baseline", "write_baseline", "output_file", "stdin_filename", "targets")
_SELECTORS = ("select", "ignore", "extend_select", "extend_ignore", "fixable", "extend_fixable", "unfixable", "rule")


def run(arguments: Sequence[str]) -> int:
    """Print the script for one shell."""
    options = parser().parse_args(arguments)
    try:
        import shtab
    except ImportError:
        raise ConfigurationError('completion needs shtab; run `pip install "ctxlint[completion]"`') from None
    print(shtab.complete(everything(), options.shell))
    return 0


def parser() -> Parser:
    """The parser of ``ctxlint generate-shell-completion``."""
    made = Parser(
        prog="ctxlint generate-shell-completion",
        description="Print a script that completes commands, options, rules and paths.",
    )
    made.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))
    return made


def everything() -> argparse.ArgumentParser:
    """One parser for all commands, only for introspection: it has hints for shtab and parses nothing."""
    made = argparse.ArgumentParser(prog="ctxlint")
    add_options(made)  # without a command, `check` is the default; bash and zsh offer paths if no command matches
    _hinted(made)
    commands = made.add_subparsers(metavar="COMMAND")
    for name in COMMANDS:
        parent = _hinted(import_module(module_of(name)).parser())
        commands.add_parser(name, parents=[parent], add_help=False, help=_SUMMARIES[name])
    return made


def _hinted(described: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """The same parser, whose actions describe their possible values."""
    import shtab

    names = rule_names()
    for action in _actions(described):
        hinted: Any = action
        if action.dest in _FILES:
            hinted.complete = shtab.FILE
        elif action.dest in _FOLDERS:
            hinted.complete = shtab.DIRECTORY
        elif action.dest in _SELECTORS:
            action.choices = [*names, *names.values()]
        elif action.dest == "command":
            action.choices = list(COMMANDS)
        elif action.dest == "option":
            action.choices = list(BY_KEY)
    return described


def _actions(described: argparse.ArgumentParser) -> Iterable[argparse.Action]:
    return described._actions  # noqa: SLF001  (argparse has no other way to ask, and shtab asks in this way, too)
