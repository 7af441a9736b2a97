"""Memory of the caller that a Function gets as an input, fills, and returns: as an output, or as a gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.analyses.mutations import marked_dirty
from ctxlint.model.analyses.outputs import marked_non_differentiable
from ctxlint.model.interpreter.events import GenericCall, MethodCall, Mutation
from ctxlint.model.interpreter.values import (
    Item,
    Tri,
    View,
    is_gradient,
    is_input,
    leaves,
    storage,
    usual_storage,
)
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ctxlint.model.function import ApplyCall, FunctionClass, Returned
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Parameter, Value


@record
class LentMemory:
    """An input that a method returns, at ``node``: it is memory that ``call`` passes in each run, ``given``."""

    node: cst.BaseExpression
    tensor: Parameter
    call: ApplyCall
    given: str


def lent_outputs(fn: FunctionClass) -> Iterator[LentMemory]:
    """The outputs that are memory of the caller, which something that is not known certainly fills.

    Without a gradient of its own, an input that is returned is filled by what gets it together with one that has a
    gradient: otherwise there was nothing to differentiate.
    """
    forward, dirty, undifferentiated = fn.forward, marked_dirty(fn), marked_non_differentiable(fn)
    if forward is None or forward.inherited or not forward.arguments_known or dirty is None or undifferentiated is None:
        return
    marked = dirty.union(undifferentiated)
    for node, value in _returned(fn.outputs):
        tensor = storage(value)
        call = _lender(fn, tensor)
        if call is None or not is_input(tensor) or tensor in marked:
            continue
        if _is_filled(forward, tensor, lambda each: _gets_gradient(fn, each)):
            yield LentMemory(node, tensor, call, call.names[tensor.index])


def lent_gradients(fn: FunctionClass, backward: Method) -> Iterator[LentMemory]:
    """The gradients that are memory of the caller: an input that ctx keeps, and backward fills and returns."""
    for node, value in _returned(fn.gradients):
        read = usual_storage(value)
        tensor = usual_storage(kept) if (kept := kept_value(fn, read)) is not None else None
        call = _lender(fn, tensor)
        if call is None or not is_input(tensor):
            continue
        if _is_filled(backward, read, is_gradient):
            yield LentMemory(node, tensor, call, call.names[tensor.index])


def _returned(results: tuple[Returned, ...]) -> Iterator[tuple[cst.BaseExpression, Value]]:
    for returned in results:
        for slot in returned.slots if returned.known else ():
            node = slot.node
            if node is None and isinstance(returned.node, cst.Return) and len(returned.slots) == 1:
                node = returned.node.value
            if node is not None and not slot.starred:
                yield node, slot.value


def _lender(fn: FunctionClass, tensor: Value | None) -> ApplyCall | None:
    """A call that passes memory which outlives it for an input without gradient."""
    if not is_input(tensor) or tensor.index >= len(fn.inputs) or fn.inputs[tensor.index].gradient is not Tri.NO:
        return None
    calls = (each for each in fn.calls if each.applies and not (each.gradients_off or each.expects_error))
    return next((each for each in calls if tensor.index in each.lasting), None)


def _gets_gradient(fn: FunctionClass, value: Value) -> bool:
    return is_input(value) and value.index < len(fn.inputs) and fn.inputs[value.index].surely_differentiable


def _is_filled(method: Method, own: Value | None, is_source: Callable[[Value], bool]) -> bool:
    """Whether an unknown function gets a tensor with a source of its values, and nothing that is known writes to it."""
    if any(_whole(each.target) == own for each in method.facts.of(Mutation) if each.target is not None):
        return False
    calls = [each for each in method.facts.of(GenericCall) if not (each.callee or "").startswith(_READING)]
    passed = [(*each.arguments, *(slot for _name, slot in each.keywords)) for each in calls]
    for slots in (*passed, *(each.arguments for each in method.facts.of(MethodCall))):
        given = [_whole(each) for slot in slots for each in leaves(slot.value)]
        if own in given and any(map(is_source, given)):
            return True
    return False


_READING = ("torch.", "builtins.", "math.", "numpy.")


def _whole(value: Value) -> Value:
    """What a value is a view or an element of."""
    while isinstance(value, (View, Item)):
        value = value.of
    return value
