"""Inputs through whose graph ``forward`` itself runs a backward pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.grad_mode import is_copied_by, is_on
from ctxlint.model.interpreter.events import Differentiated
from ctxlint.model.interpreter.local_names import only_assigned
from ctxlint.model.interpreter.values import Fresh, Single
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass, Input
    from ctxlint.model.interpreter.method import Method


def inputs_run_through(fn: FunctionClass) -> Iterator[tuple[Differentiated, Input]]:
    """The calls of ``.backward()`` in forward on what it computes, under ``enable_grad``, from an input with its graph.

    Only inputs that get a gradient: any other may never require one. ``inputs=`` limits where the gradients go.
    """
    forward = fn.forward
    if forward is None or forward.name in fn.called_directly:
        return
    for each in forward.facts.of(Differentiated):
        if each.reaches_leaves and isinstance(each.value, (Fresh, Single)):
            names = set(_sources(forward, each.value.node))
            entry = next((entry for entry in fn.inputs if entry.name in names and entry.surely_differentiable), None)
            if entry is not None:
                yield each, entry


def _sources(method: Method, node: cst.CSTNode | None, seen: tuple[str, ...] = ()) -> Iterator[str]:
    """The parameters that certainly are operands of what an expression computes with grad mode on."""
    if isinstance(node, cst.Name):
        if node.value not in method.binders:
            yield node.value
            return
        if node.value in seen:  # it is assigned what it is part of
            return
        seen = (*seen, node.value)
        node = only_assigned(method.node, node.value)
    if node is None or not (is_copied_by(node) and is_on(method, node)):
        return
    operands: list[cst.BaseExpression] = []
    if isinstance(node, cst.BinaryOperation):
        operands = [node.left, node.right]
    elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and not _cuts_off(node.func.attr.value):
        operands = [node.func.value, *(each.value for each in node.args if not each.star)]
    for each in operands:
        yield from _sources(method, each, seen)


def _cuts_off(name: str) -> bool:
    """Whether the result of a function has no graph."""
    return name in operations.INTEGRAL_METHODS or name.endswith("_like") or name.startswith(("new_", "detach"))
