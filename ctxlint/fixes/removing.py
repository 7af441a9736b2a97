"""Removing one element: from the arguments of a call, or from the targets of an unpacking."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fixes.appending import AppendedItem, items_of

if TYPE_CHECKING:
    from ctxlint.fix import Edit
    from ctxlint.fixes.class_layout import Layout


def drop_argument(layout: Layout, call: cst.Call, at: int) -> list[Edit]:
    """Edits that remove one of several arguments, including its own line and the comment after it."""
    return [_without(layout, items_of(layout, call.args), at, keep_comma=False)]


def drop_target(layout: Layout, target: cst.Tuple | cst.List, at: int) -> list[Edit]:
    """Edits that unpack one element less of several; a single remaining one keeps or gets its comma."""
    items = items_of(layout, target.elements)
    text = layout.code(target)
    single = isinstance(target, cst.Tuple) and len(items) == 2
    if single and "\n" not in text and "#" not in text:
        kept = items[1 - at]
        return [layout.replace(target, f"({layout.text[kept.start : kept.end]},)")]
    edits = [_without(layout, items, at, keep_comma=single)]
    if single and items[1 - at].after is None:
        edits.append(layout.insert(items[1 - at].end, ","))
    return edits


def _without(layout: Layout, items: list[AppendedItem], at: int, *, keep_comma: bool) -> Edit:
    """``keep_comma``: the comma of the element before must stay."""
    item = items[at]
    after = item.end if item.after is None else item.after
    if layout.indentation(item.start) is not None and layout.nothing_but_a_comment_follows(after):
        following = layout.source.line_starts[layout.line_number(after)]  # the closing bracket at least
        return layout.delete(layout.line_start(item.start), following)
    before = items[at - 1] if at else None
    if before is not None:
        behind = before.end if before.after is None else before.after
        if "#" in layout.text[behind : item.start]:
            return layout.delete(item.start, after)
        if at == len(items) - 1 and not keep_comma:
            return layout.delete(before.end, item.end)
        if at == len(items) - 1 or layout.line_end(after) == after:
            return layout.delete(behind, after)
    while layout.text[after : after + 1] in (" ", "\t"):
        after += 1
    return layout.delete(item.start, after)
