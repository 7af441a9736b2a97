"""Removing a saved tensor that backward never reads: from the call, and from every unpacking."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fix import Applicability
from ctxlint.fixes.appending import AppendedItem, items_of
from ctxlint.fixes.context_uses import context_uses
from ctxlint.fixes.method_code import code_of_method
from ctxlint.fixes.unpacking import plain_unpacking
from ctxlint.model.syntax import single_index

if TYPE_CHECKING:
    from ctxlint.fix import Edit, Fix
    from ctxlint.fixes.class_layout import Layout
    from ctxlint.fixes.method_code import MethodCode
    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.values import Slot

_COPIES = frozenset({"clone", "contiguous", "detach"})


def leave_out(fn: FunctionClass, position: int, saved: Slot) -> Fix | None:
    """Leave one saved tensor out of ``save_for_backward`` and of every unpacking; both go where it is the only one.

    None where its expression may do more than give a tensor, or where its name in backward is used in any other way.
    """
    save, count = fn.saves[0], len(fn.saves[0].arguments)
    writer = next((each for each in fn.context_methods if save in each.facts.events), None)
    code = None if writer is None else code_of_method(fn, writer)
    if code is None or not isinstance(save.node, cst.Call) or fn.source.mentions("grad_fn"):
        return None
    if saved.node is None or not _gives_a_tensor(saved.node) or len(save.node.args) != count:
        return None
    statement = code.statement(save.node)
    if not isinstance(statement, cst.Expr) or statement.value is not save.node or "\\" in code.layout.code(save.node):
        return None
    edits = [code.without(statement)] if count == 1 else _drop_argument(code.layout, save.node, position)
    for method in fn.reading_methods:
        reader = code_of_method(fn, method)
        taken = None if reader is None else _taken_without(reader, position, count)
        if taken is None:
            return None
        edits += taken
    return code.fix("Remove it", edits, Applicability.UNSAFE)


def _gives_a_tensor(expression: cst.BaseExpression) -> bool:
    """Whether an expression only names a tensor, or copies it."""
    if isinstance(expression, cst.Name):
        return True
    if isinstance(expression, cst.Attribute):
        return _gives_a_tensor(expression.value)
    if isinstance(expression, cst.Subscript):
        return isinstance(single_index(expression), (cst.Integer, cst.Name)) and _gives_a_tensor(expression.value)
    if isinstance(expression, cst.Call) and isinstance(expression.func, cst.Attribute) and not expression.args:
        return expression.func.attr.value in _COPIES and _gives_a_tensor(expression.func.value)
    return False


def _taken_without(reader: MethodCode, position: int, count: int) -> list[Edit] | None:
    """Edits that unpack all saved tensors but one; None if that one is bound to a name with other uses."""
    uses = context_uses(reader)
    reads = uses.reads.get("saved_tensors", [])
    if not uses.plain or "saved_variables" in uses.reads:
        return None
    targets = [plain_unpacking(reader, read, count) for read in reads]
    every = frozenset(target for target in targets if target is not None)
    edits: list[Edit] = []
    asked: set[str] = set()
    for target in targets:
        name = None if target is None else target.elements[position].value
        if target is None or not isinstance(name, cst.Name):
            return None
        if name.value not in asked and any(every.isdisjoint(reader.above(use)) for use in reader.named(name.value)):
            return None
        asked.add(name.value)
        statement = reader.statement(target)
        if statement is None or "\\" in reader.layout.code(target):
            return None
        edits += [reader.without(statement)] if count == 1 else _drop_target(reader.layout, target, position)
    return edits


# One element of the arguments of a call, or of the targets of an unpacking


def _drop_argument(layout: Layout, call: cst.Call, at: int) -> list[Edit]:
    """Edits that remove one of several arguments, including its own line and the comment after it."""
    return [without_item(layout, items_of(layout, call.args), at, keep_comma=False)]


def _drop_target(layout: Layout, target: cst.Tuple | cst.List, at: int) -> list[Edit]:
    """Edits that unpack one element less of several; a single remaining one keeps or gets its comma."""
    items = items_of(layout, target.elements)
    text = layout.code(target)
    single = isinstance(target, cst.Tuple) and len(items) == 2
    if single and "\n" not in text and "#" not in text:
        other = items[1 - at]
        return [layout.replace(target, f"({layout.text[other.start : other.end]},)")]
    edits = [without_item(layout, items, at, keep_comma=single)]
    if single and items[1 - at].after is None:
        edits.append(layout.insert(items[1 - at].end, ","))
    return edits


def without_item(layout: Layout, items: list[AppendedItem], at: int, *, keep_comma: bool) -> Edit:
    """An edit that removes one of several elements; ``keep_comma``: the comma of the element before must stay."""
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
