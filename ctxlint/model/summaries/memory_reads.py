"""Whose memory a function reads on some path as if it were contiguous, as its callers see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.strides import without_last_stride
from ctxlint.model.interpreter.events import LayoutAsked, MemoryRead, Step
from ctxlint.model.interpreter.summary import COMPILED, PARTLY_STRIDED, Read
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
        partly = without_last_stride(facts, read)
        target, how = (read.value, read.how) if partly is None else (partly, PARTLY_STRIDED)
        base = target.of if isinstance(target, Item) else target
        if not isinstance(base, Argument) or (partly is None and target in seen) or read.is_for_a_shape:
            continue
        if read.parameter is None:
            seen.add(target)
        steps = (_step(definition, read), *read.through)
        yield Read(target, how, read.reader, steps, read.parameter)


def _step(definition: Definition, read: MemoryRead) -> Step:
    unit = definition.unit
    target = "{}" if read.value_node is not None else "it"
    note = f"`{definition.name}` calls `{target}.{read.how}` here"
    if read.by or read.how in COMPILED:
        note = f"`{definition.name}` passes `{target}` to `{read.by or read.reader}` here"
    return Step(unit.path, unit.slices.span_in_function(definition.qualname, read.node), note, read.value_node)
