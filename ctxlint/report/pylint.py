"""One line for each finding, as pylint writes it: ``path:line: [CODE] message``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.report.concise import one_line
from ctxlint.report.paths import relative

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.report import Report


def render(report: Report) -> Iterator[str]:
    """The lines."""
    for each in report.diagnostics:
        yield f"{relative(each.path)}:{each.span.start.line}: [{each.code}] {one_line(each.message)}\n"
