"""Calls that pass a tensor without its graph: ``Fn.apply(weight.data)``, also through a function that hands it on."""

from __future__ import annotations

import ast


def is_detached(node: ast.expr) -> bool:
    """Whether an argument is written as a tensor without a graph: ``x.data``, ``x.detach()``."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr == "detach" and not node.args
    return isinstance(node, ast.Attribute) and node.attr == "data"


def passes_detached(call: ast.Call, position: int) -> bool:
    """Whether a call certainly passes such an argument at this position."""
    before = call.args[:position]
    if len(call.args) <= position or any(isinstance(each, ast.Starred) for each in before):
        return False
    return is_detached(call.args[position])
