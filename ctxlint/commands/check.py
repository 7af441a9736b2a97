"""``ctxlint check``: lint, and fix if requested."""

from __future__ import annotations

import gc
import os
import sys
from bisect import bisect_left
from itertools import chain
from typing import TYPE_CHECKING, TextIO

from ctxlint.commands import baseline, environment, overrides, progress
from ctxlint.commands.arguments import STDIN, parser, reads_stdin
from ctxlint.commands.output import is_read_by_people, say, wants_color, write, write_bytes
from ctxlint.config.project_files import ConfigurationError
from ctxlint.profiling import profiled, stage
from ctxlint.result import FileResult, describe, internal_error, io_error, with_finding
from ctxlint.run import interruption
from ctxlint.source.boundary import leaves_project
from ctxlint.source.decode import encode
from ctxlint.source.reading import Unreadable, read_stdin
from ctxlint.source.writing import Unwritable, check_links, rewrite, write_report

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

    from ctxlint.config.configuration import Configuration
    from ctxlint.config.settings import Settings
    from ctxlint.model.index.outside_facts import OutsideFacts
    from ctxlint.report import Report
    from ctxlint.run.in_project import Surroundings
    from ctxlint.source.source import Source
    from ctxlint.suppression.baseline_file import Baseline

__all__ = ["parser", "run"]

CLEAN, FOUND, FAILED = 0, 1, 2


def run(arguments: Sequence[str]) -> int:
    """Run the command and return the exit code.

    Raises:
        ConfigurationError: A configuration is invalid.
        SystemExit: An option is invalid.
    """
    options, configuration = overrides.parse(list(arguments))
    collects = gc.isenabled()
    gc.disable()  # a short run ends before anything needs collecting
    try:
        if options.show_settings:
            return _show_settings(options, configuration)
        if options.show_files:
            return _show_files(options, configuration)
        if options.watch:
            return _watch(list(arguments), options)
        with interruption.noticed():
            if options.add_noqa is not None:
                return _add_noqa(options, configuration)
            return _profiled(options, configuration) if options.profile else _check(options, configuration)
    finally:
        if collects:
            gc.enable()


def _watch(arguments: list[str], options: Namespace) -> int:
    from ctxlint.commands.watch import watch

    end = arguments.index("--") if "--" in arguments else len(arguments)
    once = [each for each in arguments[:end] if each not in ("-w", "--watch")] + arguments[end:]
    return watch(once, options.paths or ["."], lambda: overrides.parse(arguments)[1])


def _profiled(options: Namespace, configuration: Configuration) -> int:
    """Check in this process alone, and print the times to standard error."""
    options.jobs = 1
    with profiled() as clock:
        code = _check(options, configuration)
        for line in clock.table().split("\n"):
            say(line)
    return code


def _check(options: Namespace, configuration: Configuration) -> int:
    if reads_stdin(options):
        settings = configuration.settings_for_file(options.stdin_filename or "")
    else:
        settings = configuration.settings_for(".")
    known = baseline.load(options, settings)
    if reads_stdin(options):
        results = [_lint_stdin(options, settings, configuration, known)]
    else:
        results = _lint_files(options, configuration, known)
        _warn_of_nothing(options, results)
    if options.write_baseline is not None:
        baseline.write(results, options, settings)
        return _report_failures(results)
    _warn(results, options, settings)
    gone = False
    if known is not None and options.prune_baseline:
        baseline.prune(known, results, options, settings)
    elif known is not None and not reads_stdin(options):
        gone = baseline.report_stale_entries(known, results, silent=options.silent)
    report = _report(results, options, settings)
    if not options.silent:
        _show(report, options, settings, "" if gone else _all_passed(results))
    code = _exit_code(report, options)
    passes = options.exit_zero or options.pass_on_unpruned_baseline or options.diff or options.fix_only
    return FOUND if code == CLEAN and gone and not passes else code


# Linting and fixing


def _add_noqa(options: Namespace, configuration: Configuration) -> int:
    from ctxlint.commands.add_noqa import add_noqa
    from ctxlint.run.pipeline import lint_paths

    known = baseline.load(options, configuration.settings_for("."))
    leave_out = None if known is None else known.leave_out
    results = list(lint_paths(options.paths or ["."], configuration, jobs=options.jobs, finish=leave_out))
    results.sort(key=lambda each: each.path)
    _warn_of_nothing(options, results)
    return add_noqa(
        results, options.add_noqa, lambda source, result: _checked(source, result.settings, known, result.outside)
    )


