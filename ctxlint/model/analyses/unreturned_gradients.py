"""Gradients that backward writes down but never returns, as it returns only None."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.events import Discarded
from ctxlint.model.interpreter.values import NONE, Constant, Sequence, Tri, is_none, is_tensor
from ctxlint.model.syntax import last_name, words_of
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass, Returned
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
