"""What a function does with tensors that it computes itself, and that makes no sense with grad mode off."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.grad_mode import is_copied_by
from ctxlint.model.interpreter.events import Differentiated, Event, GradientFlag, Question, Step
from ctxlint.model.interpreter.summary import GraphUse
from ctxlint.model.interpreter.values import Fresh
from ctxlint.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.index.project import Definition
    from ctxlint.model.interpreter.method import MethodFacts
    from ctxlint.model.interpreter.values import Value

KINDS_FOR_GRAPHS: frozenset[type[Event]] = frozenset([Differentiated, GradientFlag])
"""The kinds of event that ``graph_uses_of`` needs."""

mentions_graph = pattern(r"requires_grad|\b(?:grad|backward)\(").search
"""Whether the code of a function may use a graph."""


def graph_uses_of(definition: Definition, facts: MethodFacts, text: str) -> Iterator[GraphUse]:
    """The first test of a flag, and the first differentiation, unless ``text``, its code, sets grad mode."""
    if _SETS_MODE(text) is not None:
        return
    if _SETS_FLAG(text) is None:
        yield from _first_test(definition, facts)
    flagged = [each.value for each in facts.of(GradientFlag) if each.switched]
    for each in facts.of(Differentiated):
        if not each.guards and each.value not in flagged and _is_computed(each.value):
            how = each.how if each.how.startswith("torch.") else ".backward()"
            yield GraphUse((_step(definition, each.node, f"calls `{how}` here"),), how=how)
            return


def _first_test(definition: Definition, facts: MethodFacts) -> Iterator[GraphUse]:
    asked = (guard for event in facts.events for guard in event.guards if guard.asks is not None)
    for guard in asked:
        asks, test = guard.asks, guard.test
        if asks is None or asks.question is not Question.REQUIRES_GRAD or not _is_computed(asks.value):
            continue
        if isinstance(test, (cst.Name, cst.Attribute)):
            yield GraphUse((_step(definition, test, "tests it here"),), test=guard.text)
            return


def _step(definition: Definition, node: cst.CSTNode, what: str) -> Step:
    unit = definition.unit
    return Step(unit.path, unit.slices.span_in_function(definition.qualname, node), f"`{definition.name}` {what}")


_SETS_MODE = re.compile(r"enable_grad|set_grad|grad_mode|inference_mode").search
_SETS_FLAG = re.compile(r"requires_grad_\(|requires_grad *=").search


def _is_computed(value: Value | None) -> bool:
    """Whether a value is certainly a tensor that the function has computed from others."""
    options = value.options() if value is not None else ()
    return bool(options) and all(
        isinstance(each, Fresh) and each.part is None and is_copied_by(each.node) for each in options
    )
