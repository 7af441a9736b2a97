"""Does backward read what a tensor held before it writes there, or what it wrote, or is that for other code?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.events import Assigned, Mutation
from ctxlint.model.interpreter.values import ContextAttribute, storage
from ctxlint.model.syntax import code_of, dotted, parents_below
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from ctxlint.model.interpreter.method import Method


def is_left_for_others(method: Method, mutation: Mutation) -> bool:
    """Whether a tensor is modified for other code: afterwards, it is read only to be modified again, or for its shape.

    In a loop, the statements before the write also run after it.
    """
    if not _is_statement(method, mutation.node):
        return False
    target = storage(mutation.target) if mutation.target is not None else None
    same = [each for each in method.facts.of(Mutation) if each.target is not None and storage(each.target) == target]
    updates = [each.statement or each.node for each in same if _is_statement(method, each.node)]
    inside = {node for each in (mutation.node, *updates) for node in (each, *parents_below(each))}
    uses = _uses(method, mutation, slice(method.body_nodes.index(_outermost_loop(method, mutation.node)), None))
    return uses is not None and all(
        each in inside or _is_target(method, each) or method.is_measured(each) for each in uses
    )


def is_overwritten_first(method: Method, mutation: Mutation) -> bool:
    """Whether every run of the method overwrites the whole tensor before anything there reads it: it is scratch."""
    node, written = mutation.statement or mutation.node, mutation.target_node
    if mutation.guards or mutation.in_loop or mutation.through or not replaces_all(mutation):
        return False
    uses = _uses(method, mutation, slice(method.body_nodes.index(node) + len(parents_below(node)) + 1))
    return uses is not None and all(each is written or _is_bound(method, each) for each in uses)


def replaces_all(mutation: Mutation) -> bool:
    """Whether a write replaces all elements of the tensor that is accessed, independently of what they were."""
    if mutation.target is None or mutation.target != storage(mutation.target):
        return False
    if mutation.how == "[...] =" and isinstance(mutation.node, cst.Subscript):
        return all(code_of(each).strip(" ,") in (":", "...") for each in mutation.node.slice)
    return mutation.how in operations.OVERWRITING


def _uses(method: Method, mutation: Mutation, part: slice) -> list[cst.CSTNode] | None:
    """Where a part of the method names the tensor that is modified; None if it has other names, which are unknown."""
    target = storage(mutation.target) if mutation.target is not None else None
    names = {
        each.name for each in method.facts.of(Assigned) if each.value is not None and storage(each.value) == target
    }
    if isinstance(target, ContextAttribute) and method.ctx is not None:
        names.add(f"{method.ctx.name}.{target.name}")
    elif target is None or mutation.name not in names:
        return None
    named = [each for each in method.body_nodes[part] if isinstance(each, (cst.Name, cst.Attribute))]
    labels = {each.attr for each in named if isinstance(each, cst.Attribute)}
    return [each for each in named if dotted(each) in names and each not in labels]


def _outermost_loop(method: Method, node: cst.CSTNode) -> cst.CSTNode:
    """The outermost loop around a node that can reach the node again; the node itself if there is none."""
    loops = [each for each in method.above(node) if isinstance(each, (cst.For, cst.While))]
    return loops[-1] if loops else node


def _is_statement(method: Method, node: cst.CSTNode) -> bool:
    """Whether the result of the write is unused, except for further methods called on it."""
    parent = method.parents[node]
    while isinstance(parent, (cst.Attribute, cst.Call)):  # an argument would be in an ``Arg``
        node, parent = parent, method.parents[parent]
    targets = (cst.Expr, cst.AssignTarget, cst.AugAssign)
    return isinstance(parent, targets) or isinstance(node, (cst.AugAssign, cst.Assign))


def _is_bound(method: Method, name: cst.CSTNode) -> bool:
    """Whether a name is only bound there, or gets another name."""
    parent = method.parents[name]
    return _is_target(method, name) or (isinstance(parent, cst.Assign) and parent.value is name)


def _is_target(method: Method, name: cst.CSTNode) -> bool:
    """Whether a name is bound or deleted there, not read."""
    parent = method.parents[name]
    while isinstance(parent, (cst.Tuple, cst.Element, cst.List)):
        parent = method.parents[parent]
    return isinstance(parent, (cst.AssignTarget, cst.Del))
