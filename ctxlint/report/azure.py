"""Logging commands of Azure Pipelines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.report.paths import absolute
from ctxlint.report.regions import message_with_cell, span_in_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.report import Report


def render(report: Report) -> Iterator[str]:
    """One command for each finding."""
    for result, diagnostic in report.findings:
        line, column = span_in_file(diagnostic, result.source).start
        properties = (
            f"type={diagnostic.severity.value};sourcepath={_property(absolute(diagnostic.path))};"
            f"linenumber={line};columnnumber={column};code={diagnostic.code};"
        )
        yield f"##vso[task.logissue {properties}]{_data(message_with_cell(diagnostic, result.source))}\n"


def _data(text: str) -> str:
    return text.replace("%", "%AZP25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace("]", "%5D").replace(";", "%3B")
