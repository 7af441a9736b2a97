"""The calls that a body executes whatever its conditions are, and which of their arguments carry a tangent."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ctxlint.source.ast_tree import nodes_in
from ctxlint.torch_api.transforms import TANGENT_METHODS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def certain_calls(
    statements: Sequence[ast.stmt], flowing: frozenset[str], dual: ast.Call | None = None
) -> Iterator[tuple[ast.Call, frozenset[str]]]:
    """The calls in order, each with the names that carry a tangent before it: ``flowing``, and those computed from it.

    It ends where a condition may return. A ``try`` with handlers, and a loop, may skip calls.
    """
    for statement in statements:
        for node in _evaluated_by(statement):
            yield from ((call, flowing) for call in _calls_in(node))
        if isinstance(statement, ast.With):
            yield from certain_calls(statement.body, flowing, dual)
        if _may_return(statement):
            return
        flowing = _after(statement, flowing, dual)


def _after(statement: ast.stmt, flowing: frozenset[str], dual: ast.Call | None) -> frozenset[str]:
    """The names that carry a tangent after a statement."""
    if isinstance(statement, ast.With):
        for each in statement.body:
            flowing = _after(each, flowing, dual)
        return flowing
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        return flowing
    names = (each for each in nodes_in(statement) if isinstance(each, ast.Name))
    stored = {each.id for each in names if not isinstance(each.ctx, ast.Load)}
    value = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign)) else None
    return flowing | stored if value is not None and computes_with(value, flowing, dual) else flowing - stored


def _evaluated_by(statement: ast.stmt) -> Iterator[ast.expr]:
    """The expressions that a statement certainly evaluates itself."""
    if isinstance(statement, (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return)):
        if statement.value is not None:
            yield statement.value
    elif isinstance(statement, (ast.If, ast.While, ast.Assert)):
        yield statement.test
    elif isinstance(statement, ast.For):
        yield statement.iter
    elif isinstance(statement, ast.With):
        yield from (each.context_expr for each in statement.items)


def _calls_in(node: ast.expr) -> Iterator[ast.Call]:
    """The calls in an expression that are certainly executed, the inner ones first."""
    children: list[ast.expr]
    if isinstance(node, (ast.Lambda, ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp)):
        return
    if isinstance(node, ast.IfExp):
        children = [node.test]
    elif isinstance(node, ast.BoolOp):
        children = node.values[:1]
    elif isinstance(node, ast.Compare):
        children = [node.left, node.comparators[0]]
    else:
        children = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]
        if isinstance(node, ast.Call):
            children += [each.value for each in node.keywords]
    for child in children:
        yield from _calls_in(child)
    if isinstance(node, ast.Call):
        yield node


def _may_return(node: ast.AST) -> bool:
    """Whether a statement may return from the function around it."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
        return False
    return isinstance(node, ast.Return) or any(map(_may_return, ast.iter_child_nodes(node)))


def computes_with(node: ast.expr, flowing: frozenset[str], dual: ast.Call | None = None) -> bool:
    """Whether an expression certainly carries a tangent: by operators and methods of tensors."""
    if node is dual:
        return True
    if isinstance(node, ast.Name):
        return node.id in flowing
    if isinstance(node, ast.BinOp) and isinstance(node.op, _ARITHMETIC):
        return computes_with(node.left, flowing, dual) or computes_with(node.right, flowing, dual)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return computes_with(node.operand, flowing, dual)
    if isinstance(node, ast.Subscript):
        return computes_with(node.value, flowing, dual)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in TANGENT_METHODS:
        return computes_with(node.func.value, flowing, dual)
    return False


_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.MatMult)
