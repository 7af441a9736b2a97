"""Conversion of the options of ``ctxlint check`` and the environment to the configuration."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from ctxlint.commands import environment
from ctxlint.commands.arguments import STDIN, parser, reads_stdin
from ctxlint.config.configuration import Configuration
from ctxlint.config.settings import Selection, anchored, per_file_ignores

if TYPE_CHECKING:
    from argparse import Namespace

    from ctxlint.commands.argument_parser import Parser

_VALUE_AFTER_EQUALS = ("--add-noqa", "--write-baseline")
"""Options whose value may be omitted: without ``=``, the next word is a path, not the value."""


def parse(arguments: list[str]) -> tuple[Namespace, Configuration]:
    """The options, and the configuration that they select. Exits with 2 for an invalid option."""
    options_parser = parser()
    at = arguments.index("--") if "--" in arguments else len(arguments)
    words = [f"{each}=" if each in _VALUE_AFTER_EQUALS else each for each in arguments[:at]]
    options, rest = options_parser.parse_known_args(words)
    if any(each.startswith("-") and each != STDIN for each in rest):
        options_parser.refuse(rest)
    options.paths += [*rest, *arguments[at + 1 :]]  # paths may be between options, and are all that follows `--`
    _check_combination(options_parser, options)
    try:
        overrides = _overrides(options)
    except ValueError as error:
        options_parser.error(str(error))
    files = [each for each in options.config if os.path.isfile(each)]
    inline = [each for each in options.config if each not in files]
    variable = environment.value("CONFIG")
    if variable and not files and not options.isolated:
        if not os.path.isfile(variable):
            options_parser.error(f"CTXLINT_CONFIG: no such file: {variable}")
        files = [variable]
    if len(files) > 1:
        options_parser.error("--config: only one configuration file is allowed")
    if files and options.isolated:
        options_parser.error("--config FILE cannot be combined with --isolated")
    for each in inline:
        if "=" not in each:
            options_parser.error(f"--config: no such file: {each}")
    file = files[0] if files else None
    return options, Configuration(overrides, isolated=options.isolated, file=file, inline=tuple(inline))


def _check_combination(options_parser: Parser, options: Namespace) -> None:
    """Exit with 2 for options that cannot be combined."""
    if STDIN in options.paths and not reads_stdin(options):
        options_parser.error("`-` (standard input) cannot be combined with other paths")
    if options.watch and (reads_stdin(options) or options.add_noqa is not None):
        options_parser.error("--watch cannot be combined with standard input or --add-noqa")
    if options.add_noqa is not None and reads_stdin(options):
        options_parser.error("--add-noqa cannot be combined with standard input")
    if options.add_noqa is not None and (options.fix or options.fix_only or options.diff):
        options_parser.error("--add-noqa cannot be combined with --fix, --fix-only or --diff")
    if (options.write_baseline is not None or options.prune_baseline) and (reads_stdin(options) or options.diff):
        options_parser.error("a baseline cannot be written with standard input or --diff")
    if options.diff and options.output_file is not None:
        options_parser.error("--output-file is for the report, and cannot be combined with --diff, which prints none")
    if options.statistics and options.diff:
        options_parser.error("--statistics cannot be combined with --diff")
    if options.statistics and options.output_format not in (None, "json"):
        from ctxlint.report import FOR_PEOPLE

        if options.output_format not in FOR_PEOPLE:
            options_parser.error(f"--statistics supports the formats full and json, not {options.output_format}")
    if options.add_noqa is not None and re.search(r"[\r\n]|#\s*(?:noqa|\w+\s*[:=])", options.add_noqa):
        options_parser.error("--add-noqa: the reason must be one line without a comment such as # noqa or # ctxlint:")


_PLAIN = (
    "fix",
    "unsafe_fixes",
    "show_fixes",
    "force_exclude",
    "respect_gitignore",
    "ignore_noqa",
    "target_torch",
)


def _overrides(options: Namespace) -> dict[str, Any]:
    """The attributes of Settings that the command line and the environment set.

    Raises:
        ValueError: A value is invalid.
    """
    here = os.getcwd()
    values: dict[str, Any] = {name: getattr(options, name) for name in _PLAIN if getattr(options, name) is not None}
    values["command_line"] = Selection(
        _checked(options, "select"), _checked(options, "extend_select") or (), _refused(options)
    )
    for name in ("fixable", "extend_fixable", "unfixable"):
        if getattr(options, name) is not None:
            values[name] = _checked(options, name)
    for name in ("exclude", "extend_exclude"):
        if getattr(options, name) is not None:
            values[name] = tuple(anchored(glob, here) for glob in getattr(options, name))
    for name in ("per_file_ignores", "extend_per_file_ignores"):
        if getattr(options, name) is not None:
            values[name] = per_file_ignores(_pairs(options, name), here)
    if options.fix_only or options.diff:
        values["fix"] = True
    cache_dir = options.cache_dir or environment.value("CACHE_DIR")
    if cache_dir:
        values["cache_dir"] = os.path.abspath(os.path.expanduser(cache_dir))
    if options.no_cache or environment.switched_on("NO_CACHE"):
        values["no_cache"] = True
    output_format = options.output_format or environment.value("OUTPUT_FORMAT")
    if output_format:
        values["output_format"] = _format(output_format)
    return values


def _refused(options: Namespace) -> tuple[str, ...]:
    return (*(_checked(options, "ignore") or ()), *(_checked(options, "extend_ignore") or ()))


def _checked(options: Namespace, name: str) -> tuple[str, ...] | None:
    """The selectors of one option, checked."""
    selectors = getattr(options, name)
    if selectors is None:
        return None
    if not selectors and name in ("select", "fixable"):  # an empty shell variable must not disable rules
        raise ValueError(f"--{name}: no rule given")
    from ctxlint.config.options import check_selectors

    try:
        check_selectors(selectors)
    except ValueError as error:
        raise ValueError(f"--{name.replace('_', '-')}: {error}") from None
    return tuple(selectors)


def _pairs(options: Namespace, name: str) -> list[tuple[str, tuple[str, ...]]]:
    from ctxlint.config.options import check_selectors

    option = f"--{name.replace('_', '-')}"
    pairs: list[tuple[str, tuple[str, ...]]] = []
    for word in getattr(options, name):
        glob, colon, selector = word.rpartition(":")
        if not colon or not glob:
            raise ValueError(f"{option}: expected GLOB:RULE, got {word}")
        try:
            check_selectors([selector.strip()])
        except ValueError as error:
            raise ValueError(f"{option}: {error}") from None
        pairs.append((glob.strip(), (selector.strip(),)))
    return pairs


def _format(name: str) -> str:
    from ctxlint.config.options import check_format

    try:
        return check_format(name)
    except ValueError as error:
        raise ValueError(f"CTXLINT_OUTPUT_FORMAT: {error}") from None
