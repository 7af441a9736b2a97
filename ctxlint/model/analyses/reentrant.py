"""Saved inputs whose ``.grad`` backward returns after it has differentiated with respect to these very tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.interpreter.events import Assigned, Differentiated
from ctxlint.model.interpreter.values import (
    NONE,
    ContextAttribute,
    Fresh,
    Item,
    Parameter,
    SavedTensor,
    SavedTensors,
    Variadic,
    is_input,
)
from ctxlint.model.syntax import code_of, dotted, words_of
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Slot, Value


_PLAIN = (cst.Return, cst.Assign, cst.Element)
"""What surrounds a ``.grad`` that is only read."""


@record
class ReturnedGrad:
    """``x.grad`` that backward returns, for ``saved``, an input ``x`` as it was saved.

    ``inner``: backward itself calls ``backward()``, which fills it; otherwise other code does.
    """

    node: cst.Attribute
    saved: Parameter
    inner: bool


def returned_grads(fn: FunctionClass, method: Method) -> Iterator[ReturnedGrad]:
    """Each ``x.grad`` that backward returns, if nothing touches it after an inner ``backward()``.

    Without one, only if backward does nothing but return it, as the gradient of that input.
    """
    inner = next((each.node for each in method.facts.of(Differentiated) if "backward" in each.how), None)
    if fn.escapes:
        return
    for index, gradient in _returned_nodes(fn):
        node = _grad_behind(method, gradient)
        saved = _saved_input(fn, method, node.value) if node is not None else None
        if node is None or saved is None or not _is_only_read(method, node, inner):
            continue
        if _is_managed(method, node):
            continue
        if inner is not None or (index == saved.index and node is gradient and _writes_other_grads_only(method, node)):
            yield ReturnedGrad(node, saved, inner is not None)


def _is_managed(method: Method, node: cst.Attribute) -> bool:
    """Whether a context manager around gets the tensor, and may set its ``grad`` to what it was before."""
    items = (item.item for each in method.above(node) if isinstance(each, cst.With) for item in each.items)
    name = dotted(node.value)
    return any(isinstance(item, cst.Call) and name in [dotted(arg.value) for arg in item.args] for item in items)


def _returned_nodes(fn: FunctionClass) -> Iterator[tuple[int | None, cst.CSTNode | None]]:
    """Each returned gradient, with the number of its input, if known: a ``.grad`` is not a tuple of several."""
    for returned in fn.gradients:
        if not returned.known:
            yield 0, returned.node.value if isinstance(returned.node, cst.Return) else returned.node
        for index, slot in enumerate(returned.slots if returned.known else ()):
            placed = not any(each.starred for each in returned.slots[: index + 1])
            yield index if placed else None, slot.node


def collected_grads(fn: FunctionClass, method: Method) -> Iterator[cst.Attribute]:
    """``[x.grad for x in ctx.saved_tensors]`` that backward returns, if forward saved nothing but inputs, as they were.

    Only if backward itself calls ``backward()``, and touches no other ``.grad``.
    """
    if fn.escapes or not any("backward" in each.how for each in method.facts.of(Differentiated)):
        return
    grads = [each for each in method.nodes_of(cst.Attribute) if each.attr.value == "grad"]
    if len(grads) != 1 or not isinstance(grads[0].value, cst.Name) or not _saves_inputs_only(fn):
        return
    around = tuple(method.above(grads[0]))
    at = next((n for n, each in enumerate(around) if isinstance(each, (cst.ListComp, cst.GeneratorExp))), None)
    loop = around[at] if at is not None else None
    if at is None or not isinstance(loop, (cst.ListComp, cst.GeneratorExp)):
        return
    clause, branches = loop.for_in, (grads[0], *around[:at])
    whole = all(isinstance(each, cst.IfExp) and each.body in branches for each in around[:at])
    named = isinstance(clause.target, cst.Name) and clause.target.value == grads[0].value.value
    if whole and named and _is_saved_tuple(method, clause.iter) and _is_returned(method, loop):
        yield grads[0]


def _saves_inputs_only(fn: FunctionClass) -> bool:
    """Whether forward saves inputs, ``*args`` among them, and nothing else; at least one of them gets a gradient."""
    if len(fn.saves) != 1 or not fn.saves[0].arguments:
        return False
    values = [_inputs_in(slot) for slot in fn.saves[0].arguments]
    gradients = [slot.value for each in fn.gradients for slot in each.slots]
    return None not in values and (not gradients or any(value != NONE for value in gradients))


def _inputs_in(slot: Slot) -> Value | None:
    """The input that a slot is, or the ``*args`` of which it is all or a part."""
    value = slot.value.of if slot.starred and isinstance(slot.value, Item) else slot.value
    if not isinstance(value, Variadic if slot.starred else Parameter):
        return None
    return value if value.role == "input" else None


def _is_saved_tuple(method: Method, node: cst.BaseExpression) -> bool:
    """Whether an expression is ``ctx.saved_tensors``, or a name bound to it once."""
    if isinstance(node, cst.Name):
        return isinstance(method.value_of(node.value), SavedTensors)
    return dotted(node) == f"{method.ctx_name}.saved_tensors"


def _is_returned(method: Method, loop: cst.CSTNode) -> bool:
    """Whether a list is in a return, or assigned or added to a name that a return mentions."""
    around = tuple(method.above(loop))
    if any(isinstance(each, cst.Return) for each in around):
        return True
    names = {each.name for each in method.facts.of(Assigned) if each.statement in around}
    returned = (each.node for each in method.facts.returns if isinstance(each.node, cst.Return))
    return any(not names.isdisjoint(words_of(each)) for each in returned)


def _grad_behind(method: Method, node: cst.CSTNode | None) -> cst.Attribute | None:
    """``x.grad``, written in the return, or bound to the returned name."""
    if isinstance(node, cst.Name):
        node = method.bound_to(node.value)
    return node if isinstance(node, cst.Attribute) and node.attr.value == "grad" else None


def _saved_input(fn: FunctionClass, method: Method, node: cst.BaseExpression) -> Parameter | None:
    """The input that an expression certainly is, as it was saved."""
    value = method.value_of(node.value) if isinstance(node, cst.Name) else None
    if method.is_on_ctx(node):
        value = ContextAttribute(node.attr.value)
    stored = kept_value(fn, value) if isinstance(value, (SavedTensor, ContextAttribute)) else None
    return stored if is_input(stored) else None


def _is_only_read(method: Method, grad: cst.Attribute, inner: cst.CSTNode | None) -> bool:
    """Whether all uses of this ``.grad`` are a return or the value of an assignment: none resets it after ``inner``."""
    path = dotted(grad)
    uses = [each for each in method.nodes_of(cst.Attribute) if dotted(each) == path]
    return all(
        isinstance(method.parents.get(each), _PLAIN)
        or _is_reset_before(method, each, inner)
        or _is_made_if_missing(method, each)
        for each in uses
    )


def _writes_other_grads_only(method: Method, grad: cst.Attribute) -> bool:
    """Whether every ``.grad`` that the method does not only read is that of another saved tensor, or of a new one."""
    bound = method.assignments
    mine = [each.value for each in bound.get(dotted(grad.value) or "", ())][:1]
    for each in method.nodes_of(cst.Attribute):
        parent = method.parents.get(each)
        called = isinstance(parent, cst.Call) and parent.func is each  # the method of a kernel
        if (
            each.attr.value == "grad"
            and not called
            and not isinstance(parent, _PLAIN)
            and not _is_made_if_missing(method, each)
        ):
            held = bound.get(dotted(each.value) or "", [])
            if len(held) != 1 or not isinstance(held[0].value, (SavedTensor, Fresh)) or held[0].value in mine:
                return False
    return True


def _is_made_if_missing(method: Method, grad: cst.Attribute) -> bool:
    """Whether it is a part of ``if x.grad is None: x.grad = …``, after which there is one to add to, as before."""
    around = next((each for each in method.above(grad) if isinstance(each, cst.If)), None)
    if around is None or around.orelse is not None or code_of(around.test) != f"{code_of(grad)} is None":
        return False
    lines = [each for line in around.body.body if isinstance(line, cst.SimpleStatementLine) for each in line.body]
    if len(around.body.body) != 1 or len(lines) != 1 or not isinstance(lines[0], cst.Assign):
        return False
    return [code_of(each.target) for each in lines[0].targets] == [code_of(grad)]


def _is_reset_before(method: Method, grad: cst.Attribute, inner: cst.CSTNode | None) -> bool:
    """Whether it is ``x.grad = None`` in front of the inner backward: what that adds, autograd still adds again."""
    target = method.parents.get(grad)
    statement = method.parents.get(target) if isinstance(target, cst.AssignTarget) else None
    if inner is None or not isinstance(statement, cst.Assign) or dotted(statement.value) != "None":
        return False
    return method.precedes(statement, inner)
