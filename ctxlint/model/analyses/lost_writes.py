"""Writes to a copy that nothing else refers to: they have no effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.events import Mutation
from ctxlint.model.interpreter.values import Fresh, storage
from ctxlint.model.syntax import is_name, signed_integer, single_index
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.interpreter.method import Method


def lost_writes(method: Method) -> Iterator[tuple[Mutation, cst.Call | cst.Subscript]]:
    """The writes to a part of a tensor that is a copy of it, with the expression that copies."""
    for mutation in method.facts.of(Mutation):
        origin = storage(mutation.target) if mutation.target is not None else None
        if not isinstance(origin, Fresh) or mutation.by or not _is_discarded(method, mutation):
            continue
        if mutation.how in operations.IN_PLACE_COLLECTIVES:  # CTX405
            continue
        around: cst.CSTNode | None = mutation.target_node
        while around is not None and around is not origin.node:
            inner = around.func if isinstance(around, cst.Call) else around
            around = inner.value if isinstance(inner, (cst.Attribute, cst.Subscript)) else None
        if isinstance(around, (cst.Call, cst.Subscript)) and _copies(method, around):
            yield mutation, around


def _is_discarded(method: Method, mutation: Mutation) -> bool:
    """Whether the written tensor itself is not used: the write is a statement."""
    if mutation.how.startswith("[...]"):
        return True
    return isinstance(mutation.node, cst.Call) and isinstance(method.parents.get(mutation.node), cst.Expr)


def _copies(method: Method, node: cst.Call | cst.Subscript) -> bool:
    """Whether an expression certainly selects a part of a tensor into a copy.

    An index that is a tensor of integers may have no dimensions: then it selects a view.
    """
    if isinstance(node, cst.Call):
        return isinstance(node.func, cst.Attribute) and node.func.attr.value in operations.SELECTING_METHODS
    index = single_index(node)
    if isinstance(index, cst.Name):
        bound = [each for each in method.binders.get(index.value, ()) if isinstance(each, cst.AssignTarget)]
        statement = (
            method.parents.get(bound[0]) if len(bound) == len(method.binders.get(index.value, ())) == 1 else None
        )
        index = statement.value if isinstance(statement, cst.Assign) else None
    while isinstance(index, cst.BinaryOperation) and isinstance(index.operator, (cst.BitAnd, cst.BitOr)):
        index = index.left
    return isinstance(index, cst.Comparison) or (isinstance(index, cst.List) and _selects(index))


def _selects(index: cst.List) -> bool:
    """Whether a list certainly selects elements: one with a slice, `None` or a tensor in it counts as a tuple.

    A name may be a tensor without dimensions, which gives a view.
    """
    values = [each.value for each in index.elements]
    plain = all(signed_integer(each) is not None or is_name(each, "True") or is_name(each, "False") for each in values)
    return plain or any(isinstance(each, cst.List) for each in values)
