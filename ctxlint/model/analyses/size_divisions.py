"""Gradients that backward divides by a size although forward does not: the derivative of the caller's mean."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.effort import spend
from ctxlint.model.syntax import is_name, last_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method


def divisors_of_gradients(fn: FunctionClass, node: cst.CSTNode) -> list[cst.BaseExpression]:
    """The sizes by which backward divides the first such gradient of a return; none if forward divides by one."""
    backward = fn.backward
    slots = [slot.node for each in fn.gradients if each.node is node and each.known for slot in each.slots]
    if backward is None:
        return []
    for slot in slots:
        divisors = list(_divisors(backward, slot, frozenset())) if slot is not None else []
        sizes = [each for each in divisors if _is_size(fn, backward, each)]
        if sizes:
            return [] if any(_averages(fn, each) for each in fn.earlier_methods) else sizes
    return []


def _divisors(method: Method, node: cst.BaseExpression, seen: frozenset[str]) -> Iterator[cst.BaseExpression]:
    """What a product is divided by, from the left, also under names that are bound once, and in place."""
    spend()
    quotient = _quotient(node)
    if quotient is not None:
        yield from _divisors(method, quotient[0], seen)
        yield quotient[1]
    elif isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply):
        yield from _divisors(method, node.left, seen)
        yield from _divisors(method, node.right, seen)
    elif isinstance(node, cst.UnaryOperation):
        yield from _divisors(method, node.expression, seen)
    elif isinstance(node, cst.Name) and node.value not in seen:
        for each in method.nodes_of(cst.AugAssign):
            if isinstance(each.operator, cst.DivideAssign) and is_name(each.target, node.value):
                yield each.value
        bound = method.bound_to(node.value)
        yield from _divisors(method, bound, seen | {node.value}) if bound is not None else ()


def _quotient(node: cst.CSTNode) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """The operands of ``a / b`` and ``a.div(b)``."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Divide):
        return node.left, node.right
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute) or len(node.args) != 1:
        return None
    return (node.func.value, node.args[0].value) if node.func.attr.value in _DIVIDING else None


_DIVIDING = frozenset({"div", "div_", "divide", "divide_", "true_divide", "true_divide_"})


def _is_size(fn: FunctionClass, method: Method, node: cst.BaseExpression, seen: tuple[str, ...] = ()) -> bool:
    """Whether an expression is a number of elements, or a product with one."""
    spend()
    if isinstance(node, cst.BinaryOperation):
        sides = (node.left, node.right)
        return isinstance(node.operator, cst.Multiply) and any(_is_size(fn, method, each, seen) for each in sides)
    if isinstance(node, cst.Call):
        name = last_name(node.func)
        of_number = name in ("float", "int") and len(node.args) == 1
        return (
            _is_size(fn, method, node.args[0].value, seen)
            if of_number
            else name in ("len", "nelement", "numel", "size")
        )
    if isinstance(node, cst.Subscript):
        return _is_shape(node.value)
    if isinstance(node, cst.Name):
        only = method.only_assignment(node.value) if node.value not in seen else None
        if only is None:
            return False
        if isinstance(only.statement, cst.Assign) and _is_shape(only.statement.value):  # unpacked
            return True
        value = only.value_node
        return value is not None and _is_size(fn, method, value, (*seen, node.value))
    if not method.is_on_ctx(node):
        return False
    writes = fn.writes_by_attribute.get(node.attr.value, ())
    kept = writes[0].value_node if len(writes) == 1 else None
    home = next((each for each in fn.earlier_methods if kept in each.parents), None)
    return kept is not None and home is not None and home is not method and _is_size(fn, home, kept)


def _is_shape(node: cst.BaseExpression) -> bool:
    """Whether an expression is ``x.shape`` or ``x.size()``."""
    if isinstance(node, cst.Call):
        return last_name(node.func) == "size" and not node.args
    return isinstance(node, cst.Attribute) and node.attr.value == "shape"


def _averages(fn: FunctionClass, method: Method) -> bool:
    """Whether forward visibly divides by a size, or calls what may do so by its name."""
    quotients = (_quotient(each) for kind in (cst.BinaryOperation, cst.Call) for each in method.nodes_of(kind))
    return any(each is not None and _is_size(fn, method, each[1]) for each in quotients) or any(
        _AVERAGING(last_name(each.func)) for each in method.nodes_of(cst.Call)
    )


_AVERAGING = re.compile("mean|average|avg|entropy|loss|norm|std|var").search
