"""The records of the ``json`` format, one per line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ctxlint.report.json_list import all_records

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.report import Report


def render(report: Report) -> Iterator[str]:
    """One line for each finding."""
    for record in all_records(report):
        yield json.dumps(record, ensure_ascii=False, sort_keys=True, separators=(",", ":")) + "\n"
