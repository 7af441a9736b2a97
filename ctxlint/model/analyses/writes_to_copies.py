"""Writes of a function that gets a tensor, and makes it contiguous first: to a copy, if it is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.events import Mutation
from ctxlint.model.interpreter.strided_launches import any_layout
from ctxlint.model.interpreter.values import before_views
from ctxlint.model.syntax import code_of, dotted, keywords_of, root_name
from ctxlint.records import record
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.interpreter.method import Method


@record
class WriteToCopy:
    """A call that writes to ``name``, or to a copy of it if ``like`` is not contiguous, and whose result is dropped."""

    mutation: Mutation
    name: str
    like: str


def writes_to_copies(backward: Method) -> Iterator[WriteToCopy]:
    """Such calls of backward that get a new tensor with the layout of an incoming gradient, which it reads later."""
    if any(each.attr.value == "is_contiguous" for each in backward.nodes_of(cst.Attribute)):
        return
    for mutation in backward.facts.of(Mutation):
        call, target = mutation.node, mutation.target
        dropped = isinstance(call, cst.Call) and isinstance(backward.parents.get(call), cst.Expr)
        if not isinstance(call, cst.Call) or not dropped or not mutation.by or target is None:
            continue
        if any_layout(target) is not None:
            continue
        for argument in call.args:
            bound = backward.only_assignment(argument.value.value) if isinstance(argument.value, cst.Name) else None
            like = (
                _like(backward, bound.value_node) if bound is not None and bound.value == before_views(target) else ""
            )
            if bound is not None and like and backward.named[bound.name][-1] is not argument.value:
                yield WriteToCopy(mutation, bound.name, like)


def _like(backward: Method, created: cst.BaseExpression | None) -> str:
    """The code of the incoming gradient whose layout a new tensor gets; empty if it may have another one."""
    if not isinstance(created, cst.Call) or not created.args or "memory_format" in keywords_of(created):
        return ""
    like = created.args[0].value
    name, keeps = (
        root_name(like),
        (dotted(created.func) or "").rpartition(".")[2] in operations.LAYOUT_KEEPING_FACTORIES,
    )
    gradient = any(each.name == name for each in backward.own_params) and not backward.binders.get(name or "")
    return code_of(like) if keeps and gradient else ""
