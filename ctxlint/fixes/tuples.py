"""Replacing lists by tuples, where a method returns what autograd requires to be a tuple."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fix import Applicability, Edit, Fix
from ctxlint.fixes.class_layout import layout_of
from ctxlint.model.interpreter.values import Mapping, Scalar, Sequence, TensorTuple, Tri, Variadic, is_container
from ctxlint.model.syntax import branches_of

if TYPE_CHECKING:
    from ctxlint.fixes.class_layout import Layout
    from ctxlint.model.function import FunctionClass, Method, Returned
    from ctxlint.model.interpreter.values import Value


def return_a_tuple(
    fn: FunctionClass, method: Method, returned: Returned, every: tuple[Returned, ...], applicability: Applicability
) -> Fix | None:
    """Return a tuple instead of a list: a display with other brackets, ``tuple(...)`` around anything else.

    ``every`` has all that the method returns. None if one return has both lists and other values, or if the number of
    elements would not match the inputs.
    """
    layout = layout_of(fn, method)
    statement = returned.node
    if layout is None or not isinstance(statement, cst.Return) or statement.value is None:
        return None
    edits: list[Edit] = []
    for leaf in branches_of(statement.value):
        values = [each.value for each in every if each.event is returned.event]
        made = [value for value in values if _made_by(value, leaf)]
        if made and not any(_is_not_tuple(value) for value in made):
            continue  # the other branch of a condition
        if not all(_is_ordered(value) for value in made or values):
            return None
        edits += _as_tuple(layout, leaf)
    return Fix("Return a tuple", tuple(edits), applicability) if edits else None


def _made_by(value: Value, leaf: cst.BaseExpression) -> bool:
    """Whether this very expression creates the value."""
    return getattr(value, "node", None) is leaf


def _is_not_tuple(value: Value) -> bool:
    """Whether it is a container or an iterator, but not a tuple."""
    return isinstance(value, (Mapping, Scalar)) or (isinstance(value, Sequence) and value.kind != "tuple")


def _is_ordered(value: Value) -> bool:
    """Whether ``tuple(value)`` has the elements of the value in insertion order."""
    if isinstance(value, Sequence):
        return value.kind in ("tuple", "list", "generator")
    return isinstance(value, (TensorTuple, Variadic)) and is_container(value) is Tri.YES


def _as_tuple(layout: Layout, expression: cst.BaseExpression) -> list[Edit]:
    """Edits that turn a list, or an iterator, into a tuple."""
    if isinstance(expression, cst.List):
        return _display(layout, expression)
    if isinstance(expression, cst.ListComp):
        if not expression.lpar:
            return _brackets(layout, expression.lbracket, expression.rbracket, "tuple(", ")")
    if isinstance(expression, cst.BinaryOperation) and isinstance(expression.operator, cst.Multiply):
        lists = [each for each in (expression.left, expression.right) if isinstance(each, cst.List)]
        if len(lists) == 1:
            return _display(layout, lists[0])
    if isinstance(expression, cst.Call) and isinstance(expression.func, cst.Name) and expression.func.value == "list":
        return [layout.replace(expression.func, "tuple")] if expression.args else []
    if isinstance(expression, cst.GeneratorExp) and len(expression.lpar) == 1:
        return [layout.insert_word(layout.start(expression), "tuple")]
    return [layout.insert_word(layout.start(expression), "tuple("), layout.insert(layout.end(expression), ")")]


def _display(layout: Layout, display: cst.List) -> list[Edit]:
    """``(a, b)`` for ``[a, b]``; a single element needs a comma, unless it has one."""
    edits = _brackets(layout, display.lbracket, display.rbracket, "(", ")")
    if len(display.elements) == 1 and not isinstance(display.elements[0].comma, cst.Comma):
        at = layout.end(display.elements[0].value)
        if at == edits[1].start:
            return [edits[0], Edit(at, edits[1].end, ",)")]
        return [edits[0], layout.insert(at, ","), edits[1]]
    return edits


def _brackets(
    layout: Layout, opening: cst.LeftSquareBracket, closing: cst.RightSquareBracket, left: str, right: str
) -> list[Edit]:
    start, end = layout.start(opening), layout.end(closing)
    return [Edit(start, start + 1, left), Edit(end - 1, end, right)]
