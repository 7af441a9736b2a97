"""What ``save_for_backward`` certainly does not take: it raises TypeError at ``apply`` if a gradient is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.inputs import from_calls
from ctxlint.model.function import Trust
from ctxlint.model.interpreter.values import Tri, is_input, is_none, is_tensor

if TYPE_CHECKING:
    from ctxlint.model.function import Evidence, FunctionClass
    from ctxlint.model.interpreter.values import Value


def never_saves(fn: FunctionClass) -> bool:
    """Whether each call of ``apply`` that needs a gradient saves something that is neither a tensor nor None."""
    if len(fn.saves) != 1 or fn.saves[0].guards:
        return False
    return any(not each.starred and is_unsavable(fn, each.value) for each in fn.saves[0].arguments)


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


def _may_be_none(annotation: str | None, default: Value | None) -> bool:
    text = annotation or ""
    return "None" in text or "Optional" in text or (default is not None and is_none(default) is not Tri.NO)
