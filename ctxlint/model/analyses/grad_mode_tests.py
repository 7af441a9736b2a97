"""Calls of ``torch.is_grad_enabled()``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.conditions import certain_parts
from ctxlint.model.interpreter.events import GenericCall

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.interpreter.method import MethodFacts

_SWITCHES = (
    "torch.enable_grad",
    "torch.set_grad_enabled",
    "torch._C._set_grad_enabled",
    "torch.autograd.enable_grad",
)


def grad_mode_tests(facts: MethodFacts) -> Iterator[GenericCall]:
    """The calls that ask for grad mode in a function that does not switch it, and not to assert that it is off."""
    calls = facts.of(GenericCall)
    if not any(call.callee in _SWITCHES for call in calls):
        yield from (
            each for each in calls if each.callee == "torch.is_grad_enabled" and not _asserts_that_it_is_off(each)
        )


def _asserts_that_it_is_off(call: GenericCall) -> bool:
    """Whether the call is in ``assert not torch.is_grad_enabled()``, alone or with other conditions."""
    line = call.statement
    statements = line.body if isinstance(line, cst.SimpleStatementLine) else ()
    tests = [each.test for each in statements if isinstance(each, cst.Assert)]
    return any(part is call.node and not holds for test in tests for part, holds in certain_parts(test, holds=True))
