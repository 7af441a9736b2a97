"""An identifier for each finding that is stable when lines above it are added or removed."""

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
    """Every finding with its fingerprint: 16 hexadecimal digits, unique in the report.

    It is computed from path, code, the text of the line without its spaces, and, if those are equal, a running number.
    """
    seen: Counter[tuple[str, str, str]] = Counter()
    for result, diagnostic in report.findings:
        line = "" if result.source is None else result.source.line(diagnostic.span.start.line)
        key = (relative(diagnostic.path), diagnostic.code, "".join(line.split()))
        text = "\0".join([*key, str(seen[key])])
        seen[key] += 1
        yield result, diagnostic, sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
