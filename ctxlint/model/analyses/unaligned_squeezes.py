"""Saved tensors of which ``squeeze()`` removes more than the dimension along which backward reduces what they meet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.flattened import before_copies
from ctxlint.model.analyses.kept_values import kept_value, saved_slot
from ctxlint.model.analyses.like_inputs import are_matrices
from ctxlint.model.analyses.shape_unpackings import present_unit
from ctxlint.model.analyses.squeezed import keeps_dimensions
from ctxlint.model.index.kept_dimensions import REDUCTIONS, chosen_dimension
from ctxlint.model.interpreter.events import GenericCall
from ctxlint.model.interpreter.values import ContextAttribute, Fresh, Tri, before_views, is_input
from ctxlint.model.syntax import is_name, keywords_of, signed_integer
from ctxlint.records import record
from ctxlint.source.ast_tree import parameter_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Value


@record
class UnalignedSqueeze:
    """A ``call`` of ``squeeze()`` next to a ``reduction`` along one ``dimension``."""

    call: cst.Call
    reduction: cst.Call
    dimension: cst.BaseExpression


def unaligned_squeezes(fn: FunctionClass) -> Iterator[UnalignedSqueeze]:
    """Such calls, if forward saves the tensor with size 1 along that very dimension, and an argument tells which it is.

    A negative number tells as well that the tensors have as many dimensions as callers like, unless the code tells that
    there are two at most, where nothing follows the other one.
    """
    forward, backward = fn.forward, fn.judgeable_backward
    if forward is None or backward is None or forward.inherited:
        return
    found = [*_found(fn, forward, backward)]
    tensors = [each.name for each in fn.inputs if each.gradient is not Tri.NO] if found else []
    if not any(are_matrices(fn, each) for each in tensors):
        yield from found


def _found(fn: FunctionClass, forward: Method, backward: Method) -> Iterator[UnalignedSqueeze]:
    for call in backward.nodes_of(cst.Call):
        if call.args or not isinstance(call.func, cst.Attribute) or call.func.attr.value != "squeeze":
            continue
        reduction = _met(backward, call)
        dimension = _reduced(reduction) if reduction is not None else None
        along = _in_backward(fn, backward, dimension) if dimension is not None else ""
        tensor = before_copies(call.func.value)
        if reduction is None or dimension is None or not along or not isinstance(tensor, cst.Name):
            continue
        if _size_one_along(fn, forward, backward.value_of(tensor.value)) == along:
            yield UnalignedSqueeze(call, reduction, dimension)


def _met(backward: Method, call: cst.Call) -> cst.Call | None:
    """The reduction that is added to, multiplied or divided by what a call gives."""
    node: cst.CSTNode = call
    while True:
        around = backward.parents[node]
        copied = backward.parents.get(around) if isinstance(around, cst.Attribute) else None
        if not isinstance(copied, cst.Call) or before_copies(copied) is not before_copies(call):
            break
        node = copied
    if not isinstance(around, cst.BinaryOperation) or isinstance(around.operator, cst.MatrixMultiply):
        return None
    other = before_copies(around.right if around.left is node else around.left)
    made = backward.behind_name(other)
    made = before_copies(made) if made is not None else None
    return made if isinstance(made, cst.Call) else None


def _reduced(call: cst.Call) -> cst.BaseExpression | None:
    """The one dimension that a method removes."""
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in REDUCTIONS:
        return None
    if is_name(call.func.value, "torch") or any(each.star for each in call.args) or keeps_dimensions(call) is not False:
        return None
    return _dimension(call)


def _dimension(call: cst.Call) -> cst.BaseExpression | None:
    """The dimension that a method gets."""
    first = call.args[0].value if call.args and call.args[0].keyword is None and not call.args[0].star else None
    found = keywords_of(call).get("dim", first)
    return None if isinstance(found, (cst.Tuple, cst.List)) else found


def _in_backward(fn: FunctionClass, backward: Method, node: cst.BaseExpression) -> str:
    """The input that a dimension is, by its name, or a negative number; empty if it is anything else."""
    if isinstance(node, cst.Name):
        kept = kept_value(fn, backward.value_of(node.value))
    else:
        kept = kept_value(fn, ContextAttribute(node.attr.value)) if backward.is_on_ctx(node) else None
    return fn.inputs[kept.index].name if is_input(kept) and kept.index < len(fn.inputs) else _negative(node)


def _in_forward(forward: Method, node: cst.BaseExpression | None) -> str:
    """The same for a dimension in forward."""
    if isinstance(node, cst.Name):
        known = node.value not in forward.binders and any(each.name == node.value for each in forward.own_params)
        return node.value if known else ""
    return _negative(node)


def _negative(node: cst.BaseExpression | None) -> str:
    number = signed_integer(node)
    return str(number) if number is not None and number < 0 else ""


def _size_one_along(fn: FunctionClass, forward: Method, value: Value | None) -> str:
    """Along which dimension a saved tensor certainly has size 1, by ``unsqueeze`` or ``keepdim=True``."""
    saved = saved_slot(fn, value)
    bound = (
        forward.only_assignment(saved.node.value) if saved is not None and isinstance(saved.node, cst.Name) else None
    )
    if bound is None:
        return ""
    made = before_copies(bound.value_node) if bound.value_node is not None else None
    if isinstance(made, cst.Call) and isinstance(made.func, cst.Attribute) and not is_name(made.func.value, "torch"):
        kept = made.func.attr.value in REDUCTIONS and keeps_dimensions(made) is True
        found = _dimension(made) if kept or made.func.attr.value == "unsqueeze" else None
        if found is not None:
            return _in_forward(forward, found)
    origin = before_views(bound.value) if bound.value is not None else None
    return _chosen(forward, origin) if isinstance(origin, Fresh) else ""


def _chosen(forward: Method, made: Fresh) -> str:
    """Along which dimension what a function of the project returns has size 1."""
    calls = [each for each in forward.facts.of(GenericCall) if each.node is made.node and each.definition is not None]
    if len(calls) != 1 or calls[0].definition is None or calls[0].replaceable:
        return ""
    unit = present_unit(forward, calls[0].definition)
    parameter = chosen_dimension(unit, calls[0].definition, made.part)
    names = parameter_names(unit.index.functions[calls[0].definition.qualname].node.args) if parameter else []
    given = dict(zip(names, calls[0].arguments, strict=False)) | dict(calls[0].keywords)
    slot = given.get(parameter)
    return _in_forward(forward, slot.node) if slot is not None and not slot.starred else ""
