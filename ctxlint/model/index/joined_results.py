"""Calls whose result ``torch.cat`` joins with other tensors: its gradient is a slice of that of the whole."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ctxlint.model.index.results import located
from ctxlint.model.index.scopes import resolve_certainly
from ctxlint.source.ast_tree import nodes_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctxlint.model.index.file_index import CallRecord, FileIndex

JOIN = "torch.cat"


def is_joined(index: FileIndex, call: CallRecord) -> bool:
    """Whether ``torch.cat`` joins the result of a call with others, along a later dimension than the first.

    In the same block, and nothing else uses the result: then its gradient certainly is a slice, which is not
    contiguous unless all sizes before that dimension are 1.
    """
    joins = (each for each in index.calls_named(_NAMES) if each.scope is call.scope)
    return any(_joins(index.body_of(call.scope), each, call.node) for each in joins)


_NAMES = frozenset([JOIN.rpartition(".")[2]])


def _joins(body: Sequence[ast.stmt], join: CallRecord, made: ast.Call) -> bool:
    node = join.node
    parts = node.args[0] if node.args else None
    given = [*node.args[1:], *(each.value for each in node.keywords if each.arg in ("dim", "axis"))]
    if not isinstance(parts, (ast.List, ast.Tuple)) or len(parts.elts) < _SEVERAL or len(given) != 1:
        return False
    dim = given[0]
    if not isinstance(dim, ast.Constant) or type(dim.value) is not int or dim.value < 1:
        return False
    if not isinstance(node.func, ast.Attribute) or resolve_certainly(ast.unparse(node.func), join.scope) != JOIN:
        return False
    if made in parts.elts:
        return True
    place, at = located(body, made), located(body, node)
    statement = place.rest[0] if place is not None else None
    if place is None or at is None or at.block is not place.block or not isinstance(statement, ast.Assign):
        return False
    targets = statement.targets
    if statement.value is not made or len(targets) != 1 or not isinstance(targets[0], ast.Name):
        return False
    uses = _uses_of(targets[0].id, body)
    return len(uses) == 1 and uses[0] in parts.elts and at.at > place.at


def _uses_of(name: str, body: Sequence[ast.stmt]) -> list[ast.expr]:
    """The uses of a name that one statement binds, except for its shape; all that mention it, if several bind it."""
    nodes = [node for each in body for node in nodes_in(each)]
    asked = {id(each.value) for each in nodes if isinstance(each, ast.Attribute) and each.attr in _ABOUT_SHAPE}
    named = [each for each in nodes if isinstance(each, ast.Name) and each.id == name]
    stores = [each for each in named if not isinstance(each.ctx, ast.Load)]
    return [*named] if len(stores) > 1 else [each for each in named if each not in stores and id(each) not in asked]


_SEVERAL = 2
_ABOUT_SHAPE = frozenset(["device", "dim", "dtype", "ndim", "shape", "size"])
