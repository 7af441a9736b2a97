"""Calls in loops: one that reads the same as in an earlier turn has the same value, and records the same events.

A loop is walked until its state settles, and for each of these turns the loops in it are, too; most calls there do not
depend on what changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ctxlint.effort import spend
from ctxlint.model.interpreter.values import Choice, Item, Mapping, ProjectObject, Sequence, View
from ctxlint.named_tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    import libcst as cst

    from ctxlint.model.interpreter.events import Event
    from ctxlint.model.interpreter.state import State
    from ctxlint.model.interpreter.values import Value

    Recorded = tuple[Callable[..., Event], cst.CSTNode, dict[str, Any]]
    """The arguments of ``Walk.record``."""


class Evaluated(NamedTuple):
    """One evaluation of a call: where and what it read, what it gave, and what it recorded.

    ``captured`` is the number of names that nested definitions had captured by then.
    """

    statement: cst.CSTNode | None
    captured: int
    read: dict[str, Value | None]
    attributes: dict[str, Value]
    value: Value
    recorded: tuple[Recorded, ...]


class RepeatedCalls:
    """The last evaluation of each call in the loops of one walk.

    Those that do more than read names, record events and give a value are not kept.
    """

    def __init__(self) -> None:
        self.read: list[str] = []
        """The names that were read in the loops so far."""
        self.recorded: list[Recorded] = []
        """The events that were recorded there."""
        self.effects = 0
        """How many other effects there were."""
        self._last: dict[cst.CSTNode, Evaluated] = {}

    def find(self, node: cst.Call, statement: cst.CSTNode | None, captured: int, state: State) -> Evaluated | None:
        """The last evaluation of a call, if all that it read is as it was."""
        known = self._last.get(node)
        if known is None or known.statement is not statement or known.captured != captured:
            return None
        spend(len(known.read) + len(known.attributes) >> 3)
        is_same = (
            len(known.attributes) == len(state.attributes)
            and all(_same(value, state.attributes.get(name)) for name, value in known.attributes.items())
            and all(_same(value, state.names.get(name)) for name, value in known.read.items())
        )
        return known if is_same else None

    def keep(self, node: cst.Call, evaluated: Evaluated) -> None:
        """Keep an evaluation."""
        if not _may_change(evaluated.value):
            self._last[node] = evaluated


def _same(one: Value | None, other: Value | None) -> bool:
    """Whether two values are equal, and the same objects where the identity of a list matters."""
    if one is other:
        return True
    kind = type(one)
    if kind is not type(other) or kind is Sequence or kind is Mapping:
        return False
    if isinstance(one, Choice) and isinstance(other, Choice):
        both = zip(one.alternatives, other.alternatives)
        return len(one.alternatives) == len(other.alternatives) and all(_same(*each) for each in both)
    if isinstance(one, (View, Item)) and isinstance(other, (View, Item)):
        return _same(one.of, other.of) and one == other
    return one == other


def _may_change(value: Value) -> bool:
    """Whether a value is, or contains, a list or dict: each evaluation makes a new one."""
    if isinstance(value, (Sequence, Mapping)):
        return (
            isinstance(value, Mapping) or value.kind != "tuple" or any(_may_change(slot.value) for slot in value.slots)
        )
    if isinstance(value, (View, Item)):
        return _may_change(value.of)
    if isinstance(value, ProjectObject):
        return True
    return isinstance(value, Choice) and any(map(_may_change, value.alternatives))
