"""Of which arguments a function certainly reads an attribute that None does not have, as its callers see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.interpreter.events import MaybeNone, Step
from ctxlint.model.interpreter.summary import NoneRead
from ctxlint.model.interpreter.values import Argument

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Mapping as MappingOf

    from ctxlint.model.index.project import Definition
    from ctxlint.model.interpreter.method import MethodFacts
    from ctxlint.model.interpreter.values import Value


def none_reads_of(definition: Definition, bindings: MappingOf[str, Value], facts: MethodFacts) -> Iterator[NoneRead]:
    """The first such read of each parameter, where no test and no other statement comes between."""
    seen: set[str] = set()
    for read in facts.of(MaybeNone):
        if (
            not read.how.startswith(".")
            or read.guards
            or read.in_loop
            or read.name in seen
            or bindings.get(read.name) != read.value
        ):
            continue
        seen.add(read.name)
        given = [each for each in read.value.options() if isinstance(each, Argument)]
        if len(given) == 1:
            yield NoneRead(given[0], read.how, (_step(definition, read), *read.through))


def _step(definition: Definition, read: MaybeNone) -> Step:
    unit = definition.unit
    note = f"`{definition.name}` reads `{read.name}{read.how}` here"
    if read.by:
        note = f"`{definition.name}` passes `{read.name}` to `{read.by}` here"
    return Step(unit.path, unit.slices.span_in_function(definition.qualname, read.node), note)
