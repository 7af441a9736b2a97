"""Which tests of ``requires_grad`` in a function are about tensors that it computes itself, as its callers see it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.grad_mode import is_copied_by
from ctxlint.model.interpreter.events import Question, Step
from ctxlint.model.interpreter.summary import DeadFlag
from ctxlint.model.interpreter.values import Fresh

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.index.project import Definition
    from ctxlint.model.interpreter.method import MethodFacts
    from ctxlint.model.interpreter.values import Value


def dead_flags_of(definition: Definition, facts: MethodFacts, text: str) -> Iterator[DeadFlag]:
    """The first such test, unless the function, whose code is ``text``, sets a flag or grad mode itself."""
    if _SETS(text) is not None:
        return
    asked = (guard for event in facts.events for guard in event.guards if guard.asks is not None)
    for guard in asked:
        asks, test = guard.asks, guard.test
        if asks is None or asks.question is not Question.REQUIRES_GRAD or not _is_computed(asks.value) or test is None:
            continue
        if isinstance(test, (cst.Name, cst.Attribute)):
            unit = definition.unit
            span = unit.slices.span_in_function(definition.qualname, test)
            yield DeadFlag(guard.text, (Step(unit.path, span, f"`{definition.name}` tests it here"),))
            return


_SETS = re.compile(r"requires_grad_\(|requires_grad *=|enable_grad|set_grad|grad_mode|inference_mode").search


def _is_computed(value: Value) -> bool:
    """Whether a value is certainly a tensor that the function has computed from others."""
    options = value.options()
    return bool(options) and all(
        isinstance(each, Fresh) and each.part is None and is_copied_by(each.node) for each in options
    )
