"""Workflow commands that GitHub Actions shows next to the code of a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.report.paths import absolute, relative
from ctxlint.report.regions import span_in_file
from ctxlint.result import locate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.diagnostic import Diagnostic
    from ctxlint.report import Report
    from ctxlint.source.source import Span


def render(report: Report) -> Iterator[str]:
    """One command for each finding."""
    for result, diagnostic in report.findings:
        named = _properties(diagnostic, span_in_file(diagnostic, result.source))
        properties = ",".join(f"{key}={_property(str(value))}" for key, value in named.items())
        place = locate(diagnostic, result.source).place
        text = f"{relative(diagnostic.path)}:{place}: {diagnostic.code} {diagnostic.message}"
        if diagnostic.fix is not None:
            text += f"\n  help: {diagnostic.fix.message}"
        yield f"::{diagnostic.severity.value} {properties}::{_data(text)}\n"


def _properties(diagnostic: Diagnostic, span: Span) -> dict[str, object]:
    start, end = span
    properties: dict[str, object] = {
        "title": f"ctxlint ({diagnostic.code})",
        "file": absolute(diagnostic.path),
        "line": start.line,
    }
    if start.line != end.line:  # GitHub ignores the position if a multi-line one has columns
        return {**properties, "endLine": end.line}
    return {**properties, "col": start.column, "endLine": end.line, "endColumn": end.column}


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
