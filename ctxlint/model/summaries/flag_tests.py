"""Of which arguments a function tests ``requires_grad``, as its callers see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.events import FlagTestedInside, GradientFlag, Question, Return, Step
from ctxlint.model.interpreter.local_names import only_assigned
from ctxlint.model.interpreter.summary import ArgumentFlagTest
from ctxlint.model.interpreter.values import NONE, Argument, ContextAttribute, Item, SavedTensor, Sequence, Tri, Value
from ctxlint.model.syntax import code_of, is_name, parents_below

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.index.project import Definition
    from ctxlint.model.interpreter.method import MethodFacts


def flag_tests_of(
    definition: Definition, function: cst.FunctionDef, facts: MethodFacts, *, asking: bool
) -> Iterator[ArgumentFlagTest]:
    """The first test of each argument that lets the function do, or return, something if a gradient is required.

    Only in one that may return None, alone or in a tuple: as a gradient. ``asking``: whether its own code may test.
    """
    if not (asking or facts.of(FlagTestedInside)):
        return
    if facts.falls_through is Tri.NO and not any(_may_be_none(each.value) for each in facts.of(Return)):
        return
    seen: set[Value] = set()
    for value, test in (*_in_statements(facts), *_in_expressions(function, facts)) if asking else ():
        if value not in seen and _is_of_caller(value):
            seen.add(value)
            text = code_of(test).strip()
            yield ArgumentFlagTest(value, text, definition.name, (_step(definition, test, f"tests `{text}` here"),))
    for each in facts.of(FlagTestedInside):
        if each.value not in seen and _is_of_caller(each.value):
            seen.add(each.value)
            step = _step(definition, each.node, "passes it on here")
            yield ArgumentFlagTest(each.value, each.test, each.by, (step, *each.through))


def _in_statements(facts: MethodFacts) -> Iterator[tuple[Value, cst.BaseExpression]]:
    """What the conditions ask under which something happens."""
    for guard in dict.fromkeys(guard for event in facts.events for guard in event.guards):
        for asks in (guard.asks, *guard.one_of):
            if asks is not None and asks.question is Question.REQUIRES_GRAD and asks.answer and guard.test is not None:
                yield asks.value, guard.test


def _in_expressions(function: cst.FunctionDef, facts: MethodFacts) -> Iterator[tuple[Value, cst.BaseExpression]]:
    """The tests of ``gradient if x.requires_grad else None``, also by a name."""
    flags = {each.node: each.value for each in facts.of(GradientFlag) if not each.switched and each.value is not None}
    if not flags:
        return
    for each in parents_below(function.body):
        if isinstance(each, cst.IfExp) and is_name(each.orelse, "None"):
            test = each.test
            asked = only_assigned(function, test.value) if isinstance(test, cst.Name) else test
            nodes = (asked, *parents_below(asked)) if asked is not None else ()
            yield from ((flags[node], test) for node in nodes if node in flags)


def _may_be_none(value: Value) -> bool:
    options = value.options()
    slots = [slot for each in options if isinstance(each, Sequence) for slot in each.slots]
    return NONE in options or any(NONE in slot.value.options() for slot in slots)


def _is_of_caller(value: Value) -> bool:
    return isinstance(value.of if isinstance(value, Item) else value, (Argument, ContextAttribute, SavedTensor))


def _step(definition: Definition, node: cst.CSTNode, what: str) -> Step:
    unit = definition.unit
    return Step(unit.path, unit.slices.span_in_function(definition.qualname, node), f"`{definition.name}` {what}")
