"""Whether backward reads what it wrote into a tensor, or leaves it for other code to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.events import Assigned
from ctxlint.model.interpreter.values import ContextAttribute, storage
from ctxlint.model.syntax import dotted, parents_below

if TYPE_CHECKING:
    from ctxlint.model.interpreter.events import Mutation
    from ctxlint.model.interpreter.method import Method


def is_left_for_others(method: Method, mutation: Mutation) -> bool:
    """Whether nothing in the method reads a tensor after it is modified: the write is meant for other code.

    In a loop, the statements before the write also run after it.
    """
    target = storage(mutation.target) if mutation.target is not None else None
    if target is None or not _is_statement(method, mutation.node):
        return False
    names = {
        each.name for each in method.facts.of(Assigned) if each.value is not None and storage(each.value) == target
    }
    if isinstance(target, ContextAttribute) and method.ctx is not None:
        names.add(f"{method.ctx.name}.{target.name}")
    elif mutation.name not in names:
        return False
    nodes = method.body_nodes
    inside = {mutation.node, *parents_below(mutation.node)}
    start = nodes.index(_outermost_loop(method, mutation.node))
    reads = (each for each in nodes[start:] if isinstance(each, (cst.Name, cst.Attribute)) and dotted(each) in names)
    return all(each in inside or _is_target(method, each) for each in reads)


def _outermost_loop(method: Method, node: cst.CSTNode) -> cst.CSTNode:
    """The outermost loop around a node that can reach the node again; the node itself if there is none."""
    loops = [each for each in method.above(node) if isinstance(each, (cst.For, cst.While))]
    return loops[-1] if loops else node


def _is_statement(method: Method, node: cst.CSTNode) -> bool:
    """Whether the result of the write is unused, except for further methods called on it."""
    parent = method.parents[node]
    while isinstance(parent, (cst.Attribute, cst.Call)):  # an argument would be in an ``Arg``
        node, parent = parent, method.parents[parent]
    return isinstance(parent, (cst.Expr, cst.AssignTarget)) or isinstance(node, (cst.AugAssign, cst.Assign))


def _is_target(method: Method, name: cst.CSTNode) -> bool:
    """Whether a name is bound or deleted there, not read."""
    parent = method.parents[name]
    while isinstance(parent, (cst.Tuple, cst.Element, cst.List)):
        parent = method.parents[parent]
    return isinstance(parent, (cst.AssignTarget, cst.Del))
