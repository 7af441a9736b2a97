"""Whose memory a function reads on some path as if it were contiguous, as its callers see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.interpreter.events import LayoutAsked, MemoryRead, Step
from ctxlint.model.interpreter.summary import COLLECTIVE, EXTENSION, KERNEL, Read
from ctxlint.model.interpreter.values import Argument, Item

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.index.project import Definition
    from ctxlint.model.interpreter.method import MethodFacts


def reads_of(definition: Definition, facts: MethodFacts) -> Iterator[Read]:
    """The arguments whose memory a function reads, each once except by kernels, in the order of its code.

    None whose layout matters to it.
    """
    seen = {option for each in facts.of(LayoutAsked) if not each.changed for option in each.value.options()}
    for read in facts.of(MemoryRead):
        base = read.value.of if isinstance(read.value, Item) else read.value
        if not isinstance(base, Argument) or read.value in seen or read.is_for_a_shape:
            continue
        if read.parameter is None:
            seen.add(read.value)
        steps = (_step(definition, read), *read.through)
        yield Read(read.value, read.how, read.reader, steps, read.parameter)


def _step(definition: Definition, read: MemoryRead) -> Step:
    unit = definition.unit
    target = "{}" if read.value_node is not None else "it"
    note = f"`{definition.name}` calls `{target}.{read.how}` here"
    if read.by or read.how in (KERNEL, EXTENSION, COLLECTIVE):
        note = f"`{definition.name}` passes `{target}` to `{read.by or read.reader}` here"
    return Step(unit.path, unit.slices.span_in_function(definition.qualname, read.node), note, read.value_node)
