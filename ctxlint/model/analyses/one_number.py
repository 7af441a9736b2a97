"""Tensors of one number: little memory, wherever they are kept."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.effort import spend
from ctxlint.model.analyses.output_shapes import is_single_number
from ctxlint.model.analyses.unread_arguments import certainly_called
from ctxlint.model.interpreter.events import Assigned
from ctxlint.model.interpreter.local_names import only_assigned
from ctxlint.model.interpreter.values import Fresh, Tri, before_views, is_none, is_tensor
from ctxlint.model.syntax import dotted, parents_below
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ctxlint.model.analyses.stashes import Stash
    from ctxlint.model.function import FunctionClass

    Find = Callable[[str], cst.BaseExpression | None]
    """What is the only value that a name is assigned; None if there are others, or none is known."""

_WORDS = str.split
_REDUCTIONS = frozenset(
    _WORDS("all amax amin any argmax argmin count_nonzero max mean median min nanmean nansum norm prod std sum var")
)
_OF_VECTORS = frozenset(_WORDS("dist dot trace vdot"))
"""Functions whose result never has dimensions."""
_ELEMENT_BY_ELEMENT = frozenset(
    _WORDS("abs clamp clone contiguous detach double exp float half log reciprocal rsqrt sqrt")
)
_SAME_ELEMENTS = frozenset(_WORDS("flatten reshape squeeze unsqueeze view")) | operations.CONVERSIONS
"""Methods whose result has as many elements, whatever else they take."""
_OF_A_SIZE = frozenset(_WORDS("empty full ones zeros"))
_NUMBERS = frozenset(_WORDS("dim element_size item nelement numel size"))
"""Methods that return a number, with an argument at the most."""
_MOST_STEPS = 8


def is_one_number(fn: FunctionClass, stash: Stash) -> bool:
    """Whether the tensor may have one element: ``x.sum()``, ``torch.tensor([n])``, or computed only from such tensors.

    How many it has may depend on the path.
    """
    options = stash.write.value.options() if stash.write.value is not None else ()
    if any(is_single_number(before_views(each)) for each in options):
        return True
    bound: dict[str, list[cst.BaseExpression | None]] = {}
    for method in fn.context_methods:
        for each in method.facts.of(Assigned):
            bound.setdefault(each.name, []).append(None if each.augmented else each.value_node)

    def find(name: str) -> cst.BaseExpression | None:
        values = bound.get(name, [])
        return values[0] if len(values) == 1 else None

    written = stash.write.value_node
    if written is not None and _of_one_number(written, find, _MOST_STEPS) is Tri.YES:
        return True
    origins = map(before_views, options)
    return any(isinstance(each, Fresh) and _is_returned_as_one(fn, each) for each in origins)


def _is_returned_as_one(fn: FunctionClass, value: Fresh) -> bool:
    """Whether a function of the project computes it, and returns a tensor of one number there."""
    if not isinstance(value.node, cst.Call):
        return False
    found = (certainly_called(method, value.node) for method in fn.context_methods)
    definition = next((each[1] for each in found if each is not None), None)
    if definition is None:
        return False
    returned = [each.value for each in parents_below(definition.body) if isinstance(each, cst.Return)]
    result = returned[0] if len(returned) == 1 else None
    if value.part is not None:
        elements = result.elements if isinstance(result, (cst.Tuple, cst.List)) else ()
        starred = any(isinstance(each, cst.StarredElement) for each in elements)
        result = elements[value.part].value if not starred and value.part < len(elements) else None
    return result is not None and _of_one_number(result, partial(only_assigned, definition), _MOST_STEPS) is Tri.YES


def may_be_number(fn: FunctionClass, attribute: str) -> bool:
    """Whether another assignment stores a number there, or the like: that cannot be saved."""
    values = [each.value for each in fn.writes_by_attribute[attribute] if each.value is not None]
    options = [option for value in values for option in value.options()]
    return any(is_tensor(each) is Tri.NO and is_none(each) is Tri.NO for each in options)


def _of_one_number(node: cst.BaseExpression, find: Find, steps: int) -> Tri:
    """YES for a tensor of one number, UNKNOWN for a Python number, NO for anything else."""
    spend()
    if steps == 0:
        return Tri.NO
    if isinstance(node, (cst.Integer, cst.Float)) or _is_size(node):
        return Tri.UNKNOWN
    if isinstance(node, cst.UnaryOperation):
        return _of_one_number(node.expression, find, steps - 1)
    if isinstance(node, cst.BinaryOperation):
        sides = {_of_one_number(each, find, steps - 1) for each in (node.left, node.right)}
        return Tri.NO if Tri.NO in sides else Tri.YES if Tri.YES in sides else Tri.UNKNOWN
    if isinstance(node, cst.Name):
        value = find(node.value)
        return Tri.NO if value is None else _of_one_number(value, find, steps - 1)
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Name):
        return Tri.UNKNOWN if node.func.value in ("float", "int", "len") else Tri.NO
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return Tri.NO
    return _of_a_method(node, node.func, find, steps - 1)


def _of_a_method(node: cst.Call, func: cst.Attribute, find: Find, steps: int) -> Tri:
    """The same of ``torch.f(...)`` and ``x.f(...)``."""
    name, of_torch = func.attr.value, dotted(func.value) == "torch"
    starred = any(each.star for each in node.args)
    values = [] if starred else [each.value for each in node.args if each.keyword is None]
    if name in _OF_VECTORS:
        return Tri.YES
    if name in _REDUCTIONS:
        return Tri.YES if len(node.args) == of_torch and not any(each.keyword for each in node.args) else Tri.NO
    if name in _NUMBERS and not of_torch and len(node.args) == (name == "size"):
        return Tri.UNKNOWN
    if (name in _OF_A_SIZE and of_torch) or (name.startswith("new_") and name[4:] in _OF_A_SIZE):
        sizes = values[:1] if name.endswith("full") else values
        return Tri.YES if bool(sizes) and all(map(_is_size_of_one, sizes)) else Tri.NO
    if name in ("tensor", "as_tensor", "new_tensor") and of_torch is not name.startswith("new_") and values:
        element = _only_element(values[0])
        return Tri.NO if _of_one_number(element, find, steps) is Tri.NO else Tri.YES
    if name in _SAME_ELEMENTS and not of_torch:
        return _of_one_number(func.value, find, steps)
    if name not in _ELEMENT_BY_ELEMENT:
        return Tri.NO
    operands = [*([] if of_torch else [func.value]), *(each.value for each in node.args)]
    found = [_of_one_number(each, find, steps) for each in operands]
    return Tri.NO if Tri.NO in found or not found else found[0]


def _is_size(node: cst.BaseExpression) -> bool:
    """``x.shape[0]``."""
    value = node.value if isinstance(node, cst.Subscript) else None
    at = node.slice[0].slice if isinstance(node, cst.Subscript) and len(node.slice) == 1 else None
    return isinstance(value, cst.Attribute) and value.attr.value == "shape" and isinstance(at, cst.Index)


def _only_element(node: cst.BaseExpression) -> cst.BaseExpression:
    """What a list or tuple of one element holds, or one in another; anything else itself."""
    while isinstance(node, (cst.List, cst.Tuple)) and len(node.elements) == 1:
        if isinstance(node.elements[0], cst.StarredElement):
            break
        node = node.elements[0].value
    return node


def _is_size_of_one(node: cst.BaseExpression) -> bool:
    """``1``, ``(1, 1)`` or ``[]``."""
    elements: Sequence[cst.BaseElement] = node.elements if isinstance(node, (cst.List, cst.Tuple)) else ()
    if isinstance(node, (cst.List, cst.Tuple)):
        return all(isinstance(each, cst.Element) and _is_size_of_one(each.value) for each in elements)
    return isinstance(node, cst.Integer) and node.value == "1"