def _lint_files(options: Namespace, configuration: Configuration, known: Baseline | None) -> list[FileResult]:
    """The results for all files in order of path; fixed files are written, unless a diff is requested."""
    from functools import partial

    from ctxlint.run.pipeline import lint_paths

    finish = with_fixes if known is None else partial(with_fixes, known=known)
    watch = progress.shown if progress.is_wanted(options) else None
    found = lint_paths(
        options.paths or ["."],
        configuration,
        jobs=options.jobs,
        finish=finish,
        watch=watch,
        cached=not (options.no_cache or options.fix or options.diff or options.fix_only),
    )
    results = (_written(each, known, shown=options.diff) for each in interruption.until_interrupted(found))
    if known is not None:  # a file that was only scanned, and contains no Function any more
        results = (each if each.linted or each.diagnostics else known.leave_out(each) for each in results)
    return sorted(results, key=lambda each: each.path)


def _checked(
    source: Source, settings: Settings, known: Baseline | None, outside: OutsideFacts | None = None
) -> FileResult:
    """The result for a text, without known findings."""
    from ctxlint.run.lint_file import check_source

    result = check_source(source, settings, outside)
    return result if known is None else known.leave_out(result)


def with_fixes(result: FileResult, known: Baseline | None = None) -> FileResult:
    """``result`` after its fixes were applied, if the settings of the file enable that; nothing is written.

    Known findings are excluded first, so they are not fixed.
    """
    settings = result.settings
    if known is not None:
        result = known.leave_out(result)
    if not settings.fix or not result.diagnostics:
        return result
    from ctxlint.fixes.apply import apply_fixes

    try:
        return apply_fixes(result, settings, lambda source: _checked(source, settings, known, result.outside))
    except Exception as error:  # noqa: BLE001  (one file must not end the run)
        return with_finding(result, internal_error(result.path, describe("The fix engine", error)))


def _written(result: FileResult, known: Baseline | None, *, shown: bool) -> FileResult:
    """``result`` after its fixed text was written; if that fails, the result for the unchanged file.

    A diff is only ``shown``, not written, and not shown either if writing would be refused.
    """
    if result.before is None or result.source is None:
        return result

    root = result.settings.root
    try:
        if shown:
            check_links(result.path, root)
        else:
            before, after = (encode(each, each.written) for each in (result.before, result.source))
            rewrite(result.path, before, after, root)
    except Unwritable as error:
        return with_finding(
            _checked(result.before, result.settings, known, result.outside), io_error(result.path, str(error))
        )
    return result


def _lint_stdin(
    options: Namespace, settings: Settings, configuration: Configuration, known: Baseline | None
) -> FileResult:
    """The result for standard input. With ``--fix``, the text is written to standard output, fixed or not."""
    from ctxlint.run.lint_file import lint_bytes
    from ctxlint.run.pipeline import is_left_out

    path = options.stdin_filename or STDIN
    data = _read_stdin()
    if settings.force_exclude and options.stdin_filename and is_left_out(path, settings):
        result = FileResult(path, skipped="excluded")
    else:
        result = with_fixes(lint_bytes(path, data, settings, _around(options, configuration)), known)
    if _prints_code(options, settings):
        if result.before is not None and result.source is not None:
            data = encode(result.source, result.source.written)
        write_bytes(data, sys.stdout)
    return result


def _read_stdin() -> bytes:
    """The content of standard input.

    Raises:
        ConfigurationError: It is too large.
    """
    try:
        return read_stdin()
    except Unreadable as error:
        raise ConfigurationError(f"{STDIN} (standard input): {error}") from None


def _around(options: Namespace, configuration: Configuration) -> Surroundings | None:
    """The project of the file that standard input represents; None without a file name."""
    from ctxlint.run.in_project import Surroundings

    name = options.stdin_filename
    if name is None or not os.path.isdir(os.path.dirname(os.path.abspath(name))):
        return None
    return Surroundings(configuration, on_disk=not options.no_cache)


def _prints_code(options: Namespace, settings: Settings) -> bool:
    """Whether the fixed text is written to standard output."""
    return reads_stdin(options) and settings.fix and not options.diff


