"""The format of reviewdog."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ctxlint.addresses import REPOSITORY
from ctxlint.report import applicability_of
from ctxlint.report.paths import absolute
from ctxlint.report.regions import message_with_cell, span_in_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.diagnostic import Diagnostic
    from ctxlint.report import Report
    from ctxlint.source.source import Position, Source


def render(report: Report) -> Iterator[str]:
    """One JSON document."""
    document = {
        "diagnostics": [_record(diagnostic, result.source) for result, diagnostic in report.findings],
        "severity": "WARNING",
        "source": {"name": "ctxlint", "url": REPOSITORY},
    }
    yield json.dumps(document, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def _record(diagnostic: Diagnostic, source: Source | None) -> dict[str, Any]:
    record: dict[str, Any] = {
        "code": {"url": diagnostic.url, "value": diagnostic.code},
        "location": {"path": absolute(diagnostic.path), "range": _range(source, *span_in_file(diagnostic, source))},
        "message": message_with_cell(diagnostic, source),
        "severity": diagnostic.severity.value.upper(),
    }
    if source is None or source.has_cells:
        return record
    if diagnostic.fix is not None and applicability_of(diagnostic) is not None:
        record["suggestions"] = [
            {"range": _range(source, source.position(edit.start), source.position(edit.end)), "text": edit.content}
            for edit in sorted(diagnostic.fix.edits)
        ]
    return record


def _range(source: Source | None, start: Position, end: Position) -> dict[str, dict[str, int]]:
    return {"end": _place(source, end), "start": _place(source, start)}


def _place(source: Source | None, position: Position) -> dict[str, int]:
    """A position for reviewdog: columns are bytes of UTF-8."""
    column = position.column
    if source is not None and not source.has_cells:
        before = source.line(position.line)[: column - 1]
        column += len(before.encode("utf-8", "surrogatepass")) - len(before)
    return {"column": column, "line": position.line}
