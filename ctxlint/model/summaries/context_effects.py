"""What a function does with the ctx that it gets, as its callers see it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ctxlint.model.interpreter.events import (
    ContextCall,
    ContextEvent,
    ContextRead,
    ContextWrite,
    Escape,
    NeedsInputGradRead,
    SavedItem,
    SavedRead,
    Step,
    TupleUsedAsTensor,
)
from ctxlint.model.interpreter.summary import ContextEffects
from ctxlint.model.interpreter.values import Context, Mapping, ProjectFunction, Sequence, Tri, join_all, leaves

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ctxlint.model.index.project import Definition
    from ctxlint.model.interpreter.events import Event, Orders
    from ctxlint.model.interpreter.method import MethodFacts
    from ctxlint.model.interpreter.values import Slot, Value

CONTEXT_EVENTS: frozenset[type[Event]] = frozenset(
    [
        ContextCall,
        ContextRead,
        ContextWrite,
        Escape,
        NeedsInputGradRead,
        SavedItem,
        SavedRead,
        TupleUsedAsTensor,
    ]
)


def gets_context(slots: Iterable[Slot]) -> bool:
    """Whether the ctx is among some arguments, in a list or tuple among them, or captured by a function."""
    return any(
        isinstance(leaf, Context)
        for slot in slots
        if isinstance(slot.value, (Context, Sequence, Mapping, ProjectFunction))
        for leaf in leaves(slot.value)
    )


def effects_of(definition: Definition, facts: MethodFacts, ctx: str) -> ContextEffects:
    """What a function does with the ctx, its parameter of that name."""
    events = tuple(
        _seen_by_callers(definition, event, ctx)
        for event in facts.events
        if isinstance(event, ContextEvent) and not (isinstance(event, Escape) and event.how == "returned")
    )
    ends: list[tuple[frozenset[str] | None, Orders]] = [(each.attributes, each.before) for each in facts.returns]
    if facts.falls_through is not Tri.NO:
        ends.append((facts.end_attributes, facts.end_done))
    written: dict[str, list[Value]] = {}
    for event in events:
        if isinstance(event, ContextWrite) and event.value is not None:
            written.setdefault(event.attribute, []).append(event.value)
    done = ~0
    for attributes, before in ends:
        done &= before
        written = {name: values for name, values in written.items() if attributes is not None and name in attributes}
    set_at_the_end = tuple((name, join_all(values)) for name, values in written.items())
    return ContextEffects(events, set_at_the_end if ends else (), done if ends else 0)


def _seen_by_callers(definition: Definition, event: ContextEvent, ctx: str) -> ContextEvent:
    through = (_step(definition, event, ctx), *event.through)
    if isinstance(event, SavedRead):
        unpackings = tuple(
            replace(each, names=(None,) * len(each.names), through=(*through[: not each.by], *each.through))
            for each in event.unpackings
        )
        return replace(event, through=through, unpackings=unpackings, bound_to=None)
    if isinstance(event, TupleUsedAsTensor):
        return replace(event, through=through, name="")
    if isinstance(event, ContextWrite):
        return replace(event, through=through, value_node=None, simple=False)
    return replace(event, through=through)


def _step(definition: Definition, event: ContextEvent, ctx: str) -> Step:
    unit = definition.unit
    span = unit.slices.span_in_function(definition.qualname, event.node)
    name = definition.name
    return Step(unit.path, span, f"`{name}` {_does(event, ctx)} here")


def _does(event: ContextEvent, ctx: str) -> str:
    if event.by and event.by == event.captured_by:
        return f"calls `{event.by}`"
    if event.by:
        ctx = event.captured_by or ctx
        return f"passes `{ctx}` to `{event.by}`"
    if isinstance(event, ContextCall):
        return f"calls `{ctx}.{event.method}`"
    if isinstance(event, ContextWrite):
        return f"{'deletes' if event.deletes else 'sets'} `{ctx}.{event.attribute}`"
    if isinstance(event, ContextRead):
        return f"{'calls' if event.called else 'reads'} `{ctx}.{event.attribute}`"
    if isinstance(event, NeedsInputGradRead):
        return f"reads `{ctx}.needs_input_grad`"
    if isinstance(event, (SavedRead, SavedItem)):
        return f"reads `{ctx}.{event.via}`"
    return f"uses `{ctx}`"
