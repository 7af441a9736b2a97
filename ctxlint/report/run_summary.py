"""The last lines of a report for people: the number of findings, of available fixes, and of applied ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.report import applicability_of, counted
from ctxlint.report.style import TextStyle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.report import Report


def summary(report: Report) -> Iterator[str]:
    """The lines after the findings; none without findings, or with ``quiet``."""
    if report.quiet:
        return
    if report.show_fixes:
        yield from list_of_fixes(report)
    remaining, fixed = len(report.diagnostics), fix_count(report)
    if fixed:
        yield f"Found {counted(remaining + fixed, 'error')} ({fixed} fixed, {remaining} remaining).\n"
    elif remaining:
        yield f"Found {counted(remaining, 'error')}.\n"
    yield from _still_fixable(report)


def fix_count(report: Report) -> int:
    """How many findings were fixed."""
    return sum(fixed.count for result in report.results for fixed in result.fixed)


def _still_fixable(report: Report) -> Iterator[str]:
    fixable = sum(report.is_fixable(each) for each in report.diagnostics)
    unsafe = 0 if report.unsafe_fixes else unsafe_count(report)
    hint = f"{counted(unsafe, 'unsafe fix')} available with `--fix --unsafe-fixes`"
    if fixable:
        star = TextStyle(on=report.color).mark("*")
        yield f"[{star}] {fixable} fixable with `--fix`{f' ({hint})' if unsafe else ''}.\n"
    elif unsafe:
        yield f"{hint}.\n"


def unsafe_count(report: Report) -> int:
    """How many findings have a fix that only ``--unsafe-fixes`` applies."""
    kinds = (applicability_of(each) for each in report.diagnostics)
    return sum(kind is not None and kind.value == "unsafe" for kind in kinds)


def fix_summary(report: Report, *, would: bool) -> str:
    """The summary of ``--fix-only``, and, if nothing is written (``would``), of ``--diff``."""
    fixed = fix_count(report)
    unsafe = 0 if report.unsafe_fixes else unsafe_count(report)
    if fixed:
        more = f" ({counted(unsafe, 'additional fix')} available with `--unsafe-fixes`)" if unsafe else ""
        return f"{'Would fix' if would else 'Fixed'} {counted(fixed, 'error')}{more}.\n"
    if unsafe:
        more = f" ({counted(unsafe, 'fix')} available with `--unsafe-fixes`)"
        return f"No errors {'would be ' if would else ''}fixed{more}.\n"
    return ""


def list_of_fixes(report: Report) -> Iterator[str]:
    """The output of ``--show-fixes``: the fixed rules, file by file, the most frequent first."""
    if not fix_count(report):
        return
    style = TextStyle(on=report.color)
    yield f"\nFixed {counted(fix_count(report), 'error')}:\n"
    width = max(len(str(fixed.count)) for result in report.results for fixed in result.fixed)
    for result in report.results:
        if not result.fixed:
            continue
        yield f"- {style.bold(result.path)}:\n"
        for fixed in sorted(result.fixed, key=lambda each: (-each.count, each.code)):
            yield f"    {fixed.count:>{width}} \u00d7 {style.code(fixed.code)} ({fixed.name})\n"
    yield "\n"
