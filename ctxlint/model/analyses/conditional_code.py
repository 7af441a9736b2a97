"""Code of a method that does not run on each of its calls."""

from __future__ import annotations

from enum import Enum
from itertools import takewhile
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
        if isinstance(parent, cst.IfExp) and at is not parent.test:
            return Runs.OPERAND
        if isinstance(parent, (cst.BooleanOperation, cst.Comparison)) and _may_be_skipped(parent, at):
            return Runs.OPERAND
        if isinstance(parent, cst.If) and at is not parent.test:
            found = Runs.STATEMENT
        if isinstance(parent, (cst.ExceptHandler, cst.MatchCase, cst.Lambda)):
            found = Runs.STATEMENT
        if isinstance(parent, cst.FunctionDef) and parent is not method.node:
            found = Runs.STATEMENT
        at = parent
    return Runs.STATEMENT if found is Runs.ALWAYS and _returns_before(method, node) else found


def _may_be_skipped(parent: cst.BooleanOperation | cst.Comparison, child: cst.CSTNode) -> bool:
    """Whether an operand is evaluated only if those before it do not decide: ``a or b``, ``a < b < c``."""
    if isinstance(parent, cst.BooleanOperation):
        return child is parent.right
    return child in parent.comparisons[1:]


def _returns_before(method: Method, node: cst.CSTNode) -> bool:
    """Whether the method may return before it reaches a node."""
    around = set(method.above(node))
    before = takewhile(lambda each: each is not node, method.body_nodes)
    returns = (each for each in before if isinstance(each, cst.Return) and each not in around)
    return any(method.around(each, cst.FunctionDef) is method.node for each in returns)
