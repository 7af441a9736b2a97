"""Inputs and outputs that forward saves as their ``.data``, which has a version counter of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.outputs import differentiable_outputs
from ctxlint.model.analyses.saved_state import single_save
from ctxlint.model.analyses.saved_state_uses import Place, uses_of_kept
from ctxlint.model.interpreter.events import DataReplaced, Mutation
from ctxlint.model.interpreter.values import Alias, Parameter, SavedTensor, Tri, View, same_object, usual_storage
from ctxlint.model.syntax import code_of
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.values import Slot, Value


@record
class SavedData:
    """The saved argument, the code of the tensor whose ``.data`` it is, and whether backward computes with it."""

    argument: Slot
    tensor: str
    computes: bool


def saved_data(fn: FunctionClass) -> Iterator[SavedData]:
    """Each such argument that backward uses; not one whose memory the Function itself modifies."""
    saved = single_save(fn) or ()
    for at, argument in enumerate(saved):
        found = _data_of(argument.value)
        if found is None or not _matters(fn, found[0]) or _is_modified_here(fn, found[0]):
            continue
        if any(each.value == found[0] for each in saved):
            continue
        uses = uses_of_kept(fn, "saved_tensors", contained=True, places=(Place(at, len(saved)),))
        if not uses.only_metadata:
            yield SavedData(argument, found[1], uses.computes)


def _data_of(value: Value) -> tuple[Value, str] | None:
    """The tensor whose memory a value certainly has through its ``.data``, and the code of it."""
    code = None
    while isinstance(value, View) and value.alias is Alias.ALWAYS:
        if isinstance(value.node, cst.Attribute) and value.node.attr.value == "data":
            code = code_of(value.node.value)
        value = value.of
    return (value, code) if code is not None else None


def _matters(fn: FunctionClass, tensor: Value) -> bool:
    """Whether it is an input that gets a gradient, or an output that has one."""
    if isinstance(tensor, Parameter):
        entry = fn.inputs[tensor.index] if tensor.role == "input" and tensor.index < len(fn.inputs) else None
        return entry is not None and entry.gradient is Tri.YES and not entry.against_a_gradient
    return any(same_object(tensor, each) is Tri.YES for each in differentiable_outputs(fn))


def _is_modified_here(fn: FunctionClass, tensor: Value) -> bool:
    """Whether the Function itself may modify the memory of the tensor: then it cannot save the tensor itself."""
    written = [each.target for method in fn.earlier_methods for each in method.facts.of(Mutation)]
    later: list[Value | None] = [each.target for method in fn.reading_methods for each in method.facts.of(Mutation)]
    later += [each.target for method in fn.reading_methods for each in method.facts.of(DataReplaced)]
    return any(each is None or usual_storage(each) == tensor for each in written) or any(
        each is None or isinstance(usual_storage(each), SavedTensor) for each in later
    )