# Output


def _report_failures(results: list[FileResult]) -> int:
    """Report the files that could not be read or written, or that ctxlint failed on; returns the exit code."""
    found = [each for result in results for each in result.diagnostics if each.code in _ABOUT_FILES]
    for each in found:
        say(f"{each.path}: {each.code} {each.message}")
    return FAILED if any(result.failed for result in results) else FOUND if found else CLEAN


def _warn(results: list[FileResult], options: Namespace, settings: Settings) -> None:
    """Print warnings that are not part of the report to standard error."""
    if options.quiet or options.silent:
        return
    for result in results:
        if result.skipped and options.verbose:
            say(f"{result.path}: skipped: {result.skipped}")
        for line, message in result.warnings:
            place = f":{_line_place(result, line)}" if line else ""
            say(f"warning: {result.path}{place}: {message}")
    if options.verbose:
        from ctxlint.cache.folder import why_not
        from ctxlint.report import counted

        linted = [each for each in results if not each.skipped]
        candidates = sum(each.linted for each in linted)
        say(f"Read {counted(len(linted), 'file')}, {candidates} of which may define Functions")
        nothing_kept = why_not(settings)
        if nothing_kept and not settings.fix:
            say(nothing_kept)


def _warn_of_nothing(options: Namespace, results: Sequence[FileResult]) -> None:
    """Warn if there was nothing to check: a wrong path must not appear as a clean one."""
    if options.quiet or options.silent:
        return
    if all(each.skipped for each in results):
        say("warning: No Python files found under the given path(s)")
        return
    paths = options.paths
    folders = [path for path in paths if os.path.isdir(path)] if len(paths) > 1 else []
    if folders:
        read = sorted(each.path for each in results if each.skipped != "excluded")
        for folder in dict.fromkeys(folders):
            if not _holds_one(folder, read):
                say(f"warning: No Python files found under {folder}")


def _holds_one(folder: str, files: Sequence[str]) -> bool:
    """Whether one of some sorted files is below a folder: most likely the one whose path begins like that."""
    top, at = os.path.join(os.path.realpath(folder), ""), bisect_left(files, os.path.join(folder, ""))
    return any(
        os.path.join(os.path.realpath(each), "").startswith(top)
        for some in (files[at : at + 1], files)
        for each in set(map(os.path.dirname, some))
    )


def _all_passed(results: Sequence[FileResult]) -> str:
    """The last line of a run without findings: what was checked. Empty if nothing was."""
    from ctxlint.report import counted

    read = [each for each in results if not each.skipped]
    functions = sum(each.function_count for each in read)
    checked = f"{counted(functions, 'Function')} in {counted(len(read), 'file')}"
    baselined = sum(len(each.baselined) for each in read)
    known = f"; {counted(baselined, 'finding')} in the baseline" if baselined else ""
    return f"All checks passed! ({checked}{known})\n" if read else ""


def _line_place(result: FileResult, line: int) -> str:
    """A line as users see it: ``4``, in a notebook ``cell 3:4``."""
    return str(line) if result.source is None else result.source.locate_line(line)


def _report(results: list[FileResult], options: Namespace, settings: Settings) -> Report:
    from ctxlint.report import Report

    stream = sys.stderr if _prints_code(options, settings) else sys.stdout
    return Report(
        tuple(_quotable(each, options) for each in results if each.diagnostics or each.fixed),
        unsafe_fixes=settings.unsafe_fixes,
        show_fixes=settings.show_fixes,
        quiet=options.quiet,
        color=_output_file(options) is None and wants_color(options.color, stream),
    )


def _quotable(result: FileResult, options: Namespace) -> FileResult:
    """``result`` without the text and the fixes of a file behind a committed link: its author may read the report."""
    if result.source is None or reads_stdin(options) or not leaves_project(result.path, result.settings.root):
        return result
    from dataclasses import replace  # costs much of a run without findings

    left = tuple(replace(each, fix=None) for each in result.diagnostics)
    return result._replace(source=None, diagnostics=left)


