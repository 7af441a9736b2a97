"""Whose memory a function reads on some path as if it were contiguous, as its callers see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.reduced_outputs import is_usual
from ctxlint.model.analyses.strides import foreign_strides, without_last_stride
from ctxlint.model.interpreter.events import GradientLaunch, LayoutAsked, MemoryRead, Step
from ctxlint.model.interpreter.summary import ASSERTED, COMPILED, PARTLY_STRIDED, Launch, Read, StridesUse
from ctxlint.model.interpreter.values import Argument, Item, before_views

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.index.project import Definition
    from ctxlint.model.interpreter.method import MethodFacts


def reads_of(definition: Definition, function: cst.FunctionDef, facts: MethodFacts) -> Iterator[Read]:
    """The arguments whose memory a function reads, each once except by kernels, in the order of its code.

    None whose layout matters to it.
    """
    seen = {option for each in facts.of(LayoutAsked) if not each.changed for option in each.value.options()}
    for read in facts.of(MemoryRead):
        partly = without_last_stride(facts, read)
        target, how = (read.value, read.how) if partly is None else (partly, PARTLY_STRIDED)
        base = target.of if isinstance(target, Item) else target
        if not isinstance(base, Argument) or read.is_for_a_shape:
            continue
        if how == ASSERTED:
            if [guard.arm for guard in read.guards] != ["loop"] * read.each or read.in_loop is not read.each:
                continue
        elif partly is None and target in seen:
            continue
        if read.parameter is None:
            seen.add(target)
        steps = (_step(definition, read), *read.through)
        view = read.view
        if how == "view" and not read.by and isinstance(read.value_node, cst.Name):
            view = (function, read.node, read.value_node.value)
        yield Read(target, how, read.reader, steps, read.parameter, read.alike, read.others, view)


def launches_of(definition: Definition, facts: MethodFacts) -> Iterator[Launch]:
    """The kernels that get all of an argument, whatever it is, except one that is compared with the number 1."""
    for each in facts.of(GradientLaunch):
        if each.parameter is None or each.in_loop or not isinstance(before_views(each.gradient), Argument):
            continue
        if all(map(is_usual, each.guards)):
            span = definition.unit.slices.span_in_function(definition.qualname, each.node)
            step = Step(definition.unit.path, span, f"`{definition.name}` launches `{each.reader}` here")
            yield Launch(each.gradient, each.parameter, each.reader, (step, *each.through))


def strides_of(definition: Definition, facts: MethodFacts) -> Iterator[StridesUse]:
    """The launches in a function that address a tensor with strides of one of its arguments."""
    for each in foreign_strides(facts):
        if isinstance(before_views(each.owner), Argument) or isinstance(before_views(each.value), Argument):
            name = each.value_node.value if isinstance(each.value_node, cst.Name) else each.name
            unit = definition.unit
            span = unit.slices.span_in_function(definition.qualname, each.node)
            step = Step(unit.path, span, f"`{definition.name}` launches `{each.reader}` here")
            steps = (step, *each.through)
            yield StridesUse(each.value, each.owner, each.made, each.like, name, each.reader, steps)


def _step(definition: Definition, read: MemoryRead) -> Step:
    unit = definition.unit
    target = "{}" if read.value_node is not None else "it"
    does = "calls" if read.how != ASSERTED else "asks" if read.reader else "asserts"
    note = f"`{definition.name}` {does} `{target}.{read.how}` here"
    if read.by or read.how in COMPILED:
        note = f"`{definition.name}` passes `{target}` to `{read.by or read.reader}` here"
    return Step(unit.path, unit.slices.span_in_function(definition.qualname, read.node), note, read.value_node)
