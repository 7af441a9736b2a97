"""One line for each finding: ``path:line:column: CODE message``. Parsed by editors and flake8's pattern."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.report.run_summary import summary
from ctxlint.report.style import TextStyle
from ctxlint.result import locate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.report import Report


def render(report: Report) -> Iterator[str]:
    """The lines and the summary."""
    style = TextStyle(on=report.color)
    colon = style.paint(":", "36")
    for result, diagnostic in report.findings:
        place = locate(diagnostic, result.source).place.replace(":", colon)
        place = f"{style.bold(diagnostic.path)}{colon}{place}{colon}"
        mark = f"[{style.mark('*')}] " if report.is_fixable(diagnostic) else ""
        yield f"{place} {style.code(diagnostic.code)} {mark}{diagnostic.message}\n"
    yield from summary(report)
