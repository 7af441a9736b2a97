"""What forward stored where backward reads a value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.interpreter.values import ContextAttribute, SavedTensor

if TYPE_CHECKING:
    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.values import Slot, Value


def kept_value(fn: FunctionClass, value: Value | None) -> Value | None:
    """The value that forward stored where backward reads this one."""
    if isinstance(value, SavedTensor):
        saved = saved_slot(fn, value)
        return saved.value if saved is not None else None
    if isinstance(value, ContextAttribute):
        writes = [write for write in fn.context_writes if write.attribute == value.name]
        return writes[0].value if len(writes) == 1 and not fn.escapes else None
    return None


def saved_slot(fn: FunctionClass, value: Value | None) -> Slot | None:
    """What forward passed to ``save_for_backward`` where backward reads this value."""
    if not isinstance(value, SavedTensor):
        return None
    slots = fn.saves[0].arguments[: value.index + 1] if len(fn.saves) == 1 and not fn.escapes else ()
    known = 0 <= value.index < len(slots) and not any(slot.starred for slot in slots)
    return slots[value.index] if known else None
