"""Where backward leaves autograd, and where it trusts the layout of what comes in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.events import Assigned, GenericCall
from ctxlint.model.syntax import dotted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method

_CUTTING_METHODS = frozenset({"detach", "numpy", "item", "tolist", "cpu_numpy"})
_CUTTING_CALLS = ("torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad")
_FROM_OUTSIDE = ("builtins.", "torch.")
"""Decorators that certainly leave gradients as they are laid out; one of the project may make them contiguous."""
_NEEDING_LAYOUT = frozenset({"view", "data_ptr"})


def leaves_autograd(method: Method) -> tuple[cst.CSTNode, str] | None:
    """The first place at which a body does what autograd does not record, and what it is; None for none."""
    calls = {id(call.node): call.callee for call in method.facts.of(GenericCall)}
    for node in method.body_nodes:
        if type(node) is cst.Attribute and node.attr.value == "data":
            return node, "`.data`"
        if type(node) is not cst.Call:
            continue
        if isinstance(node.func, cst.Attribute) and node.func.attr.value in _CUTTING_METHODS:
            return node, f"`.{node.func.attr.value}()`"
        if isinstance(node.func, cst.Subscript) and not _is_kept(method, node.func.value):
            return node, "a kernel launch"
        callee = calls.get(id(node))
        if callee in _CUTTING_CALLS:
            return node, f"`{callee}`"
        if callee is not None and callee.startswith("numpy."):
            return node, f"`{callee}`"
    return None


def _is_kept(method: Method, node: cst.BaseExpression) -> bool:
    """Whether an expression is an attribute of ctx: what is kept there are functions to call, not kernels to launch."""
    while isinstance(node, (cst.Attribute, cst.Subscript)):
        node = node.value
    return isinstance(node, cst.Name) and method.ctx is not None and node.value == method.ctx.name


def layout_uses(fn: FunctionClass) -> Iterator[tuple[cst.Call, str, str]]:
    """Calls of ``view`` or ``data_ptr`` on an incoming gradient that is never bound anew: call, name, method."""
    backward = fn.backward
    if backward is None or any(not (each.name or "").startswith(_FROM_OUTSIDE) for each in backward.decorators):
        return
    rebound = {each.name for each in backward.facts.of(Assigned)}
    names = {param.name for param in backward.positional} - rebound
    for node in backward.body_nodes:
        if type(node) is not cst.Call or not isinstance(node.func, cst.Attribute):
            continue
        if node.func.attr.value not in _NEEDING_LAYOUT:
            continue
        name = dotted(node.func.value)
        if name in names and not _asks_contiguous(backward, name):
            yield node, name or "", node.func.attr.value


def _asks_contiguous(method: Method, name: str) -> bool:
    """Whether the body asks the tensor for its layout: then it knows what it does."""
    return any(
        type(node) is cst.Call and dotted(node.func) in (f"{name}.is_contiguous", f"{name}.stride")
        for node in method.body_nodes
    )
