"""The code quality report of GitLab."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ctxlint.diagnostic import Severity
from ctxlint.report.fingerprints import with_fingerprints
from ctxlint.report.paths import relative
from ctxlint.report.regions import message_with_cell, span_in_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.report import Report
    from ctxlint.source.source import Span


def render(report: Report) -> Iterator[str]:
    """One JSON list."""
    records = [
        {
            "check_name": diagnostic.code,
            "description": f"{diagnostic.code}: {message_with_cell(diagnostic, result.source)}",
            "severity": "major" if diagnostic.severity is Severity.ERROR else "minor",
            "fingerprint": fingerprint,
            "location": {
                "path": relative(diagnostic.path),
                "positions": _positions(span_in_file(diagnostic, result.source)),
            },
        }
        for result, diagnostic, fingerprint in with_fingerprints(report)
    ]
    yield json.dumps(records, indent=2, ensure_ascii=False) + "\n"


def _positions(span: Span) -> dict[str, dict[str, int]]:
    return {
        "begin": {"line": span.start.line, "column": span.start.column},
        "end": {"line": span.end.line, "column": span.end.column},
    }
