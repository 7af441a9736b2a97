"""Memory of the caller that a Function gets as an input, fills, and returns: as an output, or as a gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.analyses.mutations import marked_dirty
from ctxlint.model.analyses.outputs import marked_non_differentiable
from ctxlint.model.interpreter.events import GenericCall, MethodCall, Mutation
from ctxlint.model.interpreter.values import (
    Tri,
    is_gradient,
    is_input,
    leaves,
    storage,
    taken_from,
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
    saved: bool = False


def lent_outputs(fn: FunctionClass) -> Iterator[LentMemory]:
    """The outputs that are memory of the caller, which something that is not known certainly fills.

    If no other output has a gradient, they are filled by what gets them together with an input that has one: otherwise
    there was nothing to differentiate.
    """
    forward, dirty, undifferentiated = fn.forward, marked_dirty(fn), marked_non_differentiable(fn)
    if forward is None or forward.inherited or not forward.arguments_known or dirty is None or undifferentiated is None:
        return
    saved = {storage(slot.value) for save in fn.saves for slot in save.arguments}
    for returned in fn.outputs:
        pairs = [(node, storage(value)) for node, value in returned_pairs(returned)]
        lent = [(node, tensor, _lender(fn, tensor)) for node, tensor in pairs if tensor not in undifferentiated]
        if not pairs or any(tensor in dirty or not (call and call.handed_back) for _node, tensor, call in lent):
            continue
        memory = frozenset(tensor for _node, tensor, _call in lent if tensor is not None)
        if not _is_filled(forward, memory, lambda each: _gets_gradient(fn, each)):
            continue
        for node, tensor, call in lent:
            if call is not None and is_input(tensor):
                yield LentMemory(node, tensor, call, call.names[tensor.index], saved=tensor in saved)


def lent_gradients(fn: FunctionClass, backward: Method) -> Iterator[LentMemory]:
    """The gradients that are memory of the caller: an input that ctx keeps, and backward fills and returns."""
    for node, value in (pair for returned in fn.gradients for pair in returned_pairs(returned)):
        read = usual_storage(value)
        tensor = usual_storage(kept) if (kept := kept_value(fn, read)) is not None else None
        call = _lender(fn, tensor)
        if call is None or not is_input(tensor) or read is None:
            continue
        if _is_filled(backward, frozenset({read}), is_gradient):
            yield LentMemory(node, tensor, call, call.names[tensor.index])


def returned_pairs(returned: Returned) -> list[tuple[cst.BaseExpression, Value]]:
    """What is returned, each with its node; nothing unless all of it is known."""
    if not returned.known or any(slot.starred for slot in returned.slots):
        return []
    alone = returned.node.value if isinstance(returned.node, cst.Return) and len(returned.slots) == 1 else None
    found = [(slot.node or alone, slot.value) for slot in returned.slots]
    pairs = [(node, value) for node, value in found if node is not None]
    return pairs if len(pairs) == len(found) else []


def _lender(fn: FunctionClass, tensor: Value | None) -> ApplyCall | None:
    """A call that passes memory which outlives it for an input without gradient."""
    if not is_input(tensor) or tensor.index >= len(fn.inputs) or fn.inputs[tensor.index].gradient is not Tri.NO:
        return None
    calls = (each for each in fn.calls if each.applies and not (each.gradients_off or each.expects_error))
    return next((each for each in calls if tensor.index in each.lasting), None)


def _gets_gradient(fn: FunctionClass, value: Value) -> bool:
    return is_input(value) and value.index < len(fn.inputs) and fn.inputs[value.index].surely_differentiable


def _is_filled(method: Method, memory: frozenset[Value], is_source: Callable[[Value], bool]) -> bool:
    """Whether a function that is called for nothing but its effect gets all of some memory, and a source of its values.

    Not so if something that is known writes to it.
    """
    if any(taken_from(each.target) in memory for each in method.facts.of(Mutation) if each.target is not None):
        return False
    calls = [each for each in method.facts.of(GenericCall) if not (each.callee or "").startswith(_READING)]
    passed = [(each.node, (*each.arguments, *(slot for _name, slot in each.keywords))) for each in calls]
    for node, slots in (*passed, *((each.node, each.arguments) for each in method.facts.of(MethodCall))):
        given = {taken_from(each) for slot in slots for each in leaves(slot.value)}
        if isinstance(method.parents.get(node), cst.Expr) and memory <= given and any(map(is_source, given)):
            return True
    return False


_READING = ("torch.", "builtins.", "math.", "numpy.")
