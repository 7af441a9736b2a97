"""Outputs of integers or bools, which cannot require grad: torch passes zeros for their gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.gradient_values import asks_for_shape, reads_values, tells_no_values
from ctxlint.model.analyses.outputs import marked_non_differentiable, output_values
from ctxlint.model.interpreter.values import Fresh, Kind, Tri, View, is_tensor, kind_of
from ctxlint.model.syntax import dotted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method, Param
    from ctxlint.model.interpreter.values import Value


def is_integral(value: Value) -> bool:
    """Whether a value certainly is a tensor of integers or bools on every path."""
    options = value.options()
    return all(is_tensor(each) is Tri.YES and kind_of(each) is Kind.INTEGRAL for each in options)


def are_indices(value: Value) -> bool:
    """Whether a value certainly consists of indices, on every path: those of ``topk``, or what ``argmax`` gives."""
    return all(map(_is_indices, value.options()))


def _is_indices(value: Value) -> bool:
    while isinstance(value, View):
        value = value.of
    func = value.node.func if isinstance(value, Fresh) and isinstance(value.node, cst.Call) else None
    called = func.attr.value if isinstance(func, cst.Attribute) else ""
    return is_integral(value) and (called in _GIVES_INDICES or (isinstance(value, Fresh) and value.part == 1))


_GIVES_INDICES = frozenset(str.split("argmax argmin argsort argwhere bucketize multinomial nonzero searchsorted"))


def zero_gradients(fn: FunctionClass) -> Iterator[tuple[int, Param]]:
    """The incoming gradients that backward computes with although they are always zeros, after their outputs' numbers.

    Not where an output is marked, as its zeros are known then.
    """
    backward = fn.counted_backward
    if backward is None or "backward" in fn.called_directly or fn.escapes or marked_non_differentiable(fn) != ():
        return
    for index, param in enumerate(backward.positional if len(backward.positional) > 1 else ()):
        values = output_values(fn, index)
        if values is None or not all(map(is_integral, values)) or not _computes_with(backward, param):
            continue
        if fn.materializes_grads is Tri.YES:
            yield index, param


def _computes_with(method: Method, param: Param) -> bool:
    """Whether a body reads the values of a parameter in an operation, not only to pass it on to what may drop it."""
    if not reads_values(method, param):
        return False
    uses = (each for each in method.named.get(param.name, ()) if each is not param.node.name)
    return any(_is_operand(method, each) for each in uses)


def _is_operand(method: Method, use: cst.CSTNode) -> bool:
    above = method.parents.get(use)
    if any(isinstance(each, cst.Assert) for each in method.above(use)):
        return False
    if isinstance(above, cst.Arg):
        call = method.parents[above]
        of_torch = isinstance(call, cst.Call) and (dotted(call.func) or "").startswith("torch.")
        return of_torch and not asks_for_shape(call, above)
    called, _name = method.called_on(use)
    return isinstance(above, cst.BinaryOperation) or (called is not None and not tells_no_values(called))
