"""Appending one element: to the arguments of a call, or to the targets of an unpacking."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctxlint.fix import Edit
    from ctxlint.fixes.class_layout import Layout


@record
class AppendedItem:
    """The position of an element: 0-based offsets, ``after`` right behind its comma, None without one."""

    start: int
    end: int
    after: int | None


def append_argument(layout: Layout, call: cst.Call, new: str) -> list[Edit]:
    """Edits that append a positional argument to a call, on the same line or on one of its own like the others."""
    closing = layout.source.offset(layout.slice.span(call).end) - 1
    opening = layout.text.index("(", layout.end(call.func))
    items = items_of(layout, call.args)
    if not items:
        return [layout.insert(opening + 1, new)]
    return _append(layout, items, new, (opening, closing), single=False)


def append_target(layout: Layout, target: cst.Tuple | cst.List, new: str) -> list[Edit]:
    """Edits that unpack one more element into ``new``; the target has one or more."""
    brackets = None
    if isinstance(target, cst.List):
        brackets = (layout.start(target.lbracket), layout.end(target.rbracket) - 1)
    elif target.lpar:
        brackets = (layout.start(target.lpar[-1]), layout.end(target.rpar[0]) - 1)
    return _append(layout, items_of(layout, target.elements), new, brackets, single=isinstance(target, cst.Tuple))


def items_of(layout: Layout, elements: Sequence[cst.Arg | cst.BaseElement]) -> list[AppendedItem]:
    """The position of each element, its star included."""
    found = []
    for each in elements:
        after = layout.after_comma(each.comma) if isinstance(each.comma, cst.Comma) else None
        starred = isinstance(each, cst.StarredElement) or (isinstance(each, cst.Arg) and bool(each.star))
        found.append(AppendedItem(layout.start(each if starred else each.value), layout.end(each.value), after))
    return found


def _append(
    layout: Layout, items: list[AppendedItem], new: str, brackets: tuple[int, int] | None, *, single: bool
) -> list[Edit]:
    """``single``: the comma after a single element is not a trailing one."""
    last = items[-1]
    indentation = _own_lines(layout, items, brackets)
    if indentation is None:
        if last.after is None:
            return [layout.insert(last.end, f", {new}")]
        return [layout.insert(last.after, f" {new}" if single and len(items) == 1 else f" {new},")]
    line = f"\n{indentation}{new}"
    if last.after is not None:
        return [layout.insert(layout.line_end(last.after), f"{line},")]
    if layout.line_end(last.end) == last.end:
        return [layout.insert(last.end, f",{line}")]
    return [layout.insert(last.end, ","), layout.insert(layout.line_end(last.end), line)]


def _own_lines(layout: Layout, items: list[AppendedItem], brackets: tuple[int, int] | None) -> str | None:
    """The whitespace before the last element, if each has a line of its own and the brackets are on other lines."""
    if brackets is None or layout.indentation(brackets[1]) is None:
        return None
    if not layout.nothing_but_a_comment_follows(brackets[0] + 1):
        return None
    for item in items:
        after = item.end if item.after is None else item.after
        if layout.indentation(item.start) is None or not layout.nothing_but_a_comment_follows(after):
            return None
    return layout.indentation(items[-1].start)
