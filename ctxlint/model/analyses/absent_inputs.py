"""Inputs that may be None."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.inputs import none_from_calls
from ctxlint.model.function import Trust

if TYPE_CHECKING:
    from ctxlint.model.function import FunctionClass, Input


def absent_reason(fn: FunctionClass, entry: Input) -> str | None:
    """Why forward certainly accepts None for an input: a call passes it, or it is the default and forward tests for it.

    The result is None if that is not certain: many inputs with such a default are always passed.
    """
    wanted = (call for call in fn.calls if not call.gradients_off)
    passed = next(iter(none_from_calls(entry.index, wanted)), None)
    if passed is not None:
        return passed.reason
    default = next((each for each in entry.may_be_none if each.node is entry.param.node), None)
    tests = [each.node for each in entry.may_be_none if each.trust is Trust.HINT and each.node is not None]
    return (
        default.reason if default is not None and tests and not any(_may_refuse(fn, node) for node in tests) else None
    )


def _may_refuse(fn: FunctionClass, test: cst.CSTNode) -> bool:
    """Whether forward asserts what is tested, or raises depending on it; also of a test that is not in forward."""
    home = next((each for each in fn.context_methods if test in each.parents), None)
    if home is None:
        return True
    choices = [each for each in home.above(test) if isinstance(each, (cst.Assert, cst.If))]
    raising = {around for node in home.body_nodes if isinstance(node, cst.Raise) for around in home.above(node)}
    return any(isinstance(each, cst.Assert) or each in raising for each in choices)
