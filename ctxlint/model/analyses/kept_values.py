"""What forward stored where backward reads a value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.interpreter.values import ContextAttribute, SavedTensor

if TYPE_CHECKING:
    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.values import Value


def kept_value(fn: FunctionClass, value: Value | None) -> Value | None:
    """The value that forward stored where backward reads this one."""
    if isinstance(value, SavedTensor):
        slots = fn.saves[0].arguments[: value.index + 1] if len(fn.saves) == 1 and not fn.escapes else ()
        known = 0 <= value.index < len(slots) and not any(slot.starred for slot in slots)
        return slots[value.index].value if known else None
    if isinstance(value, ContextAttribute):
        writes = [write for write in fn.context_writes if write.attribute == value.name]
        return writes[0].value if len(writes) == 1 and not fn.escapes else None
    return None
