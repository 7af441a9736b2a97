"""The number of findings by rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ctxlint.report.run_summary import summary
from ctxlint.report.style import TextStyle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.report import Report


@dataclass
class Statistic:
    """The findings of one rule: how many, and how many of them ``--fix`` would fix."""

    code: str
    name: str
    count: int = 0
    fixable: int = 0


def statistics(report: Report) -> list[Statistic]:
    """One record for each rule with findings, the most frequent first."""
    by_code: dict[str, Statistic] = {}
    for diagnostic in report.diagnostics:
        each = by_code.setdefault(diagnostic.code, Statistic(diagnostic.code, diagnostic.name))
        each.count += 1
        each.fixable += report.is_fixable(diagnostic)
    return sorted(by_code.values(), key=lambda each: (-each.count, each.code))


def render_statistics(report: Report, output_format: str) -> Iterator[str]:
    """A list of records with the ``json`` format; otherwise a table for people."""
    found = statistics(report)
    if output_format == "json":
        import json

        records = [
            {
                "code": each.code,
                "name": each.name,
                "count": each.count,
                "fixable": each.fixable > 0,
                "fixable_count": each.fixable,
            }
            for each in found
        ]
        yield json.dumps(records, indent=2) + "\n"
        return
    style = TextStyle(on=report.color)
    width = max((len(str(each.count)) for each in found), default=1)
    marked = any(each.fixable for each in found)
    for each in found:
        mark = f"[{style.mark('*') if each.fixable else ' '}] " if marked else ""
        yield f"{style.bold(f'{each.count:>{width}}')}\t{style.code(each.code)}\t{mark}{each.name}\n"
    yield from summary(report)
