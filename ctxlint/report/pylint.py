"""One line for each finding, in pylint's format: ``path:line: [CODE] message``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.report.paths import relative
from ctxlint.report.regions import message_with_cell, span_in_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.report import Report


def render(report: Report) -> Iterator[str]:
    """The lines."""
    for result, each in report.findings:
        line = span_in_file(each, result.source).start.line
        yield f"{relative(each.path)}:{line}: [{each.code}] {message_with_cell(each, result.source)}\n"
