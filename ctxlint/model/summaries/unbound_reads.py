"""Which locals a function reads although it binds them only if an argument needs a gradient, as its callers see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.interpreter.events import Assigned, Event, MaybeUnbound, Step
from ctxlint.model.interpreter.summary import UnboundRead

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ctxlint.model.index.project import Definition
    from ctxlint.model.interpreter.method import MethodFacts
    from ctxlint.model.interpreter.values import Value


KINDS_FOR_UNBOUND: frozenset[type[Event]] = frozenset([Assigned, MaybeUnbound])
"""The kinds of event that this needs; few functions have any flags."""


def unbound_reads_of(definition: Definition, facts: MethodFacts) -> Iterator[UnboundRead]:
    """The first read of each local under no condition but loops, if ``x.requires_grad`` decides whether it is bound."""
    seen: set[str] = set()
    for read in facts.of(MaybeUnbound):
        if read.name in seen or any(each.test is not None or not read.in_loop for each in read.guards):
            continue
        bound = [each for each in facts.of(Assigned) if each.name == read.name and read.may_follow(each)]
        needed = _required(bound)
        if needed:
            seen.add(read.name)
            unit = definition.unit
            span = unit.slices.span_in_function(definition.qualname, read.node)
            step = Step(unit.path, span, f"`{definition.name}` reads `{read.name}` here")
            yield UnboundRead(read.name, needed, (step,))


def _required(bound: Iterable[Event]) -> tuple[Value, ...]:
    """The tensors of which each requires a gradient where any of some events happens."""
    asked = [[each.asks for each in event.guards if each.asks is not None] for event in bound]
    required = [{each.value for each in asks if each.answer and each.about_flag} for asks in asked]
    return tuple(sorted(set.intersection(*required), key=str)) if required else ()
