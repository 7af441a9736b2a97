"""Quotients of exponentials that become infinity divided by infinity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.effort import spend
from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.interpreter.values import ContextAttribute, SavedTensor, is_input
from ctxlint.model.syntax import code_of, dotted, last_name
from ctxlint.named_tuples import NamedTuple
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method


class OverflowingQuotient(NamedTuple):
    """``exp(x) / (exp(x) + 1)``, or with the square of that sum, for an ``exponent`` that nothing bounds."""

    node: cst.BinaryOperation
    exponent: str


def overflowing_quotients(fn: FunctionClass, method: Method) -> Iterator[OverflowingQuotient]:
    """Such quotients in a method."""
    for node in method.nodes_of(cst.BinaryOperation):
        if isinstance(node.operator, cst.Divide):
            above = {
                code_of(each): each for factor in _factors(method, node.left) for each in _exponent(method, factor)
            }
            below = {code_of(each) for factor in _factors(method, node.right) for each in _summed(method, factor)}
            for exponent in sorted(above.keys() & below):
                if _linear_in(fn, method, above[exponent]) and not _is_chosen(method, node):
                    yield OverflowingQuotient(node, exponent)


def _meant(method: Method, node: cst.BaseExpression) -> cst.BaseExpression:
    """An expression, or what its name is assigned once."""
    return method.behind_name(node) or node


def _factors(method: Method, node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """The factors of a product, each name once; a square has its base."""
    todo, seen = [node], set[str]()
    while todo:
        node = todo.pop()
        spend()
        if isinstance(node, cst.Name):
            if node.value in seen:
                continue
            seen.add(node.value)
        node = _meant(method, node)
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply):
            todo += (node.left, node.right)
        elif isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Power):
            todo.append(node.left)
        elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in _POWERS:
            of_torch = dotted(node.func.value) == "torch"
            todo.append(node.args[0].value if of_torch and node.args else node.func.value)
        else:
            yield node


def _summed(method: Method, node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """The exponents of a sum of an exponential and a number."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
        for one, other in ((node.left, node.right), (node.right, node.left)):
            if isinstance(other, (cst.Integer, cst.Float)):
                yield from _exponent(method, one)


def _exponent(method: Method, node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """``x`` in ``torch.exp(x)`` or ``x.exp()``; none in anything else."""
    node = _meant(method, node)
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute) or node.func.attr.value != "exp":
        return []
    if dotted(node.func.value) == "torch" and len(node.args) == 1:
        return [node.args[0].value]
    return [] if node.args else [node.func.value]


def _linear_in(
    fn: FunctionClass, method: Method, node: cst.BaseExpression, seen: frozenset[str] = frozenset()
) -> frozenset[str]:
    """The inputs and other values that an expression is linear in, so that it has no bound; none if that is unknown."""
    spend()
    if isinstance(node, cst.BaseNumber):
        return _NUMBER
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        return _linear_in(fn, method, node.expression, seen)
    if isinstance(node, cst.BinaryOperation):
        left, right = (_linear_in(fn, method, each, seen) for each in (node.left, node.right))
        known = bool(left and right) and isinstance(node.operator, _LINEAR)
        sums = isinstance(node.operator, (cst.Add, cst.Subtract))
        return left | right if known and (sums or not (left & right) - _NUMBER) else frozenset()
    if isinstance(node, cst.Call):
        owner = node.func.value if isinstance(node.func, cst.Attribute) else None
        linear = owner is not None and last_name(node.func) in operations.LINEAR and dotted(owner) != "torch"
        return _linear_in(fn, method, owner, seen) if owner is not None and linear else frozenset()
    path = dotted(node) or ""
    bound = method.bound_to(path) if isinstance(node, cst.Name) and path not in seen else None
    if bound is not None:
        return _linear_in(fn, method, bound, seen | {path})
    read = method.value_of(path) if isinstance(node, cst.Name) else ContextAttribute(path.partition(".")[2])
    on_ctx = method.is_on_ctx(node) if isinstance(node, cst.Attribute) else False
    kept = kept_value(fn, read) if on_ctx or isinstance(read, (SavedTensor, ContextAttribute)) else None
    is_given = is_input(kept) or (isinstance(node, cst.Name) and path not in method.binders)
    return frozenset([path]) if is_given or any(each.name == path for each in method.params) else frozenset()


def _is_chosen(method: Method, node: cst.BaseExpression) -> bool:
    """Whether only some elements of a quotient are used: ``torch.where(x > 0, 1, q)``, ``y[mask] = q``."""
    statement = method.around(node, cst.Assign)
    targets = [each.target for each in statement.targets] if statement is not None else []
    names = [each.value for each in targets if isinstance(each, cst.Name)]
    uses = (node, *(use for name in names for use in method.named.get(name, ())))
    calls = (each for use in uses for each in method.above(use) if isinstance(each, cst.Call))
    return any(isinstance(each, cst.Subscript) for each in targets) or any(
        last_name(each.func) in _CHOOSING for each in calls
    )


_POWERS = ("pow", "square")
_NUMBER = frozenset([""])
_LINEAR = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide)
_CHOOSING = frozenset(["masked_fill", "masked_scatter", "nan_to_num", "where"])
