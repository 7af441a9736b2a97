"""The properties of arguments that a summary depends on, so that calls with similar arguments share one summary."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ctxlint.model.interpreter.conditions import is_plain
from ctxlint.model.interpreter.events import ContextCall, ContextWrite, SavedRead
from ctxlint.model.interpreter.summary import ContextEffects, StridesUse, Summary, Write
from ctxlint.model.interpreter.type_tests import type_of
from ctxlint.model.interpreter.values import (
    FUNCTION_TYPE,
    UNKNOWN,
    Argument,
    Choice,
    ContextAttribute,
    Fresh,
    Item,
    Mapping,
    Opaque,
    Parameter,
    ProjectFunction,
    ProjectObject,
    SavedTensor,
    Scalar,
    Sequence,
    Single,
    Slot,
    SomeTensor,
    TensorTuple,
    Tri,
    Value,
    View,
    detaches,
    is_container,
    is_none,
    is_tensor,
    join_all,
    kind_of,
    tensor_when_used,
    usual_storage,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Mapping as Attributes_

    import libcst as cst

    from ctxlint.model.interpreter.events import Asks, ContextEvent, Guard, KernelFault

    Attributes = Attributes_[str, Value]

_OBJECTS = (Argument, Fresh, Item, Opaque, Parameter, SavedTensor, Single, SomeTensor, View)
"""Values that a function distinguishes only by what they answer."""

_MADE = (Fresh, Single, Opaque, Item)
"""Those that a function may have made itself."""

_KEPT = 10_000
"""The first position of the objects of a function that it does not return."""


def _made_at(value: Value, node: cst.BaseExpression, position: int | None, called: Value | None) -> Value:
    """An object of the function, as a value of the caller; ``called`` returned it."""
    if isinstance(value, Fresh):
        return Fresh(node, value.kind, position)
    if isinstance(value, Single):
        return Single(node, position)
    made = Opaque(node, called)
    return made if position is None else Item(made, position)


def _with_parts(value: ProjectFunction | ProjectObject, change: Callable[[Value], Value]) -> Value:
    """A function or an object with other values in what it captures or holds."""
    parts = value.captured if isinstance(value, ProjectFunction) else value.attributes
    changed = tuple((name, Slot(change(slot.value))) for name, slot in parts)
    if isinstance(value, ProjectObject) and isinstance(value.origin, Value):
        return ProjectObject(value.definition, changed, change(value.origin))
    if not parts:
        return value
    if isinstance(value, ProjectFunction):
        return ProjectFunction(value.definition, changed, value.unwrapped)
    return ProjectObject(value.definition, changed, value.origin)


def _is_one_tensor(value: Choice) -> bool:
    """Whether all alternatives are a tensor itself or views of it: a write to either writes to it."""
    views = [each for each in value.options() if isinstance(each, View)]
    if not views or len(value.options()) > len(views) + 1:
        return False
    origin = usual_storage(value)
    return origin is not None and all(each == origin for each in value.options() if each not in views)


class Shape:
    """Replaces the caller's objects by ``Argument``, and these by the objects in a summary."""

    def __init__(self, attributes: Attributes, *, gets_context: bool = True) -> None:
        """Start without objects, with the values of those ``attributes`` of ctx that the caller has set.

        ``gets_context``: the function gets ctx, too, so that it may read the attributes that it gets from there.
        """
        self.gets_context = gets_context
        self.arguments: dict[Value, Argument] = {}
        self.objects: list[Value] = []
        self.attributes = attributes
        self.made: dict[Value, Value] = {}
        """The objects of the function, as values of the caller."""

    def of(self, value: Value) -> Value:
        """A value of the caller, abstracted for the function."""
        if isinstance(value, _OBJECTS):
            return value if value == UNKNOWN else self._argument(value)
        if isinstance(value, ContextAttribute) and not self.gets_context:
            return self._argument(value)
        if isinstance(value, Scalar):
            return replace(value, node=None)
        if isinstance(value, Sequence):
            return Sequence(value.kind, tuple(map(self.slot, value.slots)), names=value.names)
        if isinstance(value, Mapping):
            return Mapping(tuple(map(self.slot, value.slots)), keys=value.keys)
        if isinstance(value, (ProjectFunction, ProjectObject)):
            return _with_parts(value, self.of)
        if isinstance(value, TensorTuple) and value.of is not None:
            return replace(value, of=self.of(value.of))
        if isinstance(value, Choice):
            return self._argument(value) if _is_one_tensor(value) else join_all(map(self.of, value.alternatives))
        return value

    def slot(self, slot: Slot) -> Slot:
        """Like ``of``, for an argument."""
        return Slot(self.of(slot.value), starred=slot.starred)

    def function(self, value: ProjectFunction) -> Argument:
        """A function of which another one only knows that it is one."""
        self.objects.append(value)
        number = len(self.objects) - 1
        return Argument(number, Tri.NO, none=Tri.NO, container=Tri.NO, type_name=FUNCTION_TYPE, plain=True)

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
            tensor_when_used(value),
        )
        self.arguments[value] = made
        self.objects.append(value)
        return made

    def applied(self, summary: Summary, call: cst.BaseExpression) -> Summary:
        """A summary for arguments of this shape, in values of the caller."""
        writes = self._writes(summary.writes)
        deferred = self._writes(summary.deferred) if summary.deferred else ()
        reads = tuple(replace(each, target=self._in_caller(each.target)) for each in summary.reads)
        returned = self._returned(summary.returned, call)
        none_reads = tuple(replace(each, target=self._in_caller(each.target)) for each in summary.none_reads)
        effects = None if summary.on_context is None else self._effects(summary.on_context, call)
        unbound_reads = tuple(
            replace(each, needed=tuple(map(self._in_caller, each.needed))) for each in summary.unbound_reads
        )
        uses, misfits, strides = summary.graph_uses, summary.misfits, tuple(map(self._strides, summary.strides))
        flags = tuple(replace(each, target=self._in_caller(each.target)) for each in summary.flag_tests)
        others = (none_reads, unbound_reads, uses, misfits, strides, flags)
        faults = tuple(map(self._fault, summary.kernel_faults))
        as_they_are = (summary.trial_effects, summary.left_out, faults, summary.unwritten, summary.unfilled)
        absent = frozenset(map(self._in_caller, summary.absent)) if summary.absent else summary.absent
        nones = tuple(replace(each, needed=tuple(map(self._in_caller, each.needed))) for each in summary.none_elements)
        launches = tuple(replace(each, target=self._in_caller(each.target)) for each in summary.launches)
        return Summary(returned, writes, reads, effects, deferred, *others, *as_they_are, absent, nones, launches)

    def _fault(self, fault: KernelFault) -> KernelFault:
        return fault if fault.absent is None else replace(fault, absent=self._in_caller(fault.absent))

    def _strides(self, use: StridesUse) -> StridesUse:
        like = None if use.like is None else self._in_caller(use.like)
        return replace(use, value=self._in_caller(use.value), owner=self._in_caller(use.owner), like=like)

    def _writes(self, writes: tuple[Write, ...]) -> tuple[Write, ...]:
        return tuple([replace(each, target=self._in_caller(each.target)) for each in writes])

    def _effects(self, effects: ContextEffects, call: cst.BaseExpression) -> ContextEffects:
        """What a function does with the ctx, in values of the caller."""
        return ContextEffects(
            tuple(self._event(each, call) for each in effects.events),
            tuple((name, self._kept(value, call)) for name, value in effects.attributes),
            effects.done,
        )

    def _event(self, event: ContextEvent, call: cst.BaseExpression) -> ContextEvent:
        event = replace(event, guards=tuple(self._guard(each, call) for each in event.guards))
        if isinstance(event, ContextCall):
            slots = (Slot(self._kept(each.value, call), None, each.starred) for each in event.arguments)
            return replace(event, arguments=tuple(slots))
        if isinstance(event, ContextWrite) and event.value is not None:
            return replace(event, value=self._kept(event.value, call))
        if isinstance(event, SavedRead):
            unpackings = (
                replace(each, guards=tuple(self._guard(guard, call) for guard in each.guards))
                for each in event.unpackings
            )
            return replace(event, unpackings=tuple(unpackings))
        return event

    def _guard(self, guard: Guard, call: cst.BaseExpression) -> Guard:
        """A condition in the function: other calls of it are under other conditions."""
        asks = None if guard.asks is None else self._asks(guard.asks)
        return replace(
            guard, block=hash((guard.block, id(call))), asks=asks, one_of=tuple(map(self._asks, guard.one_of))
        )

    def _asks(self, asks: Asks) -> Asks:
        return replace(asks, value=self._in_caller(asks.value))

    def _kept(self, value: Value, call: cst.BaseExpression) -> Value:
        """A value that the function leaves on ctx: what it also returns is the same object."""
        if isinstance(value, Choice):
            return join_all(self._kept(option, call) for option in value.alternatives)
        if isinstance(value, (Sequence, Mapping)):
            slots = tuple(Slot(self._kept(slot.value, call), None, slot.starred) for slot in value.slots)
            if isinstance(value, Mapping):
                return Mapping(slots, call, value.keys)
            return Sequence(value.kind, slots, call, value.names)
        if isinstance(value, ProjectObject):
            return _with_parts(value, lambda part: self._kept(part, call))
        if isinstance(value, View):
            return replace(value, of=self._kept(value.of, call), node=call, detached=detaches(value))
        if value == UNKNOWN:
            return value
        if isinstance(value, Item) and self._in_caller(value) != value:
            return self._in_caller(value)
        if isinstance(value, _MADE):
            return self.made.get(value) or self._element(value, call, _KEPT + len(self.made))
        return self._element(value, call, None)

    def _in_caller(self, value: Value) -> Value:
        """The caller's value for a value of the summary."""
        if isinstance(value, Argument):
            return self.objects[value.number]
        if isinstance(value, ContextAttribute):
            return self.attributes.get(value.name, value)
        if isinstance(value, TensorTuple) and value.of is not None:
            return replace(value, of=self._in_caller(value.of))
        if isinstance(value, (View, Item)):
            of = self._in_caller(value.of)
            return value if of is value.of else replace(value, of=of)
        if isinstance(value, Choice):
            return join_all(map(self._in_caller, value.alternatives))
        if isinstance(value, ProjectObject):
            return _with_parts(value, self._in_caller)
        return value

    def _returned(self, value: Value, node: cst.BaseExpression) -> Value:
        """What the function returns, as a value of the caller: its nodes belong to the callee."""
        if isinstance(value, Choice):
            return join_all(self._returned(option, node) for option in value.alternatives)
        return self._element(value, node, None)

    def _element(self, value: Value, node: cst.BaseExpression, position: int | None) -> Value:
        """One returned value: an argument is unchanged; an object of the function is identified by its position."""
        if isinstance(value, Sequence):
            base = 0 if position is None else 100 * (position + 1)
            for at, slot in enumerate(value.slots):
                if isinstance(slot.value, _MADE):  # before views of it, which are not known by their own positions
                    self._element(slot.value, node, base + at)
            slots = tuple(
                Slot(self._element(slot.value, node, base + at), None, slot.starred)
                for at, slot in enumerate(value.slots)
            )
            return Sequence(value.kind, slots, node, value.names)
        if isinstance(value, Mapping):
            slots = tuple(Slot(self._element(slot.value, node, 0), None, slot.starred) for slot in value.slots)
            return Mapping(slots, keys=value.keys)
        if isinstance(value, (ProjectFunction, ProjectObject)):
            return _with_parts(value, lambda part: self._element(part, node, 0))
        if isinstance(value, Choice):
            return join_all(self._element(option, node, position) for option in value.alternatives)
        if isinstance(value, _MADE):
            called = getattr(whole(value), "called", None)
            made = _made_at(value, node, position, None if called is None else self._in_caller(called))
            self.made.setdefault(value, made)
            return made
        if isinstance(value, TensorTuple) and value.of is not None:
            return TensorTuple(node, self._element(value.of, node, position))
        if isinstance(value, View):
            origin = self.made.get(value.of) or self._element(value.of, node, position)
            return replace(value, of=origin, node=node, detached=detaches(value))
        if isinstance(value, Scalar):
            return replace(value, node=node)
        return self._in_caller(value)
