"""Whether a function runs a call under autocast, as far as its own code shows."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ctxlint.model.index.file_index import last_name
from ctxlint.model.index.scopes import dotted_name
from ctxlint.source.ast_tree import nodes_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def may_be_under_autocast(function: ast.FunctionDef | ast.AsyncFunctionDef, call: ast.Call) -> bool:
    """Whether a function enters autocast around a call, or asks before whether it is on, and goes on to the call then.

    Not where ``backward`` runs under the same autocast, as the products of it get the same dtype.
    """
    block: Sequence[ast.stmt] = function.body
    found = False
    while True:
        around = next((each for each in block if _is_in(call, each)), None)
        if around is None:
            return False
        for before in block[: block.index(around)]:
            asks = _goes_on(before)
            if asks is None:
                return False
            found = found or asks
        if isinstance(around, (ast.With, ast.AsyncWith)):
            entered = [item.context_expr for item in around.items if _is_autocast(item.context_expr)]
            if any(isinstance(each, ast.Call) and len(each.args) > _ENABLED for each in entered) or any(
                keyword.arg in ("enabled", None) for each in entered for keyword in getattr(each, "keywords", ())
            ):
                return False
            if entered and any(_is_backward(each) for statement in around.body for each in nodes_in(statement)):
                return False
            found = found or bool(entered)
        elif isinstance(around, ast.If) and _asks(around.test):
            chosen = around.body if _holds(around.test) else around.orelse if _holds_not(around.test) else []
            if not any(_is_in(call, each) for each in chosen):
                return False
            found = True
        blocks = [part for part in _blocks(around) if any(_is_in(call, each) for each in part)]
        if not blocks:
            return found and not (_asks(around) and not isinstance(around, ast.If))
        block = blocks[0]


_ENABLED = 2
"""The position of ``enabled`` after the device and the dtype."""


def _goes_on(statement: ast.stmt) -> bool | None:
    """Whether a statement asks whether autocast is on; None if the code after it may not run then, or is unknown."""
    if not _asks(statement):
        return False
    if isinstance(statement, ast.If) and _asks(statement.test):
        if _holds(statement.test):
            return None if _leaves(statement.body) else True
        if _holds_not(statement.test):
            return None if _leaves(statement.orelse) else True
        return None
    plain = isinstance(statement, (ast.Assign, ast.AnnAssign)) and not _is_question(statement.value)
    return True if plain else None


def _blocks(statement: ast.stmt) -> Iterable[Sequence[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        yield getattr(statement, name, None) or ()
    for each in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield each.body


def _leaves(block: Sequence[ast.stmt]) -> bool:
    last = block[-1] if block else None
    if isinstance(last, (ast.With, ast.AsyncWith)):
        return _leaves(last.body)
    if isinstance(last, ast.If):
        return _leaves(last.body) and _leaves(last.orelse)
    return isinstance(last, (ast.Return, ast.Raise, ast.Continue, ast.Break))


def _is_in(call: ast.Call, statement: ast.stmt) -> bool:
    return any(each is call for each in nodes_in(statement))


def _asks(node: ast.AST) -> bool:
    return any(_is_question(each) for each in nodes_in(node))


def _holds(test: ast.expr) -> bool:
    return _is_question(test)


def _holds_not(test: ast.expr) -> bool:
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) and _is_question(test.operand)


def _is_question(node: ast.AST | None) -> bool:
    name = last_name(dotted_name(node.func) or "") if isinstance(node, ast.Call) else ""
    return name.startswith("is_autocast") and name.endswith("enabled")


def _is_autocast(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and last_name(dotted_name(node.func) or "") == "autocast"


def _is_backward(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "backward"
