"""Collectives that run asynchronously and that nothing waits for, although their result is returned."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.helper_places import present
from ctxlint.model.interpreter.events import Assigned, GenericCall, MethodCall, Mutation
from ctxlint.model.syntax import dotted, is_name, keywords_of, only_target, words_of
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.interpreter.method import Method

_WAITING = frozenset(
    str.split("barrier current_stream is_completed stream synchronize wait wait_event wait_stream wait_tensor")
)
"""The names of functions by which a method may wait, for whatever it is."""


def dropped_handles(method: Method) -> Iterator[Mutation]:
    """The collectives with ``async_op=True`` whose handle is discarded, of a name that the method then returns."""
    for mutation in method.facts.of(Mutation):
        call = mutation.node
        if mutation.how not in operations.IN_PLACE_COLLECTIVES or not isinstance(call, cst.Call):
            continue
        if (
            _is_async(call)
            and _is_discarded(method, call)
            and _is_returned(method, mutation)
            and not _waits(method, call)
            and (not mutation.by or _passes_handle_on(method, call))
        ):
            yield mutation


def _is_async(call: cst.Call) -> bool:
    return is_name(keywords_of(call).get("async_op"), "True")


def _passes_handle_on(method: Method, call: cst.Call) -> bool:
    """Whether a function of the project is one ``return`` of a collective, to which it passes its ``async_op``."""
    calls: tuple[GenericCall | MethodCall, ...] = (*method.facts.of(GenericCall), *method.facts.of(MethodCall))
    called = next((each.definition for each in calls if each.node is call), None)
    if called is None or method.home is None:
        return False
    definition = present(called, method.home)
    known = definition.unit.index.functions.get(definition.qualname)
    body = known.node.body if known is not None and not known.alternatives else []
    result = body[-1].value if body and isinstance(body[-1], ast.Return) else None
    documented = all(isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant) for each in body[:-1])
    passed = [each.value for each in result.keywords if each.arg == "async_op"] if isinstance(result, ast.Call) else []
    return documented and any(isinstance(each, ast.Name) and each.id == "async_op" for each in passed)


def _is_discarded(method: Method, call: cst.Call) -> bool:
    """Whether a call is a statement, or bound to a name that nothing reads."""
    above = method.parents.get(call)
    target = only_target(above)
    unread = isinstance(target, cst.Name) and len(method.named.get(target.value, ())) == 1
    return isinstance(above, cst.Expr) or unread


def _is_returned(method: Method, mutation: Mutation) -> bool:
    """Whether a return mentions the name of the tensor, which is still bound to it."""
    name = dotted(mutation.target_node) if mutation.target_node is not None else None
    if name is None or any(each.name == name and each.may_follow(mutation) for each in method.facts.of(Assigned)):
        return False
    later = (each.node for each in method.returns if each.may_follow(mutation))
    return any(isinstance(each, cst.Return) and name in words_of(each) for each in later)


def _waits(method: Method, call: cst.Call) -> bool:
    """Whether something in the method may wait for the collective, such as a manager around it."""
    managed = any(isinstance(each, cst.With) for each in method.above(call))
    return managed or any(each.attr.value in _WAITING for each in method.nodes_of(cst.Attribute))
