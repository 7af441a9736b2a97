"""A JSON list with one record for each finding, with the keys of ruff and ``related``, its notes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ctxlint.report import applicability_of
from ctxlint.report.paths import absolute
from ctxlint.result import locate
from ctxlint.suppression.comment_layout import read_layout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.diagnostic import Diagnostic, Related
    from ctxlint.report import Report
    from ctxlint.result import FileResult
    from ctxlint.source.source import Position, Source


def render(report: Report) -> Iterator[str]:
    """The list. With ``--show-fixes`` it is an object: ``diagnostics`` is the list, ``fixed`` the fixes."""
    records = list(all_records(report))
    document: Any = {"diagnostics": records, "fixed": list(_fixed(report))} if report.show_fixes else records
    yield json.dumps(document, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def all_records(report: Report) -> Iterator[dict[str, Any]]:
    """One record for each finding, in order."""
    for result in report.results:
        yield from _records(result)


def _records(result: FileResult) -> Iterator[dict[str, Any]]:
    layout = None
    for diagnostic in result.diagnostics:
        located = locate(diagnostic, result.source)
        row = located.span.start.line
        if result.source is not None:
            if layout is None:
                layout = read_layout(result.source)
            line = diagnostic.span.start.line
            row += layout.noqa_row(line) - line
        yield {
            "cell": located.cell,
            "code": diagnostic.code,
            "end_location": location(located.span.end),
            "filename": absolute(diagnostic.path),
            "fix": fix_record(diagnostic, result.source),
            "location": location(located.span.start),
            "message": diagnostic.message,
            "name": diagnostic.name,
            "noqa_row": row,
            "related": [_related(each, diagnostic, result.source) for each in diagnostic.related],
            "severity": diagnostic.severity.value,
            "url": diagnostic.url,
        }


def _related(related: Related, diagnostic: Diagnostic, source: Source | None) -> dict[str, Any]:
    """A note with its place, which may be in another file."""
    span, cell = related.span, None
    if source is not None and not related.path:
        _source, span, cell = source.locate(span)
    return {
        "cell": cell,
        "end_location": location(span.end),
        "filename": absolute(related.path or diagnostic.path),
        "location": location(span.start),
        "message": related.message,
    }


def location(position: Position) -> dict[str, int]:
    """A position: 1-based, columns in characters."""
    return {"column": position.column, "row": position.line}


def fix_record(diagnostic: Diagnostic, source: Source | None) -> dict[str, Any] | None:
    """The fix with its edits in order, if any. In a notebook each has its cell."""
    if diagnostic.fix is None or source is None or applicability_of(diagnostic) is None:
        return None
    return {
        "applicability": diagnostic.fix.applicability.value,
        "edits": [
            {
                **({} if cell is None else {"cell": cell}),
                "content": edit.content,
                "end_location": location(part.position(edit.end)),
                "location": location(part.position(edit.start)),
            }
            for part, edits, cell in source.locate_edits(sorted(diagnostic.fix.edits))
            for edit in edits
        ],
        "message": diagnostic.fix.message,
    }


def _fixed(report: Report) -> Iterator[dict[str, Any]]:
    for result in report.results:
        for fixed in result.fixed:
            yield {
                "code": fixed.code,
                "count": fixed.count,
                "filename": absolute(result.path),
                "name": fixed.name,
            }
