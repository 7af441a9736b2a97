"""Values that autograd rejects as gradients: containers, numbers, strings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.flags import computed_under
from ctxlint.model.function import InputKind
from ctxlint.model.interpreter.values import (
    NONE,
    Choice,
    Constant,
    Mapping,
    SavedTensors,
    Scalar,
    Sequence,
    TensorTuple,
    Variadic,
    without,
)
from ctxlint.records import record

if TYPE_CHECKING:
    from ctxlint.model.function import FunctionClass, Returned
    from ctxlint.model.interpreter.values import Slot, Value


@record
class RefusedGradient:
    """A value returned by backward that autograd rejects. ``position`` (from 0) is None for the whole return value.

    ``if_needed``: the gradient is None where the input needs none.
    """

    value: Value
    position: int | None = None
    if_needed: bool = False


def refused_gradient(fn: FunctionClass, returned: Returned) -> RefusedGradient | None:
    """The first value in a return that autograd rejects; None if it may accept all of them.

    A value for an input that is certainly not a tensor is skipped: only None would be right, whatever it is.
    """
    if is_refused_gradient(returned.value):
        return RefusedGradient(returned.value)
    if not isinstance(returned.value, Sequence):
        return None
    for position, slot in enumerate(returned.slots):
        if slot.starred or (fn.variadic_inputs is None and position >= len(fn.inputs)):
            return None
        if position < len(fn.inputs) and fn.inputs[position].against_a_gradient:
            continue
        if is_refused_gradient(slot.value) or _is_tuple(slot.value):
            return RefusedGradient(slot.value, position)
        if _is_refused_if_needed(fn, slot, position):
            return RefusedGradient(without(slot.value, NONE), position, if_needed=True)
    return None


def _is_refused_if_needed(fn: FunctionClass, slot: Slot, position: int) -> bool:
    """Whether a gradient is a number under the flag of its input, and None without it."""
    if NONE not in slot.value.options() or not isinstance(slot.node, cst.Name) or fn.backward is None:
        return False
    is_number = position < len(fn.inputs) and fn.inputs[position].kind is InputKind.NON_TENSOR
    refused = not is_number and is_refused_gradient(without(slot.value, NONE))
    return refused and computed_under(fn.backward, slot.node.value) == frozenset([position])


def is_refused_gradient(value: Value) -> bool:
    """Whether autograd certainly rejects what a backward returns: a list, a dict, a number, a string, a generator.

    None is legal, and so is a tuple, whose elements autograd takes.
    """
    if isinstance(value, Choice):
        return all(is_refused_gradient(option) for option in value.alternatives)
    if isinstance(value, Sequence):
        return value.kind != "tuple"
    if isinstance(value, Constant):
        return value.value is not None
    if isinstance(value, Scalar):
        return value.sort not in ("object", "shape")
    return isinstance(value, Mapping)


def is_chosen_by_number(returned: Returned) -> bool:
    """Whether a comparison with a number decides what is returned: ``0.0 if n == 0 else grad``.

    Unlike a flag, or a test for None, nothing of torch makes it always hold.
    """
    written = returned.node.value if isinstance(returned.node, cst.Return) else None
    test = written.test if isinstance(written, cst.IfExp) else None
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return False
    sides = (test.left, test.comparisons[0].comparator)
    return any(isinstance(each, (cst.Integer, cst.Float)) for each in sides)


def _is_tuple(value: Value) -> bool:
    if isinstance(value, Choice):
        return all(_is_tuple(option) for option in value.alternatives)
    return isinstance(value, (Sequence, TensorTuple, SavedTensors, Variadic))
