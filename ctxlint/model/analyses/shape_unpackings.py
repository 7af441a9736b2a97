"""Where backward unpacks the shape of a saved input into another number of names than forward does."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from ctxlint.model.analyses.conditional_code import Runs, runs
from ctxlint.model.analyses.saved_state import single_save
from ctxlint.model.analyses.saved_tensors import saved_counts, saving_call
from ctxlint.model.interpreter.events import DataReplaced, Reshaped
from ctxlint.model.interpreter.values import Parameter, SavedTensor, is_input

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method


class ShapeUnpacking(NamedTuple):
    """``a, b = x.shape``: the ``statement``, the ``tensor`` and the number of names."""

    statement: cst.Assign
    tensor: cst.Name
    names: int


class ShapeMismatch(NamedTuple):
    """Two unpackings of the shape of one tensor into different numbers of names: the later one raises ValueError."""

    here: ShapeUnpacking
    in_forward: ShapeUnpacking


def shape_mismatches(fn: FunctionClass, method: Method) -> Iterator[ShapeMismatch]:
    """The unpackings in a method that reads saved tensors that certainly raise if they run."""
    unpacked = {tensor: each for each in _unpackings(method) if (tensor := _saved_input(fn, method, each)) is not None}
    forward = fn.forward
    if not unpacked or forward is None or not (forward.arguments_known and _shapes_stay(fn, method)):
        return
    for there in _unpackings(forward):
        entry = next((each for each in forward.own_params if each.name == there.tensor.value), None)
        always = runs(forward, there.statement) is Runs.ALWAYS and forward.holds_argument(
            there.tensor.value, there.tensor
        )
        for tensor, here in unpacked.items() if always and entry is not None else ():
            if tensor.name == there.tensor.value and here.names != there.names:
                yield ShapeMismatch(here, there)


def _shapes_stay(fn: FunctionClass, method: Method) -> bool:
    """Whether backward gets what forward saves, with its shape."""
    methods = {*fn.context_methods, method, *filter(None, (fn.forward,))}
    changed = any(each.facts.of(kind) for each in methods for kind in (Reshaped, DataReplaced))
    return not changed and saved_counts(fn, saving_call(method)) is not None


def _saved_input(fn: FunctionClass, method: Method, here: ShapeUnpacking) -> Parameter | None:
    """The input that is certainly unpacked: the name is only ever bound to that saved tensor."""
    value = method.value_of(here.tensor.value)
    saved = single_save(fn) if isinstance(value, SavedTensor) and saving_call(method) == "save_for_backward" else None
    if saved is None or not isinstance(value, SavedTensor) or not 0 <= value.index < len(saved):
        return None
    argument = saved[value.index].value
    return argument if is_input(argument) and runs(method, here.statement) is Runs.ALWAYS else None


def _unpackings(method: Method) -> Iterator[ShapeUnpacking]:
    """Every ``a, b = x.shape`` and ``a, b = x.size()`` outside of ``try``, in order."""
    for each in method.nodes_of(cst.Assign):
        tensor = _tensor_of_shape(each.value)
        targets = each.targets[0].target
        if tensor is None or not isinstance(targets, (cst.Tuple, cst.List)) or len(each.targets) > 1:
            continue
        starred = any(isinstance(element, cst.StarredElement) for element in targets.elements)
        if not starred and not any(isinstance(around, (cst.Try, cst.TryStar)) for around in method.above(each)):
            yield ShapeUnpacking(each, tensor, len(targets.elements))


def _tensor_of_shape(node: cst.BaseExpression) -> cst.Name | None:
    """``x`` of ``x.shape`` and ``x.size()``."""
    attribute = "shape"
    if isinstance(node, cst.Call) and not node.args:
        node, attribute = node.func, "size"
    is_shape = isinstance(node, cst.Attribute) and node.attr.value == attribute
    return node.value if is_shape and isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name) else None
