"""The options of ``ctxlint check``: the parser and its help. What they mean is in ``ctxlint.commands.overrides``."""

from __future__ import annotations

import argparse
import os
from typing import Any

from ctxlint import __version__
from ctxlint.commands.argument_parser import Parser
from ctxlint.config.settings import FORMATS

STDIN = "-"
"""The path that means standard input."""

_DESCRIPTION = """\
Find where custom torch.autograd.Function classes break the contract that autograd expects of them, and mend them.
The code is read, never imported.
"""

_EPILOG = """\
exit codes:
  0    nothing found (or nothing left, after --fix)
  1    something found, a file could not be read, or the baseline lists what is gone
  2    a wrong option, a wrong configuration, or a bug in ctxlint
  130  interrupted

other commands:
  ctxlint help [COMMAND]   print the help of a command
  ctxlint rule [CODE]    list all rules, or explain one; --all explains every one
  ctxlint explain FILE[::CLASS]   show what autograd is promised by the Functions of a file
  ctxlint config [KEY]   list the options of [tool.ctxlint], or describe one
  ctxlint server         the language server for editors (needs `pip install "ctxlint[lsp]"`)
  ctxlint clean [PATH]   remove caches
  ctxlint generate-shell-completion bash|fish|zsh

environment:
  CTXLINT_CONFIG, CTXLINT_CACHE_DIR, CTXLINT_NO_CACHE,
  CTXLINT_OUTPUT_FORMAT, CTXLINT_OUTPUT_FILE   as the options of the same names
  CTXLINT_CACHE_KEY                            a secret that seals the cache, in place of the user's own
  NO_COLOR, FORCE_COLOR                        never or always use colours
"""


def parser() -> Parser:
    """The parser of ``ctxlint check``."""
    made = Parser(
        prog="ctxlint",
        usage="ctxlint [check] [OPTION ...] [PATH ...]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=_formatter,
    )
    made.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        help="files and folders, - for standard input, @FILE for arguments from a file, one a line (default: .)",
    )
    add_options(made)
    return made


def add_options(made: argparse.ArgumentParser) -> None:
    """Add all that ``ctxlint check`` takes besides paths."""
    made.add_argument("-V", "--version", action="version", version=f"ctxlint {__version__}")
    _add_rules(made.add_argument_group("rules"))
    _add_fixes(made.add_argument_group("fixes"))
    _add_files(made.add_argument_group("files"))
    _add_baseline(made.add_argument_group("baseline"))
    _add_output(made.add_argument_group("output"))
    _add_configuration(made.add_argument_group("configuration"))


def _formatter(prog: str) -> argparse.HelpFormatter:
    """A formatter that knows its width; argparse would import ``shutil`` to ask for it, in every run."""
    try:
        width = int(os.environ.get("COLUMNS") or os.get_terminal_size().columns)
    except (OSError, ValueError):
        width = 80
    return argparse.RawDescriptionHelpFormatter(prog, width=min(width, 120) - 2)


def _add_rules(group: Any) -> None:
    def add(name: str, text: str) -> None:
        group.add_argument(name, type=_words, action="extend", metavar="RULES", help=text)

    add("--select", "the rules to run: codes, beginnings of codes, names, or ALL; comma-separated")
    add("--ignore", "rules not to run; the most specific of --select and --ignore decides")
    add("--extend-select", "rules to enable in addition to those that are on")
    add("--extend-ignore", "rules to ignore in addition to --ignore")
    for name, text in (
        ("--per-file-ignores", "rules not to run in some files, such as tests/*:CTX2; comma-separated"),
        ("--extend-per-file-ignores", "the same, in addition to those of --per-file-ignores or the configuration"),
    ):
        group.add_argument(name, type=_words, action="extend", metavar="GLOB:RULE", help=text)
    group.add_argument(
        "--ignore-noqa",
        "--disable-noqa",
        action="store_true",
        default=None,
        help="report what # noqa comments hide, too",
    )
    group.add_argument(
        "--add-noqa",
        nargs="?",
        const="",
        metavar="REASON",
        help="hide all findings with # noqa comments in their lines, and REASON after them (--add-noqa=REASON)",
    )
    group.add_argument(
        "--target-torch",
        type=_torch,
        metavar="VERSIONS",
        help="the versions of torch that the code has to run on, such as '>=2.1,<2.7'; 2.4 means '>=2.4'",
    )


