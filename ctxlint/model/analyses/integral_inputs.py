"""Inputs that are used as an index: tensors of integers or bools, which can never require a gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.conditional_code import Runs, runs
from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.interpreter.values import is_input, tensor_when_used
from ctxlint.model.syntax import dotted, keywords_of, last_name
from ctxlint.torch_api import types
from ctxlint.torch_api.operations import INTEGRAL_ARGUMENTS, USUAL_VIEW_METHODS, VIEW_METHODS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass, Input
    from ctxlint.model.interpreter.method import Method


def holds_integers(fn: FunctionClass, entry: Input, *, always: bool = False) -> bool:
    """Whether an input is annotated as a tensor of integers or bools, or used as an index: on some path, or on all."""
    return entry.param.annotation in types.INTEGRAL_ANNOTATIONS or entry.index in indices(fn)[always]


def indices(fn: FunctionClass) -> tuple[frozenset[int], frozenset[int]]:
    """The numbers of the inputs that forward or backward uses as an index, and of those that forward always does."""
    if indices not in fn.notes:
        always = frozenset(_indices_of_forward(fn, always=True))
        fn.notes[indices] = frozenset(_indices_of_forward(fn)).union(_indices_of_backward(fn)), always
    found: tuple[frozenset[int], frozenset[int]] = fn.notes[indices]
    return found


def _indices_of_forward(fn: FunctionClass, *, always: bool = False) -> Iterator[int]:
    forward = fn.forward
    for each in fn.inputs if forward is not None else ():
        for use in forward.named.get(each.name, ()) if forward is not None else ():
            if forward is not None and _is_index(forward, use) and forward.holds_argument(each.name, use):
                if not always or runs(forward, use) is Runs.ALWAYS:
                    yield each.index


def _indices_of_backward(fn: FunctionClass) -> Iterator[int]:
    backward = fn.backward
    for name, uses in backward.named.items() if backward is not None else ():
        kept = kept_value(fn, backward.value_of(name)) if backward is not None else None
        if is_input(kept) and any(backward is not None and _is_index(backward, use) for use in uses):
            yield kept.index


def _is_index(method: Method, use: cst.Name) -> bool:
    """Whether a name, or a view of what it is bound to, is an argument that must hold integers, or indexes a tensor."""
    node: cst.BaseExpression = use
    while (viewed := method.called_on(node))[0] is not None and viewed[1] in _VIEWS:
        node = viewed[0]
    around = method.parents[node]
    if isinstance(around, cst.Index):
        indexed = method.around(around, cst.Subscript)
        return indexed is not None and _is_tensor(method, indexed.value)
    call = method.parents[around] if isinstance(around, cst.Arg) and around.value is node else None
    if not isinstance(call, cst.Call) or not isinstance(around, cst.Arg):
        return False
    position = _integral_position(method, call)
    if position is None or any(each.star for each in call.args):
        return False
    return keywords_of(call).get("index") is node or (around.keyword is None and call.args.index(around) == position)


_VIEWS = VIEW_METHODS | USUAL_VIEW_METHODS


def _integral_position(method: Method, call: cst.Call) -> int | None:
    """The position of the argument of a call that must be a tensor of integers: a function of torch, or a method."""
    name = last_name(call.func).rstrip("_")
    position = INTEGRAL_ARGUMENTS.get(name)
    if position is None:
        return None
    meant = method.meaning(dotted(call.func) or "")
    if meant.startswith("torch."):
        return 1 if meant == "torch.embedding" else position
    is_method = isinstance(call.func, cst.Attribute) and position > 0 and _is_tensor(method, call.func.value)
    return position - 1 if is_method else None


def _is_tensor(method: Method, node: cst.BaseExpression) -> bool:
    """Whether an expression is certainly a tensor: a name that only ever holds one, or an incoming gradient."""
    if not isinstance(node, cst.Name):
        return False
    bound = method.assignments.get(node.value, ())
    if not bound and method.name in ("backward", "vjp"):
        return any(each.name == node.value for each in method.positional)
    return bool(bound) and all(each.value is not None and tensor_when_used(each.value) for each in bound)
