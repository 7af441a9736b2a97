"""Attributes that forward sets on a tensor and backward reads from the saved one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.saved_state import output_objects, single_save
from ctxlint.model.interpreter.events import ExtraAttribute
from ctxlint.model.interpreter.values import Parameter, SavedTensor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.values import Slot, Value


def lost_attributes(fn: FunctionClass) -> Iterator[tuple[ExtraAttribute, ExtraAttribute, str]]:
    """Each such read in backward, with where forward sets the attribute, and what the tensor is.

    None if backward reads another attribute, too: then the tensor is of a class that has them, and must come back.
    """
    saved, outputs = single_save(fn), output_objects(fn)
    if fn.backward is None or saved is None:
        return
    uses = fn.backward.facts.of(ExtraAttribute)
    renewed = {(each.value, each.attribute) for each in uses if each.written}
    stores = [each for method in fn.earlier_methods for each in method.facts.of(ExtraAttribute) if each.written]
    stored = {(each.value, each.attribute) for each in stores}
    of_a_class = {
        each.value for each in uses if not each.written and (_saved(saved, each), each.attribute) not in stored
    }
    for read in uses:
        tensor = _saved(saved, read)
        if read.written or tensor is None or read.value in of_a_class or (read.value, read.attribute) in renewed:
            continue
        tested = any(guard.mentions(read.attribute) for guard in read.guards)
        store = next((each for each in stores if (each.value, each.attribute) == (tensor, read.attribute)), None)
        if store is not None and not tested:
            what = "input" if isinstance(tensor, Parameter) else "output" if tensor in outputs else "intermediate"
            yield read, store, what


def _saved(saved: tuple[Slot, ...], use: ExtraAttribute) -> Value | None:
    """What forward saved for a saved tensor that backward uses."""
    at = use.value.index if isinstance(use.value, SavedTensor) else len(saved)
    return saved[at].value if at < len(saved) else None
