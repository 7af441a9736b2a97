"""Outputs that are views: torch does not allow modifying them in place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.outputs import may_be_non_differentiable
from ctxlint.model.index.apply_calls import ArgumentKind
from ctxlint.model.interpreter.values import (
    Alias,
    Fresh,
    Item,
    Kind,
    Opaque,
    Tri,
    View,
    detaches,
    is_input,
    is_tensor,
    kind_of,
)
from ctxlint.model.syntax import dotted, single_index
from ctxlint.patterns import pattern
from ctxlint.torch_api.operations import FLOAT_CONVERSIONS, TUPLE_METHODS, USUAL_VIEW_METHODS, VIEW_METHODS

if TYPE_CHECKING:
    from ctxlint.model.function import FunctionClass
    from ctxlint.model.index.apply_calls import ApplyCall
    from ctxlint.model.interpreter.values import Value


def returns_view(
    fn: FunctionClass, output: int | None, argument: int | None = None, call: ApplyCall | None = None
) -> str | None:
    """A description of an output that, on a return of forward, is certainly an input or a view, not marked.

    ``output`` is its number, None for a single output; ``argument`` restricts it to one input. A number that ``call``
    passes for an index makes an item a view. None if no return is certainly one, or several differ.
    """
    if fn.escapes or not fn.outputs or fn.context_calls("mark_dirty"):
        return None
    numbers = _numbers(fn, call) if call is not None else frozenset()
    found: set[tuple[str, int | None] | None] = set()
    for returned in fn.outputs:
        if output is not None and (not returned.known or not returned.exact or output >= len(returned.slots)):
            return None
        value = returned.value if output is None else returned.slots[output].value
        if may_be_non_differentiable(fn, value):
            return None
        found |= {_description(option, numbers) for option in value.options()}
    views = found - {None}
    shown = views.pop() if len(views) == 1 else None
    if shown is None or (argument is not None and shown[1] != argument):
        return None
    return shown[0] if len(found) == 1 else f"{shown[0]} on one path"


def returns_optional_input(fn: FunctionClass) -> bool:
    """Whether an input that the output is on some path, or is a view of, may be None: not all callers pass it."""
    described = (_description(option) for each in fn.outputs for option in each.value.options())
    indices = {each[1] for each in described if each is not None}
    return any(index is not None and fn.inputs[index].may_be_none for index in indices)


def input_behind(fn: FunctionClass, output: int) -> tuple[int, bool] | None:
    """The input that an output certainly is, or is a view of, on all returns of forward; and whether it is itself."""
    found: set[tuple[int, bool] | None] = set()
    for returned in fn.outputs:
        if not returned.known or not returned.exact or output >= len(returned.slots):
            return None
        for value in returned.slots[output].value.options():
            described = _description(value)
            index = value.index if is_input(value) else described[1] if described is not None else None
            is_one = index is not None and (fn.inputs[index].is_tensor is Tri.YES or not is_input(value))
            found.add((index, is_input(value)) if index is not None and is_one else None)
    return found.pop() if len(found) == 1 else None


def may_return_view(fn: FunctionClass) -> bool:
    """Whether forward, of which only the code is known, seems to return a name, a part of a tensor or a view of one.

    Or what a function returns that it calls by a plain name.
    """
    returned = fn.forward.nodes_of(cst.Return) if fn.forward is not None else ()
    return any(_seems_a_view(each.value) for each in returned if each.value is not None)


def _seems_a_view(node: cst.BaseExpression) -> bool:
    if not isinstance(node, cst.Call):
        return isinstance(node, (cst.Name, cst.Subscript))
    if isinstance(node.func, cst.Name):
        return True
    return isinstance(node.func, cst.Attribute) and node.func.attr.value in _VIEWING


_VIEWING = VIEW_METHODS | USUAL_VIEW_METHODS | TUPLE_METHODS


def _numbers(fn: FunctionClass, call: ApplyCall) -> frozenset[str]:
    """The inputs for which a call passes a whole number, which forward does not bind again."""
    forward = fn.forward
    given = {at for at, kind in enumerate(call.arguments) if kind is ArgumentKind.NUMBER}
    names = [each.name for each in fn.inputs if each.index in given]
    return frozenset(name for name in names if forward is not None and name not in forward.assignments)


def _is_picked(view: View, numbers: frozenset[str]) -> bool:
    """Whether a view is an item by an index that is a number."""
    index = single_index(view.node) if isinstance(view.node, cst.Subscript) else None
    return isinstance(index, cst.Name) and index.value in numbers


def _description(value: Value, numbers: frozenset[str] = frozenset()) -> tuple[str, int | None] | None:
    if is_input(value) and is_tensor(value) is Tri.YES:
        return f"the input `{value.name}`", value.index
    base, copies = value, False
    while isinstance(base, View):
        always = base.alias is Alias.ALWAYS or _is_picked(base, numbers)
        if detaches(base) or not (always or (base is not value and _keeps_kind(base))):
            return None
        base, copies = base.of, copies or not always
    if base is value or is_tensor(value) is not Tri.YES:
        return None
    if any(kind_of(each) is Kind.INTEGRAL for each in base.options()):
        return None
    if all(map(_is_computed, base.options())):
        return "a view of what it computed", None
    if not is_input(base) or is_tensor(base) is not Tri.YES:
        return None
    return f"a view of the input `{base.name}`{' or of a copy' * copies}", None if copies else base.index


def _keeps_kind(view: View) -> bool:
    """Whether what may copy a tensor certainly makes no integers of it, as ``to`` may: those get no gradient."""
    if not isinstance(view.node, cst.Call) or not isinstance(view.node.func, cst.Attribute):
        return False
    name, passed = view.node.func.attr.value, [dotted(each.value) or "" for each in view.node.args]
    floating = all(each.endswith((".dtype", ".device")) or _FLOATING.fullmatch(each) for each in passed)
    return name in _PLAIN_COPIES or name in FLOAT_CONVERSIONS or (name in ("to", "type") and floating)


_FLOATING = pattern(r"torch\.(?:b?float(?:16|32|64)?|double|half)")
_PLAIN_COPIES = frozenset(["contiguous", "cpu", "cuda", "flatten", "ravel", "reshape"])


def _is_computed(value: Value) -> bool:
    """Whether forward computes it, as it is a tensor at all."""
    return isinstance(value, (Opaque, Item)) or (isinstance(value, Fresh) and is_tensor(value) is Tri.YES)
