"""Adding ``# noqa`` comments that suppress the findings of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fix import Edit
from ctxlint.suppression.comment_layout import read_layout
from ctxlint.suppression.noqa import Directive, read_directives

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ctxlint.diagnostic import Diagnostic
    from ctxlint.source.source import Source

NOT_TO_HIDE = ("CTX900", "CTX901", "CTX902", "CTX903")
"""Findings about files that are not, or not fully, checked: they belong to no line."""


def noqa_edits(
    source: Source, diagnostics: Iterable[Diagnostic], names: Mapping[str, str], reason: str = ""
) -> Iterator[Edit]:
    """The edits, in order, that add a comment with the codes to each line with findings, or extend an existing one.

    ``names`` maps the code of every rule to its name; ``reason`` follows the codes of a new comment.
    """
    layout = read_layout(source)
    rows: dict[int, set[str]] = {}
    for each in diagnostics:
        if each.code not in NOT_TO_HIDE:
            rows.setdefault(layout.noqa_row(each.span.start.line), set()).add(each.code)
    there = {
        each.comment.line: each
        for each in read_directives(layout, names)
        if isinstance(each, Directive) and each.lines is not None and each.words and not each.own
    }
    for row, codes in sorted(rows.items()):
        listed = ", ".join(sorted(codes))
        directive = there.get(row)
        if directive is not None:
            end = directive.words[-1].end
            yield Edit(end, end, f", {listed}")
            continue
        start = source.line_starts[row - 1]
        text = source.line(row)
        yield Edit(start + len(text.rstrip()), start + len(text), f"  # noqa: {listed}{reason and f' {reason}'}")
