"""The properties of arguments that a summary depends on, so that calls with similar arguments share one summary."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ctxlint.model.interpreter.conditions import is_plain
from ctxlint.model.interpreter.summary import Summary, Write
from ctxlint.model.interpreter.type_tests import type_of
from ctxlint.model.interpreter.values import (
    UNKNOWN,
    Argument,
    Choice,
    Fresh,
    Item,
    Mapping,
    Opaque,
    Parameter,
    Scalar,
    Sequence,
    Single,
    Slot,
    SomeTensor,
    Value,
    View,
    is_container,
    is_none,
    is_tensor,
    join_all,
    kind_of,
)

if TYPE_CHECKING:
    import libcst as cst

_OBJECTS = (Argument, Fresh, Item, Opaque, Parameter, Single, SomeTensor, View)
"""Values that a function distinguishes only by what they answer."""


class Shape:
    """Replaces the caller's objects by ``Argument``, and these by the objects in a summary."""

    def __init__(self) -> None:
        """Start without objects."""
        self.arguments: dict[Value, Argument] = {}
        self.objects: list[Value] = []

    def of(self, value: Value) -> Value:
        """A value of the caller, abstracted for the function."""
        if isinstance(value, _OBJECTS):
            return value if value == UNKNOWN else self._argument(value)
        if isinstance(value, Scalar):
            return replace(value, node=None)
        if isinstance(value, Sequence):
            return Sequence(value.kind, tuple(map(self.slot, value.slots)))
        if isinstance(value, Mapping):
            return Mapping(tuple(map(self.slot, value.slots)))
        if isinstance(value, Choice):
            return join_all(map(self.of, value.alternatives))
        return value

    def slot(self, slot: Slot) -> Slot:
        """Like ``of``, for an argument."""
        return Slot(self.of(slot.value), starred=slot.starred)

    def _argument(self, value: Value) -> Argument:
        known = self.arguments.get(value)
        if known is not None and not isinstance(value, SomeTensor):
            return known
        made = Argument(
            len(self.objects),
            is_tensor(value),
            kind_of(value),
            is_none(value),
            is_container(value),
            type_of(value),
            is_plain(value),
        )
        self.arguments[value] = made
        self.objects.append(value)
        return made

    def applied(self, summary: Summary, call: cst.Call) -> Summary:
        """A summary for arguments of this shape, in values of the caller."""
        writes = tuple(Write(self._in_caller(each.target), each.how, each.steps) for each in summary.writes)
        return Summary(self._returned(summary.returned, call), writes)

    def _in_caller(self, value: Value) -> Value:
        """The caller's value for a value of the summary."""
        if isinstance(value, Argument):
            return self.objects[value.number]
        if isinstance(value, (View, Item)):
            of = self._in_caller(value.of)
            return value if of is value.of else replace(value, of=of)
        if isinstance(value, Choice):
            return join_all(map(self._in_caller, value.alternatives))
        return value

    def _returned(self, value: Value, node: cst.Call) -> Value:
        """What the function returns, as a value of the caller: its nodes belong to the callee."""
        if isinstance(value, Choice):
            return join_all(self._returned(option, node) for option in value.alternatives)
        return self._element(value, node, None)

    def _element(self, value: Value, node: cst.Call, position: int | None) -> Value:
        """One returned value: an argument is unchanged; an object of the function is identified by its position."""
        if isinstance(value, Sequence):
            base = 0 if position is None else 100 * (position + 1)
            slots = tuple(
                Slot(self._element(slot.value, node, base + at), None, slot.starred)
                for at, slot in enumerate(value.slots)
            )
            return Sequence(value.kind, slots, node)
        if isinstance(value, Mapping):
            return Mapping(tuple(Slot(self._element(slot.value, node, 0), None, slot.starred) for slot in value.slots))
        if isinstance(value, Choice):
            return join_all(self._element(option, node, position) for option in value.alternatives)
        if isinstance(value, Fresh):
            return Fresh(node, value.kind, position)
        if isinstance(value, Single):
            return Single(node, position)
        if isinstance(value, (Opaque, Item)):
            return Opaque(node) if position is None else Item(Opaque(node), position)
        if isinstance(value, View):
            return replace(value, of=self._element(value.of, node, position), node=node)
        if isinstance(value, Scalar):
            return replace(value, node=node)
        return self._in_caller(value)
