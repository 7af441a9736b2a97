"""Code of a method that does not run on each of its calls."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from ctxlint.model.interpreter.method import Method


class Runs(Enum):
    """When a node of a method is evaluated."""

    ALWAYS = "whenever the method gets there"
    STATEMENT = "if its statement runs"
    OPERAND = "if an operand before it, or a condition in its statement, does not decide"


def runs(method: Method, node: cst.CSTNode) -> Runs:
    """When a node is evaluated, by what is around it, and by a ``return`` before it. That loops run is assumed."""
    found, at = Runs.ALWAYS, node
    for parent in method.above(node):
        around = condition(parent, at) if parent is not method.node else Runs.ALWAYS
        if around is Runs.OPERAND:
            return around
        found = around if found is Runs.ALWAYS else found
        at = parent
    return Runs.STATEMENT if found is Runs.ALWAYS and _returns_before(method, node) else found


def condition(parent: cst.CSTNode, child: cst.CSTNode) -> Runs:
    """When a child of a node is evaluated, if that node is."""
    if isinstance(parent, cst.IfExp):
        return Runs.ALWAYS if child is parent.test else Runs.OPERAND
    if isinstance(parent, (cst.BooleanOperation, cst.Comparison)):
        return Runs.OPERAND if _may_be_skipped(parent, child) else Runs.ALWAYS
    if isinstance(parent, cst.Assert) and child is parent.msg:
        return Runs.OPERAND
    if isinstance(parent, cst.If):
        return Runs.ALWAYS if child is parent.test else Runs.STATEMENT
    return Runs.STATEMENT if isinstance(parent, _SKIPPED) else Runs.ALWAYS


_SKIPPED = (cst.ExceptHandler, cst.MatchCase, cst.Lambda, cst.FunctionDef)


def _may_be_skipped(parent: cst.BooleanOperation | cst.Comparison, child: cst.CSTNode) -> bool:
    """Whether an operand is evaluated only if those before it do not decide: ``a or b``, ``a < b < c``."""
    if isinstance(parent, cst.BooleanOperation):
        return child is parent.right
    return child in parent.comparisons[1:]


def _returns_before(method: Method, node: cst.CSTNode) -> bool:
    """Whether the method may return before it reaches a node."""
    around = set(method.above(node))
    before = (each for each in method.nodes_of(cst.Return) if method.is_written_before(each, node))
    return any(each not in around and method.around(each, cst.FunctionDef) is method.node for each in before)
