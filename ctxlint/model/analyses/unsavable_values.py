"""What ``save_for_backward`` certainly does not take: it raises TypeError at ``apply`` if a gradient is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.attribute_uses import OF_A_TENSOR
from ctxlint.model.analyses.gradient_placements import exact_calls
from ctxlint.model.analyses.inputs import from_calls
from ctxlint.model.function import Style, Trust
from ctxlint.model.interpreter.values import Constant, Tri, is_input, is_none, is_tensor
from ctxlint.model.syntax import words_of

if TYPE_CHECKING:
    from ctxlint.model.function import ApplyCall, ContextCall, Evidence, FunctionClass, Input
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Value


def never_saves(fn: FunctionClass) -> bool:
    """Whether each call of ``apply`` that needs a gradient saves something that is neither a tensor nor None."""
    if len(fn.saves) != 1 or fn.saves[0].guards:
        return False
    return any(not each.starred and is_unsavable(fn, each.value) for each in fn.saves[0].arguments)


def may_never_save(fn: FunctionClass) -> bool:
    """Whether each call saves an input that only that makes a tensor, and of which forward reads what no tensor has.

    It may be an object of the program, which ``save_for_backward`` does not take.
    """
    forward, index = fn.forward, {each.name: each.index for each in fn.inputs}
    if forward is None or fn.style is not Style.CTX_IN_FORWARD:
        return False
    saved = (each.value for call in fn.saves if not call.guards for each in call.arguments if not each.starred)
    names = {each.name for each in saved if is_input(each) and index.get(each.name) == each.index}
    doubted = {each for each in names if not _looks_like_a_tensor(fn.inputs[index[each]])}
    return bool(doubted) and any(
        isinstance(each.value, cst.Name) and each.value.value in doubted and each.attr.value not in OF_A_TENSOR
        for each in forward.nodes_of(cst.Attribute)
    )


def _looks_like_a_tensor(entry: Input) -> bool:
    return any(each.tensor and each.trust in (Trust.PROOF, Trust.STRONG) for each in entry.evidence)


def is_unsavable(fn: FunctionClass, value: Value) -> bool:
    """Whether a value is certainly neither a tensor nor None."""
    if is_input(value):
        return evidence_against(fn, value.index) is not None
    return is_tensor(value) is Tri.NO and is_none(value) is Tri.NO


def evidence_against(fn: FunctionClass, index: int) -> Evidence | None:
    """The strong evidence that an input is not a tensor, if any: a call, if None is allowed for it."""
    entry = fn.inputs[index]
    if entry.is_tensor is not Tri.NO:
        return None
    strong = (each for each in entry.evidence if each.trust in (Trust.PROOF, Trust.STRONG))
    if _may_be_none(entry.param.annotation, entry.param.default):
        strong = (each for each in strong if each in from_calls(index, fn.calls))
    return next(strong, None)


def omits_number(fn: FunctionClass, index: int) -> ApplyCall | None:
    """A known call that leaves an input to its default, if that is a number."""
    if not _is_number(fn.inputs[index].param.default):
        return None
    return next((call for call, passed in exact_calls(fn) if passed <= index and not call.keywords), None)


def saves_number(fn: FunctionClass, passed: int) -> bool:
    """Whether a call that passes so many inputs certainly saves a number, the default of one that it omits."""
    saved = (each.value for call in fn.saves if not call.guards for each in call.arguments if not each.starred)
    return any(
        is_input(each) and each.index >= passed and _is_number(fn.inputs[each.index].param.default) for each in saved
    )


def _is_number(default: Value | None) -> bool:
    return isinstance(default, Constant) and default.type_name in ("int", "float", "bool")


def may_be_rejected(method: Method, call: ContextCall, name: str) -> bool:
    """Whether a test of an input may decide that a call of a ctx method is not reached."""
    tests = [*method.raising_tests, *(guard.test for guard in call.guards if guard.test is not None)]
    return any(name in words_of(test) for test in tests)


def _may_be_none(annotation: str | None, default: Value | None) -> bool:
    text = annotation or ""
    return "None" in text or "Optional" in text or (default is not None and is_none(default) is not Tri.NO)
