"""Removing or inserting a None in front of gradients that are returned for a neighbouring input; exchanging two."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fix import Applicability, Fix
from ctxlint.fixes.appending import items_of
from ctxlint.fixes.class_layout import layout_of
from ctxlint.fixes.displays import insert_elements
from ctxlint.fixes.unread_saves import without_item

if TYPE_CHECKING:
    from ctxlint.model.analyses.misplaced_gradients import Displaced, Early, Exchanged
    from ctxlint.model.function import FunctionClass


def drop_none_in_front(fn: FunctionClass, found: Displaced) -> Fix | None:
    """Remove the None at the position of the gradient from a tuple that is written out; None for any other return."""
    layout, method, statement = layout_of(fn, fn.backward), fn.backward, found.returned.event.node
    display = statement.value if isinstance(statement, cst.Return) else None
    if layout is None or method is None or method.node.returns is not None or not isinstance(display, cst.Tuple):
        return None
    written = [each.value for each in display.elements if isinstance(each, cst.Element)]
    if written != [slot.node for slot in found.returned.slots] or "#" in layout.code(display):
        return None
    if found.position - found.meant.index > 1:
        return None
    edit = without_item(layout, items_of(layout, display.elements), found.meant.index, keep_comma=False)
    return Fix("Remove the `None`", (edit,), Applicability.UNSAFE)


def put_none_in_front(fn: FunctionClass, found: Early) -> Fix | None:
    """Insert a None in front of gradients, and drop that behind them, in a tuple that is written out."""
    layout, method, statement = layout_of(fn, fn.backward), fn.backward, found.returned.event.node
    display = statement.value if isinstance(statement, cst.Return) else None
    if layout is None or method is None or method.node.returns is not None or not isinstance(display, cst.Tuple):
        return None
    written = [each.value for each in display.elements if isinstance(each, cst.Element)]
    if written != [slot.node for slot in found.returned.slots] or "#" in layout.code(display):
        return None
    dropped = without_item(layout, items_of(layout, display.elements), found.meant.index, keep_comma=False)
    edits = (*insert_elements(layout, display, found.gets.index, "None", 1), dropped)
    return Fix("Move the `None` in front", edits, Applicability.UNSAFE)


def exchange(fn: FunctionClass, found: Exchanged) -> Fix | None:
    """Let two variables of a tuple that is written out change places."""
    layout, statement, (first, second) = layout_of(fn, fn.backward), found.returned.event.node, found.nodes
    display = statement.value if isinstance(statement, cst.Return) else None
    written = [each.value for each in display.elements] if isinstance(display, cst.Tuple) else []
    if layout is None or first not in written or second not in written:
        return None
    edits = (layout.replace(first, second.value), layout.replace(second, first.value))
    return Fix(f"Return `{second.value}` before `{first.value}`", edits, Applicability.UNSAFE)
