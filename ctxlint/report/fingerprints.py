"""A name for each finding that stays the same while lines above it come and go."""

from __future__ import annotations

from collections import Counter
from hashlib import sha256
from typing import TYPE_CHECKING

from ctxlint.report.paths import relative

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.diagnostic import Diagnostic
    from ctxlint.report import Report
    from ctxlint.result import FileResult


def with_fingerprints(report: Report) -> Iterator[tuple[FileResult, Diagnostic, str]]:
    """Every finding with its fingerprint: 16 hexadecimal digits, different for each finding of the report.

    It is made of path, code, the text of the line without its spaces, and, for equals among those, a running number.
    """
    seen: Counter[tuple[str, str, str]] = Counter()
    for result, diagnostic in report.findings:
        line = "" if result.source is None else result.source.line(diagnostic.span.start.line)
        key = (relative(diagnostic.path), diagnostic.code, "".join(line.split()))
        text = "\0".join([*key, str(seen[key])])
        seen[key] += 1
        yield result, diagnostic, sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
