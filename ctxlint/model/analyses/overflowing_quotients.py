"""Quotients of exponentials that become infinity divided by infinity."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from ctxlint.model.syntax import code_of, dotted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.interpreter.method import Method


class OverflowingQuotient(NamedTuple):
    """``exp(x) / (exp(x) + 1)``, or with the square of that sum, for an ``exponent`` that nothing bounds."""

    node: cst.BinaryOperation
    exponent: str


def overflowing_quotients(method: Method) -> Iterator[OverflowingQuotient]:
    """Such quotients in a method."""
    for node in method.nodes_of(cst.BinaryOperation):
        if isinstance(node.operator, cst.Divide):
            above = {each for factor in _factors(method, node.left) if (each := _exponent(method, factor))}
            below = {each for factor in _factors(method, node.right) for each in _summed(method, factor)}
            for exponent in sorted(above & below):
                if not any(word in exponent for word in _BOUNDING):
                    yield OverflowingQuotient(node, exponent)


def _meant(method: Method, node: cst.BaseExpression) -> cst.BaseExpression:
    """An expression, or what its name is assigned once."""
    return method.behind_name(node) or node


def _factors(method: Method, node: cst.BaseExpression, seen: tuple[str, ...] = ()) -> Iterator[cst.BaseExpression]:
    """The factors of a product; a square has its base."""
    if isinstance(node, cst.Name):
        if node.value in seen:  # it is assigned what it is part of
            return
        seen = (*seen, node.value)
    node = _meant(method, node)
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Multiply, cst.Power)):
        yield from _factors(method, node.left, seen)
        if isinstance(node.operator, cst.Multiply):
            yield from _factors(method, node.right, seen)
    elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in _POWERS:
        of_torch = dotted(node.func.value) == "torch"
        yield from _factors(method, node.args[0].value if of_torch and node.args else node.func.value, seen)
    else:
        yield node


def _summed(method: Method, node: cst.BaseExpression) -> Iterator[str]:
    """The exponents of a sum of an exponential and a number."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
        for one, other in ((node.left, node.right), (node.right, node.left)):
            exponent = _exponent(method, one)
            if exponent and isinstance(other, (cst.Integer, cst.Float)):
                yield exponent


def _exponent(method: Method, node: cst.BaseExpression) -> str:
    """The code of ``x`` in ``torch.exp(x)`` or ``x.exp()``; empty for anything else."""
    node = _meant(method, node)
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute) or node.func.attr.value != "exp":
        return ""
    if dotted(node.func.value) == "torch" and len(node.args) == 1:
        return code_of(node.args[0].value)
    return code_of(node.func.value) if not node.args else ""


_POWERS = ("pow", "square")
_BOUNDING = ("abs", "clamp", "clip", "min", "max", "relu", "tanh", "sigmoid")
