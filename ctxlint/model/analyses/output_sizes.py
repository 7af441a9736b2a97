"""Outputs that certainly have several elements: a gradient that is expanded to their shape is not contiguous."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.index.kernel_parameters import parameters_of
from ctxlint.model.index.sized_results import sizing_parameters
from ctxlint.model.interpreter.events import GenericCall
from ctxlint.model.interpreter.values import Fresh, View, is_input
from ctxlint.model.syntax import last_name, signed_integer
from ctxlint.torch_api.operations import CONTIGUOUS_FACTORIES, CONTIGUOUS_FACTORY_METHODS, LAYOUT_KEEPING_FACTORIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Value


def has_several_elements(fn: FunctionClass, position: int) -> bool:
    """Whether an output on any path is memory like an input, or with the sizes of one, or with a size above 1."""
    forward, outputs = fn.forward, fn.outputs
    if forward is None or not outputs or not all(each.exact and position < len(each.slots) for each in outputs):
        return False
    options = (option for each in outputs for option in each.slots[position].value.options())
    return all(_is_created_with_several(forward, option) for option in options)


def _is_created_with_several(forward: Method, value: Value) -> bool:
    while isinstance(value, View):
        if not isinstance(value.node, cst.Call) or last_name(value.node.func) not in _WHOLE:
            return False
        value = value.of
    if is_input(value):
        return True
    node = value.node if isinstance(value, Fresh) else None
    if isinstance(value, Fresh) and isinstance(node, cst.Call) and _is_sized_by_function(forward, node, value.part):
        return True
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in _IN_PLACE:
        node = node.func.value
    if not isinstance(node, cst.Call) or node not in forward.parents:
        return False
    name = last_name(node.func)
    sizes = [each.value for each in node.args if each.keyword is None]
    if name in LAYOUT_KEEPING_FACTORIES:
        return bool(sizes) and _is_like_an_input(forward, sizes[0])
    if name in CONTIGUOUS_FACTORIES or name in CONTIGUOUS_FACTORY_METHODS:
        sizes = sizes[:1] if name in _FILLED else sizes
        sizes = [*_elements(sizes[0])] if len(sizes) == 1 else sizes
    elif name not in _CONSTRUCTORS:
        return False
    return any(_is_several(forward, each) for each in sizes) and not any(signed_integer(each) == 0 for each in sizes)


def _is_sized_by_function(forward: Method, call: cst.Call, part: int | None) -> bool:
    """Whether a function of the project returns memory with a size of one of the inputs that it gets."""
    for each in forward.facts.of(GenericCall):
        if each.node is not call or each.definition is None or each.replaceable:
            continue
        sizing = sizing_parameters(each.definition, part)
        if not sizing:
            return False
        given = dict(zip(parameters_of(each.definition), each.arguments, strict=False)) | dict(each.keywords)
        nodes = [given[name].node if name in given else None for name in sizing]
        return all(node is not None and _is_like_an_input(forward, node) for node in nodes)
    return False


_WHOLE = frozenset(("contiguous", "detach", "permute", "reshape", "t", "transpose", "unsqueeze", "view", "view_as"))
"""Views of all elements."""

_IN_PLACE = ("copy_", "fill_", "normal_", "uniform_", "zero_")
_FILLED = ("full", "new_full")
"""What gets a number after the sizes."""

_CONSTRUCTORS = ("FloatTensor", "HalfTensor", "new")
"""What creates memory of given sizes as well, in the style before torch 0.4; a list would be the elements."""


def _elements(sizes: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """The sizes in ``(4, n)`` and ``x.shape[:-1] + (4,)``."""
    if isinstance(sizes, (cst.Tuple, cst.List)):
        yield from (each.value for each in sizes.elements)
    elif isinstance(sizes, cst.BinaryOperation) and isinstance(sizes.operator, cst.Add):
        yield from _elements(sizes.left)
        yield from _elements(sizes.right)
    else:
        yield sizes


def _is_several(forward: Method, size: cst.BaseExpression) -> bool:
    """Whether it is a number above 1, a size of an input, or all of them."""
    if isinstance(size, cst.Name):
        bound = _bound_to(forward, size.value)
        return bound is not None and not isinstance(bound, cst.Name) and _is_several(forward, bound)
    if isinstance(size, cst.Subscript):
        index = size.slice[0].slice
        size = size.value
        if not isinstance(index, cst.Index) or not isinstance(size, cst.Attribute):
            return False
    if isinstance(size, cst.Call):
        size = size.func
        return isinstance(size, cst.Attribute) and size.attr.value == "size" and _is_like_an_input(forward, size.value)
    if isinstance(size, cst.Attribute):
        return size.attr.value == "shape" and _is_like_an_input(forward, size.value)
    return (signed_integer(size) or 0) > 1


def _is_like_an_input(forward: Method, node: cst.BaseExpression) -> bool:
    """Whether a tensor has the shape of an input: ``x``, ``x.contiguous()``, or a name that is bound to that."""
    node = _without_copies(node)
    if not isinstance(node, cst.Name):
        return False
    name = node.value
    if any(param.name == name for param in forward.params):
        sources = [_source(forward, each) for each in forward.binders.get(name, ())]
        owners = [_without_copies(each) for each in sources if each is not None]
        return len(owners) == len(sources) and all(isinstance(each, cst.Name) and each.value == name for each in owners)
    bound = _bound_to(forward, name)
    owner = _without_copies(bound) if bound is not None else None
    known = isinstance(owner, cst.Name) and any(param.name == owner.value for param in forward.params)
    return owner is not None and known and _is_like_an_input(forward, owner)


def _without_copies(node: cst.BaseExpression) -> cst.BaseExpression:
    """What a tensor has the shape of: ``x`` for ``torch.zeros_like(x.detach())``."""
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        owner, name = node.func.value, node.func.attr.value
        if name in LAYOUT_KEEPING_FACTORIES and node.args:
            node = node.args[0].value
        elif name in _SAME_SHAPE:
            node = owner
        else:
            return node
    return node


_SAME_SHAPE = frozenset(
    ("bfloat16", "clone", "contiguous", "cpu", "cuda", "detach", "double", "float", "half", "requires_grad_", "to")
)


def _bound_to(forward: Method, name: str) -> cst.BaseExpression | None:
    """What the only assignment to a name assigns, also if it unpacks that: ``rows, columns = x.shape``."""
    binders = forward.binders.get(name, ())
    return _source(forward, binders[0]) if len(binders) == 1 else None


def _source(forward: Method, binder: cst.CSTNode) -> cst.BaseExpression | None:
    for around in (binder, *forward.above(binder)):
        if isinstance(around, cst.Assign):
            return around.value
        if not isinstance(around, (cst.Name, cst.AssignTarget, cst.Element, cst.Tuple, cst.List)):
            return None
    return None
