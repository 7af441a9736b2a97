"""Findings under the name of their file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.report.run_summary import summary
from ctxlint.report.style import TextStyle
from ctxlint.result import locate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.report import Report


def render(report: Report) -> Iterator[str]:
    """A paragraph for each file with findings, then the summary."""
    style = TextStyle(on=report.color)
    for result in report.results:
        if not result.diagnostics:
            continue
        yield f"{style.bold(result.path)}:\n"
        places = [locate(each, result.source).place.rpartition(":") for each in result.diagnostics]
        line_width = max(len(line) for line, _, _ in places)
        column_width = max(len(column) for _, _, column in places)
        for diagnostic, (line, _, column) in zip(result.diagnostics, places):
            mark = f"[{style.mark('*')}] " if report.is_fixable(diagnostic) else ""
            colon = style.paint(":", "36")
            where = f"{line:>{line_width}}".replace(":", colon) + f"{colon}{column:<{column_width}}"
            yield f"  {where} {style.code(diagnostic.code)} {mark}{diagnostic.message}\n"
        yield "\n"
    yield from summary(report)
