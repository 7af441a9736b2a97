"""State outside of ctx that backward removes: ``STATES.pop(ctx.key)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.conditional_code import Runs, runs
from ctxlint.model.syntax import code_of, dotted, root_name, single_index
from ctxlint.named_tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.interpreter.method import Method


class Removed(NamedTuple):
    """The node that removes the state for a key from a container, as the code names both."""

    node: cst.Call | cst.Del
    container: str
    key: str


def removed_state(method: Method) -> Iterator[Removed]:
    """What a method certainly needs, and removes, under a key that ctx keeps; it does nothing else to the container."""
    for found in (*_popped(method), *_deleted(method)):
        around = method.above(found.node)
        if runs(method, found.node) is not Runs.ALWAYS or any(isinstance(each, _CAREFUL) for each in around):
            continue
        if all(_is_read(method, each, found) for each in method.named.get(_root_of(found), ())):
            yield found


def _root_of(removed: Removed) -> str:
    """The first name of the container."""
    return removed.container.partition(".")[0]


def _popped(method: Method) -> Iterator[Removed]:
    for call in method.nodes_of(cst.Call):
        func = call.func
        if not isinstance(func, cst.Attribute) or func.attr.value != "pop" or len(call.args) not in (1, 2):
            continue
        dropped = isinstance(method.parents[call], cst.Expr)
        if dropped and len(call.args) > 1:
            continue  # what is not there any more is not missed
        found = _removed(method, call, func.value, call.args[0].value)
        if found is not None:
            yield found


def _deleted(method: Method) -> Iterator[Removed]:
    for statement in method.nodes_of(cst.Del):
        target = statement.target
        key = single_index(target) if isinstance(target, cst.Subscript) else None
        found = _removed(method, statement, target.value, key) if isinstance(target, cst.Subscript) else None
        if found is not None:
            yield found


def _removed(
    method: Method, node: cst.Call | cst.Del, container: cst.BaseExpression, key: cst.BaseExpression | None
) -> Removed | None:
    """The removal, if ctx keeps the key, and something outside of the method keeps the container."""
    root, path = root_name(container), dotted(container)
    kept = method.behind_name(key) if key is not None else None
    if root is None or path is None or kept is None or not method.is_on_ctx(kept):
        return None
    if root in method.binders or any(param.name == root for param in method.params):
        return None
    return Removed(node, path, code_of(key) if key is not None else "")


def _is_read(method: Method, name: cst.Name, removed: Removed) -> bool:
    """Whether a use of the container is the removal, or reads what it has for the key."""
    if any(each is removed.node for each in method.above(name)):
        return True
    for each in method.above(name):
        if isinstance(each, cst.Subscript):
            stored = isinstance(method.parents[each], (cst.AssignTarget, cst.AugAssign, cst.Del))
            return dotted(each.value) == removed.container and not stored
        if not isinstance(each, cst.Attribute):
            return False
    return False


_CAREFUL = (cst.Try, cst.TryStar, cst.For, cst.While)