def _add_fixes(group: Any) -> None:
    switch = argparse.BooleanOptionalAction
    group.add_argument("--fix", action=switch, help="apply safe fixes")
    group.add_argument(
        "--unsafe-fixes", action=switch, help="apply unsafe fixes too; they may change what the code does"
    )
    group.add_argument("--fix-only", action=switch, help="apply fixes and do not report what is left; implies --fix")
    group.add_argument(
        "--diff", action="store_true", help="print what --fix would change as a diff, and change nothing"
    )
    group.add_argument("--show-fixes", action=switch, help="list what was fixed")
    group.add_argument("--exit-non-zero-on-fix", action="store_true", help="exit with 1 when something was fixed")
    for name, text in (
        ("--fixable", "the only rules whose fixes may be applied"),
        ("--extend-fixable", "rules whose fixes may be applied, in addition to --fixable"),
        ("--unfixable", "rules whose fixes may not be applied"),
    ):
        group.add_argument(name, type=_words, action="extend", metavar="RULES", help=text)


def _add_files(group: Any) -> None:
    switch = argparse.BooleanOptionalAction
    group.add_argument(
        "--exclude",
        type=_words,
        action="extend",
        metavar="GLOBS",
        help="files and folders to pass over, in place of the default list",
    )
    group.add_argument(
        "--extend-exclude",
        type=_words,
        action="extend",
        metavar="GLOBS",
        help="files and folders to pass over, on top of --exclude",
    )
    group.add_argument("--force-exclude", action=switch, help="pass over excluded files even when they are named here")
    group.add_argument("--respect-gitignore", action=switch, help="pass over what .gitignore names (default: yes)")
    group.add_argument(
        "--stdin-filename", "--stdin-display-name", metavar="PATH", help="the name of what comes from standard input"
    )
    group.add_argument("-w", "--watch", action="store_true", help="check again whenever a file changes, until Ctrl-C")
    group.add_argument("--show-files", action="store_true", help="list the files that would be read, and stop")
    group.add_argument(
        "-j", "--jobs", type=_jobs, default=0, metavar="N", help="processes to use at most (default: auto)"
    )
    group.add_argument("-n", "--no-cache", action="store_true", help="neither read nor write the cache")
    group.add_argument(
        "--profile", action="store_true", help="say how long each stage took, on standard error; uses one process"
    )
    group.add_argument(
        "--cache-dir", metavar="PATH", help="where the cache is (default: the folder of ctxlint in the user's cache)"
    )


def _add_baseline(group: Any) -> None:
    group.add_argument(
        "--baseline",
        metavar="PATH",
        help="do not report the findings that this file lists (default: .ctxlint-baseline.json, where there is one)",
    )
    action = group.add_mutually_exclusive_group()
    action.add_argument("--no-baseline", action="store_true", help="report all findings")
    action.add_argument(
        "--write-baseline",
        nargs="?",
        const="",
        metavar="PATH",
        help="make what is found now the baseline, or that of another file (--write-baseline=PATH)",
    )
    action.add_argument(
        "--prune-baseline", action="store_true", help="remove findings from the baseline that are not there any more"
    )
    group.add_argument(
        "--pass-on-unpruned-baseline",
        action="store_true",
        help="do not exit with 1 because findings of the baseline are not there any more",
    )


def _add_output(group: Any) -> None:
    group.add_argument(
        "--output-format", choices=FORMATS, metavar="FORMAT", help=f"{', '.join(FORMATS)} (default: full)"
    )
    group.add_argument(
        "-o", "--output-file", metavar="PATH", help="write the findings there instead of to standard output"
    )
    group.add_argument(
        "--statistics", action="store_true", help="count findings by rule instead of listing them; a table, or json"
    )
    group.add_argument(
        "--count",
        action="store_true",
        help="print the number of findings at the end; on standard error beside a format for programs",
    )
    group.add_argument("-e", "--exit-zero", action="store_true", help="exit with 0 even when something was found")
    volume = group.add_mutually_exclusive_group()
    volume.add_argument("-v", "--verbose", action="store_true", help="say what is skipped, and why")
    volume.add_argument("-q", "--quiet", action="store_true", help="print findings and nothing else")
    volume.add_argument("-s", "--silent", action="store_true", help="print nothing")
    group.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="default: auto, on a terminal"
    )


def _add_configuration(group: Any) -> None:
    group.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="FILE|KEY=VALUE",
        help="use this configuration file, or set one option, such as 'target-torch = \">=2.4\"'",
    )
    group.add_argument("--isolated", action="store_true", help="read no configuration file")
    group.add_argument("--show-settings", action="store_true", help="print the settings for the first path, and stop")


def _words(text: str) -> list[str]:
    return [word for word in (part.strip() for part in text.split(",")) if word]


def _torch(text: str) -> str:
    from ctxlint.config.torch_versions import read_target

    try:
        read_target(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _jobs(text: str) -> int:
    """A number of processes; 0 stands for ``auto``."""
    if text == "auto":
        return 0
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, or auto; found {text}")
    return int(text)


def reads_stdin(options: argparse.Namespace) -> bool:
    """Whether the text comes from standard input."""
    return options.paths == [STDIN] or (not options.paths and options.stdin_filename is not None)
