"""The code quality report of GitLab."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ctxlint.diagnostic import Severity
from ctxlint.report.fingerprints import with_fingerprints
from ctxlint.report.paths import relative

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.report import Report


def render(report: Report) -> Iterator[str]:
    """One JSON list."""
    records = [
        {
            "check_name": diagnostic.code,
            "description": f"{diagnostic.code}: {diagnostic.message}",
            "severity": "major" if diagnostic.severity is Severity.ERROR else "minor",
            "fingerprint": fingerprint,
            "location": {
                "path": relative(diagnostic.path),
                "positions": {
                    "begin": {"line": diagnostic.span.start.line, "column": diagnostic.span.start.column},
                    "end": {"line": diagnostic.span.end.line, "column": diagnostic.span.end.column},
                },
            },
        }
        for _, diagnostic, fingerprint in with_fingerprints(report)
    ]
    yield json.dumps(records, indent=2, ensure_ascii=False) + "\n"
