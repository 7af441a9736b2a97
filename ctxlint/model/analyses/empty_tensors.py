"""Tests that tell that a tensor is empty."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.conditions import certain_parts
from ctxlint.model.syntax import code_of, dotted, words_of
from ctxlint.patterns import pattern

if TYPE_CHECKING:
    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.events import Assigned, ContextWrite, Guard


def implies_empty(fn: FunctionClass, guard: Guard) -> bool:
    """Whether the text of a guard implies that some tensor is empty."""
    if guard.test is None:
        return False
    return any(
        (_EMPTY if holds else _ANY).search(code_of(part).strip()) is not None
        for test, outcome in certain_parts(guard.test, guard.holds)
        for part, holds in certain_parts(_named(fn, test), outcome)
        if any(map(_MEASURES, words_of(part)))
    )


def _named(fn: FunctionClass, test: cst.BaseExpression) -> cst.BaseExpression:
    """What a test that is only a name, or an attribute of ctx, is bound to in forward; otherwise the test itself."""
    bindings: list[Assigned] | list[ContextWrite] = []
    if isinstance(test, cst.Name):
        methods = fn.context_methods
        bindings = [each for method in methods for each in method.assignments.get(test.value, ())]
    elif isinstance(test, cst.Attribute) and dotted(test.value) == fn.storing_ctx:
        bindings = fn.writes_by_attribute.get(test.attr.value, [])
    return (bindings[0].value_node if len(bindings) == 1 else None) or test


_MEASURES = re.compile(r"numel|nelement|shape|size|len").search
_COUNT = r"(\bnumel\(.*\)|\bnelement\(\)|\bprod\(.*\)|\.shape\[[^]]*\]|\bsize\(.+\)|\blen\(.*\))"
_EMPTY = pattern(rf"{_COUNT} *(==|<=) *0$|{_COUNT} *< *1$|^0 *== *.*{_COUNT}$")
_ANY = pattern(rf"{_COUNT}( *(!=|>) *0| *>= *1)?$")
