"""Inputs, as they were saved, with respect to which backward differentiates: a frozen one needs no gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.saved_state import kept_value
from ctxlint.model.interpreter.events import GenericCall, GradientFlag, NeedsInputGradRead
from ctxlint.model.interpreter.values import Parameter, Sequence, Tri

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Slot, Value

_GRAD = "torch.autograd.grad"


def frozen_inputs(fn: FunctionClass, method: Method) -> Iterator[tuple[Slot, Parameter]]:
    """Elements of the second argument of ``torch.autograd.grad`` that are an input as it was saved, with that input.

    Only if another input may be the one that needs a gradient, and if nothing asks which of them do, or sets the flag.
    """
    if sum(each.gradient is Tri.YES for each in fn.inputs) < 2 or fn.escapes:
        return
    if bool(method.facts.of(GradientFlag)) or bool(method.facts.of(NeedsInputGradRead)):
        return
    for call in method.facts.of(GenericCall):
        if call.callee != _GRAD or call.guards or method.name in fn.called_directly:
            continue
        by = call.arguments[1] if len(call.arguments) > 1 else dict(call.keywords).get("inputs")
        slots = by.value.slots if by is not None and isinstance(by.value, Sequence) else ()
        for slot in slots if len(slots) > 1 else ():
            origin = _input_of(fn, slot.value)
            if origin is not None and not slot.starred:
                yield slot, origin


def _input_of(fn: FunctionClass, value: Value) -> Parameter | None:
    """The input with a gradient that a stored tensor is."""
    kept = kept_value(fn, value)
    if not isinstance(kept, Parameter) or kept.role != "input":
        return None
    return kept if fn.inputs[kept.index].gradient is Tri.YES else None
