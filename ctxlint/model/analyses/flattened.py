"""Inputs that forward flattens to two dimensions, and gradients that backward leaves flat."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.sequences import literal_slice
from ctxlint.model.syntax import dotted, last_name, signed_integer, words_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method

_RESHAPING = frozenset({"reshape", "view"})
_KEEPING = frozenset({"clone", "contiguous", "detach", "float", "half", "to", "type_as"})
"""Methods whose result has the shape of what they are called on."""

_MATRIX_PRODUCTS = frozenset({"mm", "addmm", "_scaled_mm"})
"""What torch computes only of matrices, and gives a matrix."""


def flat_gradients(fn: FunctionClass) -> Iterator[tuple[int, cst.BaseExpression]]:
    """The gradients, by input, that certainly have two dimensions, of inputs that forward flattens to two.

    Only of an input with more dimensions in view: forward takes ``x.shape[:-1]``, as only an output in its shape needs,
    or multiplies it as it is by ``linear``.
    """
    forward, backward = fn.forward, fn.backward
    if forward is None or backward is None or backward.inherited or forward.inherited:
        return
    flattened = {each for each in _flattened(forward) if _gives_its_shape(forward, each)}
    if flattened:
        flattened -= _with_checked_dimensions(forward)
    for returned in fn.gradients if flattened else ():
        if not returned.known or any(slot.starred for slot in returned.slots):
            continue
        for index, slot in enumerate(returned.slots[: len(fn.inputs)]):
            if fn.inputs[index].name in flattened and slot.node is not None and is_matrix(fn, backward, slot.node):
                yield index, slot.node


def _with_checked_dimensions(forward: Method) -> set[str]:
    """The names of which forward refuses some numbers of dimensions: ``assert x.dim() == 2``."""
    tests = [set(words_of(test)) for test in forward.raising_tests]
    return {name for words in tests if words & {"dim", "ndim", "ndimension", "len"} for name in words}


def _flattened(forward: Method) -> Iterator[str]:
    """The parameters of which forward binds ``x.reshape(-1, n)``."""
    params = {param.name for param in forward.own_params}
    for node in forward.nodes_of(cst.Assign):
        call = node.value
        if isinstance(call, cst.Call) and _sizes(call) == 2 and _is_open(call.args[0].value):
            owner = dotted(before_copies(cst.ensure_type(call.func, cst.Attribute).value))
            if owner in params:
                yield owner


def _gives_its_shape(forward: Method, name: str) -> bool:
    """Whether forward reads all but the last size of a parameter: ``x.shape[:-1]``, perhaps through another name."""
    shapes = {f"{name}.shape", f"{name}.size()"}
    for node in forward.nodes_of(cst.Assign):
        if _path(node.value) in shapes:
            shapes.update(filter(None, (dotted(each.target) for each in node.targets)))
    if any(_path(node.value) in shapes and _drops_last(node) for node in forward.nodes_of(cst.Subscript)):
        return True
    return _multiplies_as_it_is(forward, name)


def _multiplies_as_it_is(forward: Method, name: str) -> bool:
    """Whether forward gives a parameter, which it never binds again, to ``linear``: the result has its other sizes."""
    if any(dotted(target.target) == name for node in forward.nodes_of(cst.Assign) for target in node.targets):
        return False
    calls = (node for node in forward.nodes_of(cst.Call) if last_name(node.func) == "linear" and node.args)
    return any(dotted(call.args[0].value) == name and call.args[0].keyword is None for call in calls)


def _path(node: cst.BaseExpression) -> str | None:
    """``a.b`` or ``a.b()``; None for any other expression."""
    if not isinstance(node, cst.Call):
        return dotted(node)
    called = dotted(node.func) if not node.args else None
    return f"{called}()" if called is not None else None


def _drops_last(node: cst.Subscript) -> bool:
    """Whether a subscript is ``[:-1]`` or ``[0:-1]``."""
    taken = node.slice[0].slice if len(node.slice) == 1 else None
    return isinstance(taken, cst.Slice) and literal_slice(taken) in _ALL_BUT_LAST


_ALL_BUT_LAST = (slice(None, -1), slice(0, -1))


def is_matrix(fn: FunctionClass, method: Method, node: cst.BaseExpression, hops: int = 0) -> bool:
    """Whether an expression certainly is a tensor with two dimensions."""
    if hops > 8:
        return False
    if isinstance(node, cst.Name):
        bound = method.bound_to(node.value)
        return is_matrix(fn, method, bound, hops + 1) if bound is not None else _is_transposed(fn, node.value)
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.MatrixMultiply):
        return all(is_matrix(fn, method, each, hops + 1) for each in (node.left, node.right))
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return False
    name, owner = node.func.attr.value, node.func.value
    if name in _RESHAPING:
        return _sizes(node) == 2
    if name in _MATRIX_PRODUCTS:
        return True
    if name == "matmul":
        sides = [each.value for each in node.args]
        sides = sides if dotted(owner) == "torch" else [owner, *sides]
        return len(sides) == 2 and all(is_matrix(fn, method, each, hops + 1) for each in sides)
    return name in {"t", *_KEEPING} and is_matrix(fn, method, owner, hops + 1)


def _sizes(call: cst.Call) -> int | None:
    """How many sizes a call of ``reshape`` or ``view`` gives; None if one of them may be several."""
    if last_name(call.func) not in _RESHAPING or not isinstance(call.func, cst.Attribute) or len(call.args) < 2:
        return None
    plain = all(not each.star and each.keyword is None for each in call.args)
    return len(call.args) if plain and dotted(call.func.value) != "torch" else None


def _is_open(node: cst.BaseExpression) -> bool:
    return signed_integer(node) == -1


def before_copies(node: cst.BaseExpression) -> cst.BaseExpression:
    """What is copied or converted: ``x`` of ``x.float().contiguous()``."""
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in _KEEPING:
        node = node.func.value
    return node


def _is_transposed(fn: FunctionClass, name: str) -> bool:
    """Whether a method takes ``name.t()``, which torch allows only of a matrix or a vector."""
    methods = (method for method in (fn.forward, fn.backward) if method is not None)
    return any(_path(call) == f"{name}.t()" for method in methods for call in method.nodes_of(cst.Call))
