"""Tensors without dimensions, of one number: little memory, wherever they are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.effort import spend
from ctxlint.model.analyses.output_shapes import is_single_number
from ctxlint.model.interpreter.events import Assigned
from ctxlint.model.interpreter.values import Tri, before_views, is_none, is_tensor
from ctxlint.model.syntax import dotted
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from ctxlint.model.analyses.stashes import Stash
    from ctxlint.model.function import FunctionClass

_WORDS = str.split
_REDUCTIONS = frozenset(
    _WORDS("all amax amin any argmax argmin count_nonzero max mean median min nanmean nansum norm prod std sum var")
)
_OF_VECTORS = frozenset(_WORDS("dist dot trace vdot"))
"""Functions whose result never has dimensions."""
_ELEMENT_BY_ELEMENT = frozenset(
    _WORDS("abs clamp clone contiguous detach double exp float half log reciprocal rsqrt sqrt")
)
_MOST_STEPS = 8


def is_one_number(fn: FunctionClass, stash: Stash) -> bool:
    """Whether the tensor may have no dimensions: ``x.sum()``, or computed only from such tensors and numbers.

    Whether it has some may depend on the path.
    """
    options = stash.write.value.options() if stash.write.value is not None else ()
    if any(is_single_number(before_views(each)) for each in options):
        return True
    bound: dict[str, list[cst.BaseExpression | None]] = {}
    for method in fn.context_methods:
        for each in method.facts.of(Assigned):
            bound.setdefault(each.name, []).append(None if each.augmented else each.value_node)
    return (
        stash.write.value_node is not None and _has_no_dimensions(stash.write.value_node, bound, _MOST_STEPS) is Tri.YES
    )


def may_be_number(fn: FunctionClass, attribute: str) -> bool:
    """Whether another assignment stores a number there, or the like: that cannot be saved."""
    values = [each.value for each in fn.writes_by_attribute[attribute] if each.value is not None]
    options = [option for value in values for option in value.options()]
    return any(is_tensor(each) is Tri.NO and is_none(each) is Tri.NO for each in options)


def _has_no_dimensions(node: cst.BaseExpression, bound: dict[str, list[cst.BaseExpression | None]], steps: int) -> Tri:
    """YES for a tensor without dimensions, UNKNOWN for a Python number, NO for anything else."""
    spend()
    if steps == 0:
        return Tri.NO
    if isinstance(node, (cst.Integer, cst.Float)):
        return Tri.UNKNOWN
    if isinstance(node, cst.UnaryOperation):
        return _has_no_dimensions(node.expression, bound, steps - 1)
    if isinstance(node, cst.BinaryOperation):
        sides = {_has_no_dimensions(each, bound, steps - 1) for each in (node.left, node.right)}
        return Tri.NO if Tri.NO in sides else Tri.YES if Tri.YES in sides else Tri.UNKNOWN
    if isinstance(node, cst.Name):
        values = bound.get(node.value, [])
        value = values[0] if len(values) == 1 else None
        return Tri.NO if value is None else _has_no_dimensions(value, bound, steps - 1)
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return Tri.NO
    name, of_torch = node.func.attr.value, dotted(node.func.value) == "torch"
    if name in _OF_VECTORS:
        return Tri.YES
    if name in _REDUCTIONS:
        return Tri.YES if len(node.args) == of_torch and not any(each.keyword for each in node.args) else Tri.NO
    if name in operations.CONVERSIONS and not of_torch:
        return _has_no_dimensions(node.func.value, bound, steps - 1)
    if name not in _ELEMENT_BY_ELEMENT:
        return Tri.NO
    operands = [*([] if of_torch else [node.func.value]), *(each.value for each in node.args)]
    found = [_has_no_dimensions(each, bound, steps - 1) for each in operands]
    return Tri.NO if Tri.NO in found or not found else found[0]
