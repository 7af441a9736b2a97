"""Findings under the name of their file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.report.concise import one_line
from ctxlint.report.style import Style
from ctxlint.report.summary import summary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.report import Report


def render(report: Report) -> Iterator[str]:
    """A paragraph for each file with findings, then the summary."""
    style = Style(on=report.color)
    for result in report.results:
        if not result.diagnostics:
            continue
        yield f"{style.bold(result.path)}:\n"
        places = [each.span.start for each in result.diagnostics]
        line_width = max(len(str(place.line)) for place in places)
        column_width = max(len(str(place.column)) for place in places)
        for diagnostic, place in zip(result.diagnostics, places):
            mark = f"[{style.mark('*')}] " if report.is_fixable(diagnostic) else ""
            where = f"{place.line:>{line_width}}{style.paint(':', '36')}{place.column:<{column_width}}"
            yield f"  {where} {style.code(diagnostic.code)} {mark}{one_line(diagnostic.message)}\n"
        yield "\n"
    yield from summary(report)
