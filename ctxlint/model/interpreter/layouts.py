"""Which views change the layout of a tensor, so that ``contiguous`` and ``reshape`` copy it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.values import Alias, Fresh, Opaque, View
from ctxlint.model.syntax import code_of, dotted, keywords_of, last_name
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from ctxlint.model.interpreter.values import Value


def unless_copied(base: Value) -> Alias:
    """Whether ``contiguous`` and ``reshape`` of a tensor share its memory: they copy the result of ``permute``."""
    while isinstance(base, View):
        if base.layout:
            return Alias.IF_PERMUTED
        base = base.of
    return Alias.USUALLY


def shared_by(method: str, base: Value) -> Alias:
    """Whether what a method like ``reshape`` returns shares the memory of its tensor: always, if that is contiguous."""
    always = method in _RESHAPING and isinstance(base, (Fresh, Opaque)) and _makes_contiguous(base)
    return Alias.ALWAYS if always else unless_copied(base)


_RESHAPING = frozenset(["reshape", "reshape_as"])
"""The methods that give a view of any contiguous tensor; ``flatten`` and ``contiguous`` may give the tensor itself."""


def _makes_contiguous(value: Fresh | Opaque) -> bool:
    """Whether an expression certainly computes a contiguous tensor: a product with a matrix, or ``torch.zeros(…)``."""
    node = value.node
    if isinstance(node, cst.BinaryOperation):
        right = node.right.func if isinstance(node.right, cst.Call) and not node.right.args else None
        is_matrix = isinstance(right, cst.Attribute) and right.attr.value == "t"
        return isinstance(node.operator, cst.MatrixMultiply) and is_matrix
    if not isinstance(node, cst.Call) or isinstance(value, Opaque):
        return False
    passed, name = keywords_of(node), last_name(node.func)
    layout = passed.get("memory_format")
    if layout is not None:
        copies = name in _COPIERS or name in operations.LAYOUT_KEEPING_FACTORIES
        return copies and dotted(layout) == "torch.contiguous_format"
    if name in _COPIERS and isinstance(node.func, cst.Attribute):
        return _calls_contiguous(node.func.value)
    makes = name in operations.CONTIGUOUS_FACTORIES and dotted(node.func) == f"torch.{name}"
    return "out" not in passed and (makes or name in _PRODUCTS or name in operations.CONTIGUOUS_FACTORY_METHODS)


_PRODUCTS = frozenset(["addmm", "bmm", "mm"])
_COPIERS = frozenset(["clone"])


def never_copied(view: View) -> bool:
    """Whether the result of ``contiguous``, or the like, is certainly no copy: its tensor is contiguous."""
    base = view.of
    return is_contiguous(base) or (isinstance(base, (Fresh, Opaque)) and _makes_contiguous(base))


def is_contiguous(value: Value) -> bool:
    """Whether a value is certainly contiguous: the result of ``contiguous()``, which a second one returns as it is."""
    return isinstance(value, View) and _calls_contiguous(value.node)


def _calls_contiguous(node: cst.CSTNode) -> bool:
    func = node.func if isinstance(node, cst.Call) and not node.args else None
    return isinstance(func, cst.Attribute) and func.attr.value == "contiguous"


def changed_layout(view: cst.Call | cst.Attribute | cst.Subscript, *, of_torch: bool = False) -> str:
    """The code by which a view of a contiguous tensor is usually not contiguous, without the tensor; empty if it is."""
    if isinstance(view, cst.Subscript):
        slices = [each.slice for each in view.slice]
        steps = (isinstance(each, cst.Slice) and each.step is not None for each in slices)
        return "[...]" if len(slices) > 1 or any(steps) else ""
    function = view.func if isinstance(view, cst.Call) else view
    if not isinstance(function, cst.Attribute) or function.attr.value not in operations.LAYOUT_CHANGING_VIEWS:
        return ""
    arguments = view.args[of_torch:] if isinstance(view, cst.Call) else ()
    return f"{function.attr.value}({', '.join(_written(each.value) for each in arguments)})"


def _written(node: cst.BaseExpression) -> str:
    """The code of an argument; a number or name needs no layout, which LibCST would have to parse."""
    if isinstance(node, (cst.Name, cst.Integer)):
        return node.value
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        return f"-{_written(node.expression)}"
    return code_of(node)


def only_adds_ones(view: cst.Call) -> bool:
    """Whether ``x.view(x.shape + (1,))`` only adds dimensions of size 1, which works with any strides.

    Or has no others, as that of a single element: ``x.view(1, 1)``.
    """
    if not isinstance(view.func, cst.Attribute):
        return False
    own = view.func.value
    own_shapes = [_own_shapes(each.value, own, starred=each.star == "*") for each in view.args if each.keyword is None]
    if own_shapes == [None] and not view.args[0].star:
        own_shapes = [_own_shapes(view.args[0].value, own, starred=True)]
    known = len(own_shapes) == len(view.args) > 0 and None not in own_shapes
    return known and sum(map(int, filter(None, own_shapes))) <= 1


def changes_dtype(view: cst.Call) -> bool:
    """Whether ``x.view(torch.int32)`` reads the elements as another type, perhaps of the same size.

    Then the strides do not matter. Types of one byte have another size than those that have gradients.
    """
    name = dotted(view.args[0].value) if len(view.args) == 1 else None
    last = name.rpartition(".")[2] if name is not None else ""
    return name is not None and (last == "dtype" or name.startswith("torch.")) and last not in ("bool", "int8", "uint8")


def _own_shapes(sizes: cst.BaseExpression, own: cst.BaseExpression, *, starred: bool) -> int | None:
    """How often sizes, or a single one, contain the shape of the tensor ``own``; None if any other is not 1."""
    if not starred:
        return 0 if isinstance(sizes, cst.Integer) and sizes.value == "1" else None
    if isinstance(sizes, (cst.Tuple, cst.List)):
        parts = [_own_shapes(each.value, own, starred=isinstance(each, cst.StarredElement)) for each in sizes.elements]
    elif isinstance(sizes, cst.BinaryOperation) and isinstance(sizes.operator, cst.Add):
        parts = [_own_shapes(each, own, starred=True) for each in (sizes.left, sizes.right)]
    elif isinstance(sizes, cst.BinaryOperation) and isinstance(sizes.operator, cst.Multiply):
        parts = [0 if _own_shapes(sizes.left, own, starred=True) == 0 else None]
    else:
        parts = [1 if _is_shape_of(sizes, own) else None]
    return None if None in parts else sum(filter(None, parts))


def _is_shape_of(node: cst.BaseExpression, tensor: cst.BaseExpression) -> bool:
    """Whether an expression is ``x.shape`` or ``x.size()``. Code, which LibCST would have to parse, comes last."""
    shape = node.func if isinstance(node, cst.Call) and not node.args else node
    if not isinstance(shape, cst.Attribute) or shape.attr.value != ("shape" if shape is node else "size"):
        return False
    return _written(shape.value) == _written(tensor)
