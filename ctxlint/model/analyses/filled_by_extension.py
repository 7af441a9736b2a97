"""Tensors that a compiled extension may fill: it gets them, and its result is not used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.events import Assigned, GenericCall
from ctxlint.model.interpreter.values import before_views
from ctxlint.model.syntax import dotted
from ctxlint.torch_api.extensions import is_of_extension

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Value


def calls_that_may_fill(method: Method, value: Value) -> Iterator[cst.Call]:
    """The calls of extensions, by the names of their modules as written or imported, that get a tensor to write to."""
    names = {
        each.name for each in method.facts.of(Assigned) if each.value is not None and before_views(each.value) == value
    }
    known = {id(each.node): each for each in method.facts.of(GenericCall)}
    for node in method.nodes_of(cst.Call):
        if not isinstance(method.parents[node], cst.Expr):
            continue
        called = known.get(id(node))
        if called is not None and called.definition is not None:
            continue
        callee = called.callee if called is not None else None
        if not (is_of_extension(dotted(node.func) or "") or is_of_extension(callee or "")):
            continue
        given = called is not None and any(slot.value == value for slot in called.arguments)
        if given or any(isinstance(each.value, cst.Name) and each.value.value in names for each in node.args):
            yield node
