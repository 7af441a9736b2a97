"""Gradients at wrong positions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.interpreter.values import Tri, is_none

if TYPE_CHECKING:
    from ctxlint.model.function import Returned


def is_shifted(returned: Returned, inputs: int) -> bool:
    """Whether a return has a gradient beyond the last input, so that none of its positions is meaningful."""
    surplus = returned.slots[inputs:] if returned.known else ()
    return any(is_none(slot.value) is Tri.NO for slot in surplus if not slot.starred)
