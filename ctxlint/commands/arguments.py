"""The options of ``ctxlint check``: the parser and its help. Their meaning is in ``ctxlint.commands.overrides``."""

from __future__ import annotations

import argparse
import os
from typing import Any

from ctxlint.commands.argument_parser import Parser
from ctxlint.config.settings import FORMATS
from ctxlint.version import __version__

STDIN = "-"
"""The path that means standard input."""

_DESCRIPTION = """\
Check custom torch.autograd.Function classes for violations of autograd's contract, and fix them.
ctxlint reads source code only; it never imports it.
"""

_EPILOG = """\
exit codes:
  0    no findings (with --fix: none left)
  1    findings, unreadable files, or stale baseline entries
  2    invalid option or configuration, or an internal error
  130  interrupted

other commands:
  ctxlint help [COMMAND]   print the help of a command
  ctxlint rule [CODE]      list all rules, or explain one; --all explains all
  ctxlint explain FILE[::CLASS]
                           show the contract of each Function: inputs, gradients, outputs, saved state
  ctxlint config [KEY]     list the options of [tool.ctxlint], or describe one
  ctxlint server           run the language server (needs `pip install "ctxlint[lsp]"`)
  ctxlint clean [PATH]     remove caches
  ctxlint generate-shell-completion bash|fish|zsh
                           print a shell completion script

environment variables:
  CTXLINT_CONFIG, CTXLINT_CACHE_DIR, CTXLINT_NO_CACHE,
  CTXLINT_OUTPUT_FORMAT, CTXLINT_OUTPUT_FILE   defaults for the options of the same names
  CTXLINT_CACHE_KEY                            the secret that authenticates cache entries (default: one per user)
  NO_COLOR, FORCE_COLOR                        disable or force colours
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
        help="files and folders; - is standard input; @FILE reads arguments from a file, one per line (default: .)",
    )
    add_options(made)
    return made


def add_options(made: argparse.ArgumentParser) -> None:
    """Add all options of ``ctxlint check``, without paths."""
    made.add_argument("-V", "--version", action="version", version=f"ctxlint {__version__}")
    _add_rules(made.add_argument_group("rules"))
    _add_fixes(made.add_argument_group("fixes"))
    _add_files(made.add_argument_group("files"))
    _add_baseline(made.add_argument_group("baseline"))
    _add_output(made.add_argument_group("output"))
    _add_configuration(made.add_argument_group("configuration"))


def _formatter(prog: str) -> argparse.HelpFormatter:
    """A formatter with a fixed width; argparse would import ``shutil`` in every run to find it."""
    try:
        width = int(os.environ.get("COLUMNS") or os.get_terminal_size().columns)
    except (OSError, ValueError):
        width = 80
    return argparse.RawDescriptionHelpFormatter(prog, width=min(width, 120) - 2)


def _add_rules(group: Any) -> None:
    def add(name: str, text: str) -> None:
        group.add_argument(name, type=_words, action="extend", metavar="RULES", help=text)

    add("--select", "rules to enable, comma-separated: codes, prefixes of codes, names, or ALL")
    add("--ignore", "rules to disable; the most specific of --select and --ignore takes precedence")
    add("--extend-select", "rules to enable in addition to those already enabled")
    add("--extend-ignore", "rules to disable in addition to --ignore")
    for name, text in (
        ("--per-file-ignores", "rules to disable in matching files, such as tests/*:CTX2, comma-separated"),
        ("--extend-per-file-ignores", "the same, in addition to --per-file-ignores and the configuration"),
    ):
        group.add_argument(name, type=_words, action="extend", metavar="GLOB:RULE", help=text)
    group.add_argument(
        "--ignore-noqa",
        "--disable-noqa",
        action="store_true",
        default=None,
        help="also report findings that # noqa comments suppress",
    )
    group.add_argument(
        "--add-noqa",
        nargs="?",
        const="",
        metavar="REASON",
        help="suppress all current findings with # noqa comments, followed by REASON if given (--add-noqa=REASON)",
    )
    group.add_argument(
        "--target-torch",
        type=_torch,
        metavar="VERSIONS",
        help="torch versions that the code supports, such as '>=2.1,<2.7'; 2.4 means '>=2.4'",
    )


def _add_fixes(group: Any) -> None:
    switch = argparse.BooleanOptionalAction
    group.add_argument("--fix", action=switch, help="apply safe fixes")
    group.add_argument("--unsafe-fixes", action=switch, help="also apply unsafe fixes, which may change behaviour")
    group.add_argument(
        "--fix-only", action=switch, help="apply fixes without reporting the remaining findings; implies --fix"
    )
    group.add_argument(
        "--diff", action="store_true", help="print the changes of --fix as a diff, without writing files"
    )
    group.add_argument("--show-fixes", action=switch, help="list the applied fixes")
    group.add_argument("--exit-non-zero-on-fix", action="store_true", help="exit with 1 if any fix was applied")
    for name, text in (
        ("--fixable", "rules whose fixes may be applied (default: all)"),
        ("--extend-fixable", "rules whose fixes may be applied, in addition to --fixable"),
        ("--unfixable", "rules whose fixes are not applied"),
    ):
        group.add_argument(name, type=_words, action="extend", metavar="RULES", help=text)


def _add_files(group: Any) -> None:
    switch = argparse.BooleanOptionalAction
    group.add_argument(
        "--exclude",
        type=_words,
        action="extend",
        metavar="GLOBS",
        help="paths to exclude (replaces the default list)",
    )
    group.add_argument(
        "--extend-exclude",
        type=_words,
        action="extend",
        metavar="GLOBS",
        help="paths to exclude in addition to --exclude",
    )
    group.add_argument("--force-exclude", action=switch, help="apply excludes to paths on the command line, too")
    group.add_argument("--respect-gitignore", action=switch, help="skip files that .gitignore excludes (default: yes)")
    group.add_argument(
        "--stdin-filename", "--stdin-display-name", metavar="PATH", help="the file name to use for standard input"
    )
    group.add_argument("-w", "--watch", action="store_true", help="check again whenever a file changes, until Ctrl-C")
    group.add_argument("--show-files", action="store_true", help="list the files that would be checked, and exit")
    group.add_argument(
        "-j", "--jobs", type=_jobs, default=0, metavar="N", help="maximum number of processes (default: auto)"
    )
    group.add_argument("-n", "--no-cache", action="store_true", help="disable the cache")
    group.add_argument(
        "--profile", action="store_true", help="print the time of each stage to standard error; uses one process"
    )
    group.add_argument(
        "--cache-dir", metavar="PATH", help="the cache folder (default: ctxlint in the user's cache folder)"
    )


def _add_baseline(group: Any) -> None:
    group.add_argument(
        "--baseline",
        metavar="PATH",
        help="baseline file of findings not to report (default: .ctxlint-baseline.json, if it exists)",
    )
    action = group.add_mutually_exclusive_group()
    action.add_argument("--no-baseline", action="store_true", help="ignore the baseline")
    action.add_argument(
        "--write-baseline",
        nargs="?",
        const="",
        metavar="PATH",
        help="write all current findings to the baseline file, or to PATH (--write-baseline=PATH)",
    )
    action.add_argument("--prune-baseline", action="store_true", help="remove stale entries from the baseline")
    group.add_argument(
        "--pass-on-unpruned-baseline",
        action="store_true",
        help="do not exit with 1 because of stale baseline entries",
    )


def _add_output(group: Any) -> None:
    group.add_argument(
        "--output-format", choices=FORMATS, metavar="FORMAT", help=f"{', '.join(FORMATS)} (default: full)"
    )
    group.add_argument(
        "-o", "--output-file", metavar="PATH", help="write findings to this file instead of standard output"
    )
    group.add_argument("--statistics", action="store_true", help="count findings by rule instead of listing them")
    group.add_argument(
        "--count",
        action="store_true",
        help="print the number of findings; with a machine-readable format, to standard error",
    )
    group.add_argument("-e", "--exit-zero", action="store_true", help="exit with 0 even if there are findings")
    volume = group.add_mutually_exclusive_group()
    volume.add_argument("-v", "--verbose", action="store_true", help="report skipped files and why they were skipped")
    volume.add_argument("-q", "--quiet", action="store_true", help="print only findings")
    volume.add_argument("-s", "--silent", action="store_true", help="print nothing")
    group.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="when to use colours (default: auto, on a terminal)",
    )


def _add_configuration(group: Any) -> None:
    group.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="FILE|KEY=VALUE",
        help="use this configuration file, or set one option, such as 'target-torch = \">=2.4\"'",
    )
    group.add_argument("--isolated", action="store_true", help="ignore all configuration files")
    group.add_argument("--show-settings", action="store_true", help="print the settings for the first path, and exit")


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
    """A number of processes; 0 means ``auto``."""
    if text == "auto":
        return 0
    if not text.isdecimal() or len(text) > 9 or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a positive integer or `auto`, got {text}")
    return int(text)


def reads_stdin(options: argparse.Namespace) -> bool:
    """Whether the text comes from standard input."""
    return options.paths == [STDIN] or (not options.paths and options.stdin_filename is not None)
