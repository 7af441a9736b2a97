"""Saved tensors that a caller modifies in place before ``backward`` reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.interpreter.values import Fresh, Item, Opaque, Tri, is_input

if TYPE_CHECKING:
    from ctxlint.model.function import FunctionClass, Returned
    from ctxlint.model.index.apply_calls import ApplyCall, Modified
    from ctxlint.model.interpreter.values import Value


def may_require_gradient(fn: FunctionClass, call: ApplyCall) -> bool:
    """Whether an input of a call may require a gradient, and it returns what ``forward`` of its class returns."""
    if call.gradients_off or call.expects_error or not fn.signature_judgeable:
        return False
    if fn.forward is None or not fn.forward.signature_known or fn.backward is None:
        return False
    return any(each.index not in call.detached and Tri.NO not in (each.is_tensor, each.gradient) for each in fn.inputs)


def is_saved(fn: FunctionClass, change: Modified) -> bool:
    """Whether forward certainly saves what a caller modifies before backward, which certainly reads saved tensors."""
    if not change.undone or fn.escapes or fn.saves_replaced or len(fn.saves) != 1:
        return False
    save = fn.saves[0]
    reads = [each for each in fn.saved_reads if each.via != "saved_for_forward" and not each.guards]
    if save.guards or not save.exact or save.conditional or not reads:
        return False
    saved = [slot.value for slot in save.arguments]
    if change.argument is not None:
        return any(is_input(each) and each.index == change.argument for each in saved)
    outputs = [_output(each, change.output) for each in fn.outputs]
    return bool(outputs) and all(each is not None and each in saved for each in outputs)


def _output(returned: Returned, position: int | None) -> Value | None:
    """What is returned at a position, or as the only output if that is None, if its identity is known."""
    if position is not None and not (returned.exact and position < len(returned.slots)):
        return None
    value = returned.value if position is None else returned.slots[position].value
    return value if is_input(value) or isinstance(value, (Fresh, Item, Opaque)) else None
