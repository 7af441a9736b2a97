"""Fixes for arguments of ``save_for_backward``: lists get a star, numbers become attributes of ctx."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fix import Applicability, Edit
from ctxlint.fixes.context_uses import context_uses
from ctxlint.fixes.method_code import code_of_method
from ctxlint.fixes.unpacking import plain_unpacking
from ctxlint.model.analyses.saved_tensors import hides_an_input
from ctxlint.model.interpreter.events import SavedRead
from ctxlint.model.interpreter.values import Sequence, TensorTuple, Tri, is_container, is_none, is_tensor

if TYPE_CHECKING:
    from ctxlint.fix import Fix
    from ctxlint.fixes.method_code import MethodCode
    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.events import ContextCall
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Slot, Value


def save_properly(fn: FunctionClass, method: Method, call: ContextCall, argument: Slot) -> Fix | None:
    """Star a list of tensors, or store a number in an attribute of ctx."""
    code = code_of_method(fn, method)
    if code is None or argument.node is None or not isinstance(call.node, cst.Call):
        return None
    written = next((each for each in call.node.args if each.value is argument.node), None)
    if written is None or written.keyword is not None or written.star:
        return None
    if _holds_tensors(argument.value):
        return _star(fn, code, call, written, argument.value)
    if is_container(argument.value) is Tri.YES or hides_an_input(fn, method, argument):
        return None
    return _keep_as_attribute(fn, code, call, written)


def _holds_tensors(value: Value) -> bool:
    if isinstance(value, Sequence) and value.kind in ("tuple", "list"):
        return bool(value.slots) and all(
            is_tensor(slot.value) is Tri.YES or is_none(slot.value) is Tri.YES
            for slot in value.slots
            if not slot.starred
        )
    return isinstance(value, TensorTuple)


def _star(fn: FunctionClass, code: MethodCode, call: ContextCall, written: cst.Arg, value: Value) -> Fix | None:
    """``save_for_backward(*tensors)``: safe if backward unpacks as many, not offered if it unpacks another number."""
    if len(call.arguments) > 1 and not (isinstance(value, Sequence) and value.exact):
        return None
    unpackings = [each for read in fn.saved_reads for each in read.unpackings]
    exact = call.exact and isinstance(value, Sequence) and value.exact
    applicability = Applicability.UNSAFE
    if exact and isinstance(value, Sequence):
        count = len(call.arguments) - 1 + len(value.slots)
        if any(each.minimum > count if each.starred else each.minimum != count for each in unpackings):
            return None
        whole = all(read.unpackings for read in fn.saved_reads) and bool(unpackings)
        if whole and not fn.escapes and fn.signature_judgeable and all(not each.starred for each in unpackings):
            applicability = Applicability.SAFE
    return code.fix("Add a star", [code.layout.insert(code.layout.start(written.value), "*")], applicability)


def _keep_as_attribute(fn: FunctionClass, code: MethodCode, call: ContextCall, written: cst.Arg) -> Fix | None:
    """``ctx.n = n`` in forward, and ``n = ctx.n`` in backward if it uses ``n``.

    Unsafe, and offered for plain statements on single lines.
    """
    layout, backward, node = code.layout, fn.backward, call.node
    reader = None if backward is None else code_of_method(fn, backward)
    if backward is None or reader is None or backward.ctx is None or code.method.ctx is None:
        return None
    if len(fn.saves) != 1 or not call.exact or fn.escapes or not isinstance(node, cst.Call):
        return None
    statement, name = code.statement(node), written.value
    if not isinstance(name, cst.Name) or not isinstance(statement, cst.Expr) or statement.value is not node:
        return None
    if name.value in fn.stored_attributes or len(fn.reading_methods) != 1 or len(backward.facts.of(SavedRead)) != 1:
        return None
    reads = context_uses(reader).reads.get("saved_tensors", [])
    target = plain_unpacking(reader, reads[0], len(call.arguments)) if len(reads) == 1 else None
    unpacking = None if target is None else reader.statement(target)
    if target is None or unpacking is None or "\n" in layout.code(node) or "\n" in layout.code(unpacking):
        return None
    at = list(node.args).index(written)
    saved = [layout.code(each.value) for each in node.args if each is not written]
    names = [layout.code(each.value) for position, each in enumerate(target.elements) if position != at]
    ctx, other = code.method.ctx.name, backward.ctx.name
    store = code.after(statement, f"{ctx}.{name.value} = {name.value}")
    local = layout.code(target.elements[at].value)
    bound = f"{local} = {other}.{name.value}"
    used = len(reader.named(local)) > 1
    if not saved:
        return code.fix(
            "Store it in an attribute",
            [
                Edit(layout.start(statement), layout.end(statement), f"{ctx}.{name.value} = {name.value}"),
                Edit(layout.start(unpacking), layout.end(unpacking), bound) if used else reader.without(unpacking),
            ],
            Applicability.UNSAFE,
        )
    targets = f"({names[0]},)" if len(names) == 1 else ", ".join(names)
    edits = [
        Edit(layout.start(statement), layout.end(statement), f"{ctx}.{call.method}({', '.join(saved)})"),
        store,
        layout.replace(target, targets),
        *([reader.after(unpacking, bound)] if used else []),
    ]
    return code.fix("Store it in an attribute", edits, Applicability.UNSAFE)