@stage("report")
def _show(report: Report, options: Namespace, settings: Settings, passed: str) -> None:
    """Write the report; ``passed`` is the last line of a run without findings."""
    if options.diff or options.fix_only:
        _report_failures(list(report.results))
    if options.diff:
        lines = _diff(report, named=not reads_stdin(options) or options.stdin_filename is not None)
        write(map(_visible_line, lines) if is_read_by_people(sys.stdout) else lines, sys.stdout)
        if not options.quiet:
            write(_fix_lines(report, would=True), sys.stderr)
        return
    stream = sys.stderr if _prints_code(options, settings) else sys.stdout
    if options.fix_only:
        if not options.quiet:
            write(_fix_lines(report, would=False), stream)
        return
    _write_report(report, options, settings, stream, "" if report.results or options.quiet else passed)


_ABOUT_FILES = ("CTX900", "CTX902")
"""Reported even if no findings are requested: ctxlint failed, or a file could not be read or written."""


def _write_report(report: Report, options: Namespace, settings: Settings, stream: TextIO, passed: str) -> None:
    from ctxlint.report import FOR_PEOPLE, render

    for_programs = settings.output_format == "json" if options.statistics else settings.output_format not in FOR_PEOPLE
    name = _output_file(options)
    if not (report.results or for_programs or options.count or name):
        write([passed], stream)  # the usual run ends here, without the cost of importing a format
        return
    if options.statistics:
        from ctxlint.report.statistics import render_statistics

        pieces = render_statistics(report, settings.output_format)
    else:
        pieces = render(report, settings.output_format)
    if for_programs:
        write([passed], sys.stderr)
    else:
        pieces = chain(pieces, [passed])
    if name is None:
        write(pieces, stream, encoding="utf-8" if for_programs else "")
    else:
        _write_file(name, pieces, settings)
    if options.count:  # it must not spoil output that a program parses
        write([f"{len(report.diagnostics)}\n"], sys.stderr if for_programs and name is None else stream)


def _write_file(name: str, pieces: Iterator[str], settings: Settings) -> None:
    try:
        write_report(name, "".join(pieces).encode("utf-8", "backslashreplace"), settings.root)
    except OSError as error:
        raise ConfigurationError(f"--output-file: cannot write {name}: {error.strerror}") from None


def _output_file(options: Namespace) -> str | None:
    name: str | None = options.output_file or environment.value("OUTPUT_FILE")
    return name


def _diff(report: Report, *, named: bool) -> Iterator[str]:
    from ctxlint.fixes.diff import unified_diff

    for result in report.results:
        if result.before is not None and result.source is not None:
            yield from unified_diff(result.before, result.source, named=named)


def _visible_line(line: str) -> str:
    from ctxlint.report.visible import is_active, visible

    text = line.rstrip("\r\n")
    return f"{visible(text)}\n" if is_active(text) else line


def _fix_lines(report: Report, *, would: bool) -> Iterator[str]:
    from ctxlint.report.run_summary import fix_summary, list_of_fixes

    if report.show_fixes:
        yield from list_of_fixes(report.visible())
    yield fix_summary(report, would=would)


def _exit_code(report: Report, options: Namespace) -> int:
    if any(result.failed for result in report.results):
        return FAILED
    if options.exit_zero:
        return CLEAN
    fixed = any(result.fixed for result in report.results)
    if options.diff or options.fix_only:
        unreadable = any(each.code in _ABOUT_FILES for each in report.diagnostics)
        return FOUND if unreadable or (fixed and (options.diff or options.exit_non_zero_on_fix)) else CLEAN
    return FOUND if report.diagnostics or (fixed and options.exit_non_zero_on_fix) else CLEAN


# Alternatives to a run


def _show_files(options: Namespace, configuration: Configuration) -> int:
    from ctxlint.report.visible import is_command, visible
    from ctxlint.run.pipeline import files_under

    names = sorted(os.path.abspath(path) for path in files_under(options.paths or ["."], configuration))
    shown = (visible(name) if is_command(name) else name for name in names)
    write_bytes(b"".join(os.fsencode(name) + b"\n" for name in shown), sys.stdout)  # for programs: names as they are
    return CLEAN


def _show_settings(options: Namespace, configuration: Configuration) -> int:
    from ctxlint.report.settings_in_force import describe

    path = options.stdin_filename or (options.paths or ["."])[0]
    file = os.path.join(path, "") if os.path.isdir(path) else path
    write(describe(os.path.abspath(path), configuration.settings_for_file(file)), sys.stdout)
    return CLEAN
