"""Gradients that forward computes and saves, so that backward only scales them, without a test of who needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.returns import names_behind_returns
from ctxlint.model.analyses.unconditional_gradients import Unconditional, called_as_method, expensive, without_layout
from ctxlint.model.interpreter.events import Assigned, GenericCall
from ctxlint.model.interpreter.values import NONE, SavedTensor
from ctxlint.model.syntax import (
    children,
    compares_identity,
    dotted,
    is_name,
    keywords_of,
    last_name,
    names_in,
    parents_below,
    root_name,
    words_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method

_FLAGS = ("requires_grad", "needs_", "grad_enabled", "needed", "frozen", "train")
"""Parts of names by which a function may know whether a gradient is needed."""


def precomputed_gradients(fn: FunctionClass) -> Iterator[Unconditional]:
    """The gradients, next to others, that forward computes by a product or convolution without such a test."""
    forward, backward = fn.forward, fn.backward
    if forward is None or backward is None or forward.ctx is None or not fn.saves or len(fn.gradients) != 1:
        return
    slots = fn.gradients[0].slots if fn.gradients[0].known and not fn.escapes else ()
    if sum(slot.value != NONE for slot in slots) < 2 or any(slot.starred for slot in slots) or _asks(forward):
        return
    for at, slot in enumerate(slots[: len(fn.inputs)]):
        index = _saved_index(backward, slot.node) if slot.node is not None else None
        saved = [call.arguments[: index + 1] for call in fn.saves] if index is not None else []
        if index is None or any(len(each) <= index or any(slot.starred for slot in each) for each in saved):
            continue
        name, *others = {_tensor(each[index].node) for each in saved} or {None}
        if others:
            continue
        if name is not None and name in forward.assignments and name not in names_behind_returns(forward):
            yield from _computed(forward, at, name)


def _asks(method: Method) -> bool:
    """Whether a function may know which gradients are needed."""
    return any(flag in word for word in words_of(method.node) for flag in _FLAGS)


def _saved_index(backward: Method, node: cst.BaseExpression) -> int | None:
    """The position of the saved tensor that a gradient is, times incoming gradients; None for anything else."""
    incoming = {each.name for each in backward.own_params}
    names = names_in(node) - incoming
    name = next(iter(names)) if len(names) == 1 else ""
    assigned = backward.assignments.get(name, [])
    first = assigned[0].value if assigned else None
    known = {each.name for each in backward.facts.of(Assigned) if isinstance(each.value, SavedTensor)}
    if not isinstance(first, SavedTensor) or not all(_scales(each, known | incoming) for each in assigned[1:]):
        return None
    own = all(_is_own(backward, use, node, known | incoming) for use in backward.named.get(name, ()))
    return first.index if own else None


def _is_own(backward: Method, use: cst.Name, gradient: cst.BaseExpression, known: set[str]) -> bool:
    """Whether a saved tensor is used for one gradient there, scaled with others in one call, or compared with None."""
    statement = backward.statement_around(use)
    if isinstance(statement, cst.Return):
        return use is gradient or any(each is gradient for each in backward.above(use))
    if isinstance(statement, (cst.Assign, cst.AugAssign)):
        targets = (
            [each.target for each in statement.targets] if isinstance(statement, cst.Assign) else [statement.target]
        )
        return any(use.value in names_in(each) for each in targets)
    if isinstance(statement, cst.Expr) and isinstance(statement.value, cst.Call):
        return names_in(statement.value) - {last_name(statement.value.func)} <= known
    return compares_identity(backward.parents[use])


def _scales(assigned: Assigned, known: set[str]) -> bool:
    """Whether only saved tensors and incoming gradients are combined: ``dw *= g``, ``dx, dw = scaled(g, dx, dw)``."""
    value = getattr(assigned.statement, "value", None)
    called = {last_name(value.func)} if isinstance(value, cst.Call) else set[str]()
    return isinstance(value, cst.BaseExpression) and names_in(value) - called <= known


def _tensor(node: cst.BaseExpression | None) -> str | None:
    """The name of what is saved: ``dw`` of ``dw.detach() if bias is not None else None``."""
    if isinstance(node, cst.IfExp):
        branches = [each for each in (node.body, node.orelse) if not is_name(each, "None")]
        node = branches[0] if len(branches) == 1 else None
    while (
        isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in ("detach", "to")
    ):
        node = node.func.value
    return node.value if isinstance(node, cst.Name) else None


def _computed(forward: Method, at: int, name: str) -> Iterator[Unconditional]:
    """The expensive expression by which forward, or a function that it calls, computes a tensor."""
    found = _product(forward, name)
    if found is not None:
        yield Unconditional(at, found[0], found[1], name)
        return
    calls = {
        call.node: call for call in forward.facts.of(GenericCall) if call.definition is not None and not call.guards
    }
    for each in forward.assignments[name]:
        statement = each.statement
        call = calls.get(statement.value) if isinstance(statement, cst.Assign) else None
        helper = (
            called_as_method(forward, call.definition) if call is not None and call.definition is not None else None
        )
        if helper is None or not isinstance(statement, cst.Assign) or len(statement.targets) != 1:
            continue
        method, elements = helper
        target = statement.targets[0].target
        names = [element.value for element in target.elements] if isinstance(target, cst.Tuple) else []
        index = next((i for i, element in enumerate(names) if is_name(element, name)), None)
        inner = without_layout(elements[index].node) if index is not None and index < len(elements) else None
        found = _product(method, inner.value) if isinstance(inner, cst.Name) and not _asks(method) else None
        if found is not None and isinstance(statement.value, cst.Call):
            yield Unconditional(at, statement.value, found[1], name, helper=method.name, has_ctx=False)
            return


def _product(method: Method, name: str) -> tuple[cst.BaseExpression, str] | None:
    """What is assigned, written or added to a tensor, if that is a product or a convolution."""
    for use in method.named.get(name, ()):
        statement = method.statement_around(use)
        if isinstance(statement, (cst.Assign, cst.AugAssign)):
            targets = (
                [each.target for each in statement.targets] if isinstance(statement, cst.Assign) else [statement.target]
            )
            value = statement.value if any(root_name(each) == name for each in targets) else None
        elif isinstance(statement, cst.Expr) and isinstance(statement.value, cst.Call):
            call = statement.value
            value = call if root_name(call.func) == name or is_name(keywords_of(call).get("out"), name) else None
        else:
            value = None
        operation = (_expensive_inside(value) or _transform(method, value)) if value is not None else None
        if value is not None and operation is not None:
            return value, operation
    return None


def _transform(method: Method, value: cst.BaseExpression) -> str | None:
    """The transform of ``torch.func`` by which a tensor is computed that is added: ``total.add_(parts[1])``."""
    taken = value.args[0].value if isinstance(value, cst.Call) and _adds(value) and value.args else value
    taken = taken.value if isinstance(taken, cst.Subscript) else taken
    if not isinstance(taken, cst.Name):
        return None
    bound = (each for each in method.nodes_of(cst.Assign) if any(taken.value in names_in(one) for one in each.targets))
    called = {last_name(each.value.func) for each in bound if isinstance(each.value, cst.Call)}
    makers: list[cst.CSTNode] = [each for each in method.nodes_of(cst.FunctionDef) if each.name.value in called]
    bindings = (each.statement for name in called for each in method.assignments.get(name, ()))
    makers += (each for each in bindings if each is not None)
    inside = (part for maker in makers for part in parents_below(maker) if isinstance(part, cst.Call))
    names = (dotted(part.func) or "" for part in inside)
    return next((name.rpartition(".")[2] for name in names if name in _TRANSFORMS), None)


_TRANSFORMS = ("torch.func.grad", "torch.func.grad_and_value", "func.grad", "func.grad_and_value")


def _expensive_inside(node: cst.CSTNode) -> str | None:
    """The expensive operation that an expression is, apart from its layout, its dtype, and what is added."""
    if isinstance(node, cst.BaseExpression):
        found = expensive(node)
        if found is not None:
            return found
    return next(filter(None, map(_expensive_inside, children(node))), None) if _adds(node) else None


def _adds(node: cst.CSTNode) -> bool:
    if isinstance(node, cst.BinaryOperation):
        return isinstance(node.operator, (cst.Add, cst.Subtract))
    return isinstance(node, cst.Arg) or (
        isinstance(node, cst.Call) and last_name(node.func) in ("add_", "copy_", "sub_")
    )
