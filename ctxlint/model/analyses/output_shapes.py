"""Outputs that are sums or means, and gradients that have the shape of such an output instead of that of an input."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.interpreter.values import NONE, Constant, ContextAttribute, Fresh, Kind, Scalar, View, kind_of
from ctxlint.model.syntax import dotted, signed_integer, single_index, words_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ctxlint.model.function import FunctionClass, Returned
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Value


def is_without_dimensions(outputs: Sequence[Returned], position: int) -> bool:
    """Whether an output has no dimensions on any path: a sum or mean over all of them."""
    reductions = _reductions(outputs, position)
    return bool(reductions) and all(map(_reduces_all, reductions))


def is_flat(outputs: Sequence[Returned], position: int) -> bool:
    """Whether an output has one dimension on any path: ``x.reshape(-1)``, ``x.flatten()``, possibly copied."""
    if not outputs or not all(each.exact and position < len(each.slots) for each in outputs):
        return False
    options = [option for each in outputs for option in each.slots[position].value.options()]
    return all(isinstance(each, (Fresh, View)) and _is_flattening(each.node) for each in options)


def is_integral(outputs: Sequence[Returned], position: int) -> bool:
    """Whether an output certainly is a tensor of integers or bools, which gets no gradient."""
    known = bool(outputs) and all(each.exact and position < len(each.slots) for each in outputs)
    return known and all(kind_of(each.slots[position].value) is Kind.INTEGRAL for each in outputs)


def _is_flattening(node: cst.CSTNode | None) -> bool:
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        name, sizes = node.func.attr.value, [each.value for each in node.args]
        if name in ("reshape", "view"):
            return len(sizes) == 1 and signed_integer(sizes[0]) == -1
        if name in ("flatten", "ravel") or name not in ("clone", "contiguous"):
            return name in ("flatten", "ravel") and not sizes
        node = node.func.value
    return False


def reduced_tensor(method: Method, value: Value) -> tuple[str, cst.Call] | None:
    """The name of the tensor of which a value is the sum or mean over all dimensions, and that reduction."""
    reduction = _reduction(value, method)
    operand = _operand(reduction) if reduction is not None and _reduces_all(reduction) else None
    return (operand.value, reduction) if isinstance(operand, cst.Name) and reduction is not None else None


def is_single_number(value: Value) -> bool:
    """Whether a tensor certainly has no dimensions: a sum or mean over all of them."""
    reduction = _reduction(value)
    return reduction is not None and _reduces_all(reduction)


def loses_dimensions(outputs: Sequence[Returned], position: int) -> bool:
    """Whether an output is a sum or mean over some dimensions, and has fewer than its operand on every path."""
    reductions = _reductions(outputs, position)
    return bool(reductions) and not any(_reduces_all(each) or _keeps_dimensions(each) for each in reductions)


def is_reduced(outputs: Sequence[Returned], position: int) -> bool:
    """Whether an output is a sum or mean on every path, over whatever dimensions."""
    return bool(_reductions(outputs, position))


def _keeps_dimensions(reduction: cst.Call) -> bool:
    """Whether it may have ``keepdim=True``, also by position."""
    options = reduction.args[_is_of_torch(reduction) :]
    named = any(each.keyword is not None and each.keyword.value in ("keepdim", "keepdims") for each in options)
    return named or any(each.star for each in options) or sum(each.keyword is None for each in options) > 1


def _reductions(outputs: Sequence[Returned], position: int) -> list[cst.Call]:
    """The sums and means that compute an output, on all paths; none if some path returns another."""
    if not all(each.exact and position < len(each.slots) for each in outputs):
        return []
    options = [option for each in outputs for option in each.slots[position].value.options()]
    found = [reduction for each in options if (reduction := _reduction(each)) is not None]
    return found if len(found) == len(options) else []


def _reduction(value: Value, method: Method | None = None) -> cst.Call | None:
    """The sum or mean that computes a value, perhaps times a number: ``x.sum() / x.numel()``.

    Also times what ``method`` binds to a number: ``x.sum() / rows``.
    """
    node = value.node if isinstance(value, Fresh) else None
    while isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Multiply, cst.Divide)):
        named = method.value_of(node.right.value) if method is not None and isinstance(node.right, cst.Name) else None
        if not _is_written_number(node.right) and not _is_scalar(named):
            return None
        node = node.left
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return None
    return node if node.func.attr.value in _REDUCTIONS else None


_WORDS = str.split
_REDUCTIONS = ("sum", "mean")


def _operand(reduction: cst.Call) -> cst.BaseExpression | None:
    """What is reduced: ``x`` in ``x.sum()`` and ``torch.sum(x)``."""
    if not _is_of_torch(reduction):
        return cst.ensure_type(reduction.func, cst.Attribute).value
    return reduction.args[0].value if reduction.args and reduction.args[0].keyword is None else None


def _reduces_all(node: cst.Call) -> bool:
    """``x.sum()``, ``torch.sum(x)`` and the like."""
    options = node.args[_is_of_torch(node) :]
    return all(each.keyword is not None and each.keyword.value == "dtype" for each in options)


def _is_of_torch(call: cst.Call) -> bool:
    """Whether it is ``torch.f(x)``, not ``x.f()``."""
    return dotted(cst.ensure_type(call.func, cst.Attribute).value) == "torch"


def unexpanded_gradients(fn: FunctionClass) -> Iterator[tuple[int, cst.BaseExpression]]:
    """The gradients, by input, that are the one of a sum or mean, or a multiple.

    Only where the output is the sum or mean of a function of single elements of the input: it has dimensions, or there
    was nothing to reduce. If that combines inputs, one of them may have fewer dimensions than another: then it has to
    be a sum over all, and the others get such a gradient as well, or None.
    """
    forward, backward = fn.forward, fn.backward
    if forward is None or backward is None or backward.inherited or len(backward.positional) != 1:
        return
    if any(len(each.slots) != 1 for each in fn.outputs):
        return
    inputs = frozenset() if _asserts_one(forward) else _reduced_inputs(fn, forward)
    incoming = backward.positional[0].name
    for returned in fn.gradients if inputs else ():
        if not returned.known or any(slot.starred for slot in returned.slots):
            continue
        gradients = [
            (index, slot.node, slot.value)
            for index, slot in enumerate(returned.slots[: len(fn.inputs)])
            if fn.inputs[index].name in inputs
        ]
        found = {
            index: node for index, node, _value in gradients if node and _is_multiple(fn, backward, node, incoming)
        }
        if all(index in found or value == NONE for index, _node, value in gradients):
            yield from found.items()


def _asserts_one(forward: Method) -> bool:
    """Whether forward raises unless a size is 1: ``assert x.size(1) == 1``. Then there may be nothing to reduce."""
    refused = {*forward.raising_tests}
    for node in forward.nodes_of(cst.Comparison):
        around = (node, *forward.above(node))
        by_assert = any(isinstance(each, cst.Assert) for each in around)
        raises = by_assert or not refused.isdisjoint(around)
        if raises and _compares_size_with_one(forward, node, cst.Equal if by_assert else cst.NotEqual):
            return True
    return False


def _compares_size_with_one(forward: Method, node: cst.Comparison, operator: type[cst.BaseCompOp]) -> bool:
    sizes = [forward.behind_name(each) for each in (node.left, *(part.comparator for part in node.comparisons))]
    with_one = any(isinstance(each.operator, operator) for each in node.comparisons) and any(
        isinstance(each, cst.Integer) and each.value == "1" for each in sizes
    )
    plain = (each for each in sizes if isinstance(each, (cst.Attribute, cst.Call, cst.Subscript)))
    return with_one and any(not _SIZES.isdisjoint(words_of(each)) for each in plain)


_SIZES = frozenset(("len", "numel", "shape", "size"))


def _reduced_inputs(fn: FunctionClass, forward: Method) -> frozenset[str]:
    """The inputs of whose elements the output is the sum or mean; none if that is not certain."""
    reductions = _reductions(fn.outputs, 0)
    found = {_combined(forward, _operand(each)) for each in reductions}
    inputs = found.pop() if len(found) == 1 else None
    if inputs is None or (len(inputs) > 1 and not all(map(_reduces_all, reductions))):
        return frozenset()
    return inputs


def _combined(forward: Method, node: cst.BaseExpression | None, seen: tuple[str, ...] = ()) -> frozenset[str] | None:
    """The inputs of which an expression combines single elements; None if it may do anything else."""
    if isinstance(node, cst.Name):
        if any(param.name == node.value for param in forward.params):
            return None if node.value in forward.binders else frozenset((node.value,))
        if node.value in seen:  # it is bound to itself
            return None
        return _combined(forward, forward.bound_to(node.value), (*seen, node.value))
    if isinstance(node, (cst.Integer, cst.Float)):
        return frozenset()
    if isinstance(node, cst.UnaryOperation):
        return _combined(forward, node.expression, seen)
    if isinstance(node, cst.BinaryOperation) and not isinstance(node.operator, cst.MatrixMultiply):
        return _union(forward, (node.left, node.right), seen)
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in _BY_ELEMENT:
        owner = () if _is_of_torch(node) else (node.func.value,)
        return _union(forward, (*owner, *(each.value for each in node.args)), seen)
    return None


def _union(forward: Method, nodes: Iterable[cst.BaseExpression], seen: tuple[str, ...]) -> frozenset[str] | None:
    found: set[str] = set()
    for node in nodes:
        inputs = _combined(forward, node, seen)
        if inputs is None:
            return None
        found |= inputs
    return frozenset(found)


_BY_ELEMENT = frozenset(
    _WORDS("abs clone contiguous cos detach exp float log log1p neg pow relu sigmoid sin sqrt square tanh")
)


def _is_multiple(fn: FunctionClass, backward: Method, node: cst.CSTNode, name: str, seen: tuple[str, ...] = ()) -> bool:
    """Whether an expression is the gradient ``name``, or that times numbers."""
    if isinstance(node, cst.Name):
        if node.value == name:
            return backward.holds_argument(name, node)
        single = backward.bound_to(node.value)
        if single is None or node.value in seen:  # or it is bound to itself
            return False
        return _is_multiple(fn, backward, single, name, (*seen, node.value))
    if isinstance(node, cst.UnaryOperation):
        return isinstance(node.operator, cst.Minus) and _is_multiple(fn, backward, node.expression, name, seen)
    if isinstance(node, cst.BinaryOperation):
        sides = (node.left, node.right)
        number = any(_is_number(fn, backward, each) for each in sides)
        return number and any(_is_multiple(fn, backward, each, name, seen) for each in sides)
    called = node.func if isinstance(node, cst.Call) and not node.args else None
    same = isinstance(called, cst.Attribute) and called.attr.value in ("clone", "contiguous", "detach", "neg")
    return isinstance(called, cst.Attribute) and same and _is_multiple(fn, backward, called.value, name, seen)


def _is_number(fn: FunctionClass, backward: Method, node: cst.BaseExpression) -> bool:
    """Whether an expression certainly is one number: a literal, a size, or what ctx keeps, if that is one."""
    if isinstance(node, cst.BinaryOperation):
        return all(_is_number(fn, backward, each) for each in (node.left, node.right))
    if _is_written_number(node):
        return True
    if isinstance(node, cst.Name):
        return _is_scalar(backward.value_of(node.value))
    kept = isinstance(node, cst.Attribute) and backward.is_on_ctx(node) and ContextAttribute(node.attr.value)
    return _is_scalar(kept_value(fn, kept or None))


def _is_written_number(node: cst.BaseExpression) -> bool:
    """Whether an expression is a number or a size, whatever its names mean: ``2``, ``x.numel()``, ``x.shape[1]``."""
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        return (node.func.attr.value, len(node.args)) in (("numel", 0), ("size", 1), ("item", 0))
    if isinstance(node, cst.Subscript):
        index = single_index(node)
        of_shape = isinstance(node.value, cst.Attribute) and node.value.attr.value == "shape"
        return of_shape and index is not None and signed_integer(index) is not None
    return isinstance(node, (cst.Integer, cst.Float))


def _is_scalar(value: Value | None) -> bool:
    """Whether a value certainly is a number."""
    if isinstance(value, Constant):
        return value.type_name in ("int", "float")
    return isinstance(value, Scalar) and value.sort in ("int", "float", "number")
