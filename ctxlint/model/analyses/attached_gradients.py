"""Functions that compute nothing: forward returns its inputs, so that backward can do something with gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.events import ContextCall, GenericCall, GradientFlag, MethodCall, Mutation, Reshaped
from ctxlint.model.interpreter.values import Alias, View, is_input

if TYPE_CHECKING:
    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Parameter, Value


def passed_inputs(fn: FunctionClass) -> list[Parameter]:
    """The inputs that forward returns on every path, one for each output, if it does nothing else; else none.

    It may keep state on ctx, and compute it; it may not mark an input as dirty, write to a tensor or another object, or
    call functions of which nothing is known.
    """
    if fn.escapes or not fn.outputs or any(map(_does_more, fn.earlier_methods)):
        return []
    found: list[list[Parameter]] = []
    for returned in fn.outputs:
        values = [slot.value for slot in returned.slots] if returned.known else [returned.value]
        inputs = [entry for value in values if (entry := _input_behind(value)) is not None]
        if len(inputs) < len(values) or not inputs:
            return []
        found.append(inputs)
    return found[0] if all(each == found[0] for each in found) else []


def _input_behind(value: Value) -> Parameter | None:
    while isinstance(value, View) and value.alias is Alias.ALWAYS:
        value = value.of
    return value if is_input(value) else None


def _does_more(method: Method) -> bool:
    """Whether it does anything except keeping state on ctx and computing it with torch."""
    if any(bool(method.facts.of(kind)) for kind in (Mutation, MethodCall, Reshaped, GradientFlag)):
        return True
    if any(each.method == "mark_dirty" for each in method.facts.of(ContextCall)):
        return True
    calls = method.facts.of(GenericCall)
    if not all(each.callee is not None and each.callee.startswith(_OF_TORCH) for each in calls):
        return True
    return any(_has_effect(method, each) for kind in _STATEMENTS for each in method.nodes_of(kind))


def _has_effect(method: Method, statement: cst.CSTNode) -> bool:
    if isinstance(statement, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign)):
        return not _is_own(method, statement.target)
    if isinstance(statement, cst.Expr):
        value = statement.value
        called_on_ctx = isinstance(value, cst.Call) and method.is_on_ctx(value.func)
        return not called_on_ctx and not isinstance(value, (cst.SimpleString, cst.ConcatenatedString))
    return True


def _is_own(method: Method, target: cst.BaseExpression) -> bool:
    """Whether an assignment only binds names or attributes of ctx."""
    if isinstance(target, (cst.Tuple, cst.List)):
        return all(_is_own(method, each.value) for each in target.elements)
    return isinstance(target, cst.Name) or method.is_on_ctx(target)


_OF_TORCH = tuple(f"torch.{name}" for name in str.split("tensor as_tensor Tensor ones zeros full empty"))
_STATEMENTS: tuple[type[cst.CSTNode], ...] = (
    cst.AssignTarget,
    cst.AugAssign,
    cst.AnnAssign,
    cst.Expr,
    cst.Global,
    cst.Nonlocal,
    cst.With,
    cst.Raise,
    cst.Await,
    cst.Del,
    cst.Yield,
)
