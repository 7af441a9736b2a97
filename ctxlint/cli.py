"""The command line: selects the command and its arguments, and computes the exit code.

Nothing heavy is imported here, and each command imports what it needs: ``--version`` and a run over files without
Functions stay close to the cost of starting Python.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from ctxlint.commands import COMMANDS, module_of
from ctxlint.search_path import leave_current_folder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

_GLOBAL = ("--config", "--isolated", "--color", "-v", "--verbose", "-q", "--quiet", "-s", "--silent")
"""Options that may precede any command; commands that have no use for them ignore them."""

INTERRUPTED = 130
FAILED = 2


def program() -> NoReturn:
    """The entry point of the script ``ctxlint``: ``main``, in a process that ends without freeing its objects."""
    gc.disable()
    leave_current_folder()  # PYTHONPATH may name it
    code = main()
    sys.stderr.flush()
    os._exit(code)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ctxlint with ``arguments`` (``sys.argv`` if None) and return the exit code.

    0: no findings; 1: findings, or a file that cannot be read; 2: an invalid option or configuration, or a bug; 130:
    interrupted.

    Raises:
        SystemExit: An option is invalid, as in argparse.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    _open_streams()
    try:
        code = _print_version() if words in (["--version"], ["-V"]) else _run(words)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader has closed the pipe, as in `ctxlint | head`
        _abandon_output()
        return 1
    except OSError as error:  # a full disk under the output, a deleted current folder
        _abandon_output()
        _print_error(f"ctxlint: error: {error.strerror or error}")
        return FAILED
    return code


def _open_streams() -> None:
    """Replace each stream that the caller has closed (`>&-`), for which Python has None, by an empty one."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  (for good)


def _abandon_output() -> None:
    """Discard the rest of the output: otherwise Python would report another error when it closes the stream."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_error(message: str) -> None:
    from ctxlint.commands.output import say

    say(message)


def _print_version() -> int:
    from ctxlint.version import __version__

    print(f"ctxlint {__version__}")
    return 0


def _run(arguments: list[str]) -> int:
    from ctxlint.config.project_files import ConfigurationError

    try:
        command, rest = split_command(with_files(arguments))
        module = import_module(module_of(command))
        code: int = module.run(rest)
    except ConfigurationError as error:
        _print_error(f"ctxlint: error: {error}")
        return FAILED
    except (OSError, KeyboardInterrupt):
        raise
    except Exception as error:  # noqa: BLE001  (people get a message; a traceback says nothing to them)
        from ctxlint.result import describe

        _print_error(describe("ctxlint", error))
        _print_error("This is a bug in ctxlint; report it.")
        return FAILED
    return code


def with_files(arguments: list[str]) -> list[str]:
    """``arguments`` with each ``@FILE``, up to ``--``, replaced by the lines of FILE.

    Raises:
        ConfigurationError: A file cannot be read.
    """
    expanded: list[str] = []
    for at, each in enumerate(arguments):
        if each == "--":
            return [*expanded, *arguments[at:]]
        expanded.extend(_lines_of(each[1:]) if each.startswith("@") else [each])
    return expanded


def _lines_of(path: str) -> list[str]:
    from ctxlint.config.project_files import ConfigurationError
    from ctxlint.source.formats import Malformed, read_text
    from ctxlint.source.reading import MOST_BYTES, Unreadable

    try:
        return read_text(path, MOST_BYTES).splitlines()
    except (Unreadable, Malformed) as error:
        raise ConfigurationError(f"@{path}: {error}") from None


def split_command(arguments: list[str]) -> tuple[str, list[str]]:
    """The command, and the arguments without its name.

    The command is the first word that is not an option, if it is one of ``COMMANDS``; otherwise it is ``check``, so
    that ``ctxlint file.py`` works. A file with the name of a command is written ``./rule``.

    Raises:
        ConfigurationError: The first word is not a path, and similar to a command.
    """
    if arguments and arguments[0] in COMMANDS:
        return arguments[0], arguments[1:]
    if any(each in COMMANDS for each in arguments):
        at = _first_word(arguments)
        if at < len(arguments) and arguments[at] in COMMANDS:
            return arguments[at], [*_options_for(arguments[at], arguments[:at]), *arguments[at + 1 :]]
    if (
        arguments
        and arguments[0][:1] != "-"
        and arguments[0].replace("-", "").isalpha()
        and not os.path.lexists(arguments[0])
    ):
        _check_spelling(arguments[0])
    return "check", arguments


def _first_word(arguments: list[str]) -> int:
    """The index of the first word that is neither an option nor the value of one."""
    from ctxlint.commands.arguments import parser

    known = parser().options
    at = 0
    while at < len(arguments) and arguments[at].startswith("-") and arguments[at] not in ("-", "--"):
        takes_value = arguments[at] in known and known[arguments[at]].nargs is None
        at += 2 if takes_value else 1
    return at


def _options_for(command: str, options: list[str]) -> list[str]:
    """The options before a command, without those for all commands that this one does not support."""
    if command == "check":
        return options
    known = import_module(module_of(command)).parser().options
    supported: list[str] = []
    words = iter(options)
    for each in words:
        name, equals, _ = each.partition("=")
        value = [next(words, "")] if name in ("--config", "--color") and not equals else []
        if name in known or name not in _GLOBAL:
            supported += [each, *value]
    return supported


def _check_spelling(word: str) -> None:
    """Raise ConfigurationError if a word is probably a misspelt command."""
    from ctxlint.config.options import nearest_of
    from ctxlint.config.project_files import ConfigurationError

    near = nearest_of(word, (*COMMANDS, "version"))
    if near is not None:
        meant = near if near in COMMANDS else f"--{near}"
        raise ConfigurationError(f"`{word}` is neither a command nor a file; did you mean `ctxlint {meant}`?")
