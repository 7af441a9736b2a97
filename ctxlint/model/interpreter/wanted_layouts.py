"""Tests of which code raises unless a tensor is contiguous."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.conditions import certain_parts
from ctxlint.model.interpreter.events import MemoryRead
from ctxlint.model.interpreter.iteration import elements_of
from ctxlint.model.interpreter.names import canonical
from ctxlint.model.interpreter.summary import ASSERTED
from ctxlint.model.interpreter.values import Choice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.interpreter.values import Value
    from ctxlint.model.interpreter.walk import Walk


def note_wanted(walk: Walk, test: cst.BaseExpression, raised: str, *, holds: bool) -> None:
    """Record the tensors that are contiguous unless a test has another outcome, and ``raised`` is not handled.

    ``raised`` is empty for an assertion without a message.
    """
    if walk.protected:
        return
    for part, outcome in certain_parts(test, holds):
        call, wanted = _compared_with_truth(part, outcome)
        if not isinstance(call, cst.Call):
            continue
        asked = _layout_asked(call) if wanted else None
        if asked is not None:
            value = walk.peek(asked)
            each = id(value) in walk.each
            for option in value.options() if each else (value,):
                walk.record(MemoryRead, call, value=option, value_node=asked, how=ASSERTED, reader=raised, each=each)
        for node, name, value in _asked_of_each(walk, call, wanted):
            walk.record(MemoryRead, node, value=value, value_node=name, how=ASSERTED, reader=raised)


def _layout_asked(call: cst.BaseExpression) -> cst.BaseExpression | None:
    """The tensor of ``x.is_contiguous()``."""
    if not isinstance(call, cst.Call) or call.args or not isinstance(call.func, cst.Attribute):
        return None
    return call.func.value if call.func.attr.value == ASSERTED else None


def _compared_with_truth(test: cst.BaseExpression, holds: bool) -> tuple[cst.BaseExpression, bool]:
    """What ``test is True``, ``test == False`` and the like ask, and the outcome of that."""
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return test, holds
    (comparison,) = test.comparisons
    truth = comparison.comparator.value if isinstance(comparison.comparator, cst.Name) else ""
    equal = isinstance(comparison.operator, (cst.Equal, cst.Is))
    if truth not in ("True", "False") or not (equal or isinstance(comparison.operator, (cst.NotEqual, cst.IsNot))):
        return test, holds
    return test.left, holds is (equal is (truth == "True"))


def _asked_of_each(
    walk: Walk, call: cst.Call, holds: bool
) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression, Value]]:
    """The question, the variable and the tensors of ``all(x.is_contiguous() for x in tensors)``, or of ``not any``."""
    several = call.args[0].value if len(call.args) == 1 else None
    if not isinstance(several, (cst.GeneratorExp, cst.ListComp)) or several.for_in.ifs or several.for_in.inner_for_in:
        return
    if canonical(walk, call.func) != ("builtins.all" if holds else "builtins.any"):
        return
    clause = several.for_in
    elements = elements_of(walk, clause.iter, walk.peek(clause.iter)) or ()
    for part, outcome in certain_parts(several.elt, holds):
        inner, wanted = _compared_with_truth(part, outcome)
        asked = _layout_asked(inner) if wanted else None
        if isinstance(asked, cst.Name) and isinstance(clause.target, cst.Name) and asked.value == clause.target.value:
            yield from ((inner, asked, each) for each in elements if not isinstance(each, Choice))
