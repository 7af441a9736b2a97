"""Gradients that backward writes down but never returns, as it returns only None."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.events import Discarded, GenericCall, MethodCall, Mutation
from ctxlint.model.interpreter.values import NONE, Constant, Fresh, Sequence, Tri, is_none, is_tensor
from ctxlint.model.syntax import last_name, words_of
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ctxlint.model.function import FunctionClass, Returned
    from ctxlint.model.interpreter.events import Assigned, Return
    from ctxlint.model.interpreter.method import Method


@record
class Unreturned:
    """A statement with gradients that lacks ``return``, or a ``return`` that is not reached; ``inputs`` would get them.

    ``returned`` is what autograd gets instead; None if that depends on what comes after the statement.
    """

    node: cst.CSTNode
    returned: Returned | None
    inputs: tuple[str, ...] = ()


def unreturned_gradients(fn: FunctionClass) -> Iterator[Unreturned]:
    """The gradients without ``return``, and those behind an unconditional ``return None, None``."""
    backward = fn.counted_backward
    if backward is None or not fn.gradients:
        return
    if not _is_empty(fn.gradients[-1]):
        yield from (Unreturned(each.node, None) for each in backward.facts.of(Discarded) if _lists_gradients(each))
        return
    for event in backward.facts.of(Discarded):
        after = [each for each in fn.gradients if each.event.may_follow(event)]
        positions = _gradients_in(backward, event, len(after[0].slots)) if after and all(map(_is_empty, after)) else []
        inputs = [each for each in fn.inputs if each.index in positions and each.is_tensor is not Tri.NO]
        if inputs:
            yield Unreturned(event.node, after[0], tuple(each.name for each in inputs))
    if all(map(_is_empty, fn.gradients)) and not fn.gradients[-1].event.guards:
        last = fn.gradients[-1]
        unreached = [each for each in backward.nodes_of(cst.Return) if _is_behind(backward, each, last.node)]
        if unreached:
            yield Unreturned(unreached[-1], last)


@record
class Overwritten:
    """An assignment of ``None`` to gradients of ``inputs`` that nothing has read since they were computed, by name."""

    statement: cst.CSTNode
    inputs: Mapping[str, str]


def overwritten_gradients(fn: FunctionClass) -> Iterator[Overwritten]:
    """The assignments of ``None`` that certainly lose what backward has computed for the inputs that get it."""
    backward = fn.counted_backward
    found: dict[cst.CSTNode, dict[str, str]] = {}
    for returned in fn.gradients if backward is not None else ():
        for each, slot in zip(fn.inputs, returned.slots if returned.known and returned.exact else ()):
            name = slot.node.value if isinstance(slot.node, cst.Name) else ""
            if backward is None or is_none(slot.value) is not Tri.YES or each.is_tensor is Tri.NO:
                continue
            last = _loses(backward, name, returned.event)
            if last is not None:
                found.setdefault(last, {})[name] = each.name
    return (Overwritten(statement, inputs) for statement, inputs in found.items())


def _loses(backward: Method, name: str, returned: Return) -> cst.CSTNode | None:
    """The line of the body that binds a name to ``None`` at last, right after one that binds it to a new tensor."""
    assigned = backward.assignments.get(name, [])
    if len(assigned) < 2 or len(assigned) < len(backward.binders[name]) or not returned.may_follow(assigned[-1]):
        return None
    *_, computed, last = assigned
    first, end = (backward.line_of_body(each.node) for each in (computed, last))
    if first is None or end is None or len(first.body) > 1 or len(end.body) > 1:
        return None
    if computed.augmented or not _computes(backward, computed) or last.value != NONE:
        return None
    return end if not any(_may_come_between(backward, each, first, end) for each in backward.named[name]) else None


def _computes(backward: Method, assigned: Assigned) -> bool:
    """Whether an assignment only computes a new tensor: it modifies and binds nothing, and no function may keep it."""
    node = assigned.value_node
    called = [each.node for each in backward.facts.of(GenericCall) if each.definition is not None]
    called += [each.node for each in backward.facts.of(MethodCall) if each.definition is not None]
    called += [each.node for each in backward.facts.of(Mutation)]
    ours = any(node in (each, *backward.above(each)) for each in called)
    if node is not None and isinstance(backward.parents.get(node), cst.NamedExpr):
        return False
    return isinstance(assigned.value, Fresh) and assigned.value.node is node and not ours


def _may_come_between(backward: Method, node: cst.Name, first: cst.CSTNode, last: cst.CSTNode) -> bool:
    """Whether a name may be read after the first of two lines of the body, and before the last."""
    above = [*backward.above(node)]
    if any(isinstance(each, (cst.FunctionDef, cst.Lambda)) and each is not backward.node for each in above):
        return True
    inside = first in above or last in above
    return not inside and backward.is_written_before(first, node) and backward.is_written_before(node, last)


def _is_empty(returned: Returned) -> bool:
    return returned.known and returned.exact and all(is_none(slot.value) is Tri.YES for slot in returned.slots)


def _lists_gradients(event: Discarded) -> bool:
    """Whether a statement is a tuple of names and ``None``, which only a ``return`` gives a meaning."""
    value = event.node.value if isinstance(event.node, cst.Expr) else None
    elements = [each.value for each in value.elements] if isinstance(value, cst.Tuple) else []
    names = [each.value for each in elements if isinstance(each, cst.Name)]
    return len(names) == len(elements) > 1 and "None" in names and {*names} != {"None"}


def _gradients_in(backward: Method, event: Discarded, count: int) -> list[int]:
    """The positions of the gradients in an expression statement; none unless it is certainly meant to be returned.

    A call may be there for its effect, unless ``None`` is next to it, for an input without a gradient.
    """
    value = event.value
    if not isinstance(value, Sequence):
        incoming = {each.name for each in backward.own_params}
        return (
            [0] if count == 1 and is_tensor(value) is Tri.YES and not incoming.isdisjoint(words_of(event.node)) else []
        )
    if not value.exact or len(value.slots) != count:
        return []
    computed = {at: each.node for at, each in enumerate(value.slots) if not isinstance(each.value, Constant)}
    calls = [each for each in computed.values() if isinstance(each, cst.Call)]
    if any(last_name(each.func).endswith("_") for each in calls):
        return []
    return list(computed) if not calls or any(each.value == NONE for each in value.slots) else []


def _is_behind(backward: Method, node: cst.Return, returned: cst.CSTNode) -> bool:
    """Whether a ``return`` of backward itself with gradients is written after the one that is always executed."""
    value = node.value
    elements = [each.value for each in value.elements] if isinstance(value, cst.Tuple) else [value]
    empty = all(each is None or (isinstance(each, cst.Name) and each.value == "None") for each in elements)
    nested = any(isinstance(each, cst.FunctionDef) and each is not backward.node for each in backward.above(node))
    return not empty and not nested and node is not returned and backward.precedes(returned, node)
