"""Facts of a Function that a call in another file could refine: only then is its file analysed again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.absent_inputs import absent_reason
from ctxlint.model.analyses.decided_tests import decided_by_calls
from ctxlint.model.analyses.reachability import backward_never_runs
from ctxlint.model.function import Trust
from ctxlint.model.index.outside_facts import OpenInput, Own
from ctxlint.model.interpreter.events import NeedsInputGradRead
from ctxlint.model.interpreter.values import Tri, is_none

if TYPE_CHECKING:
    from ctxlint.model.function import FunctionClass, Input


def own(fn: FunctionClass) -> Own:
    """What other files have to know of a Function to decide whether they add facts about it."""
    inputs = tuple(_open(fn, each) for each in fn.inputs)
    return Own(
        fn.qualname,
        fn.required_inputs,
        _numbers(fn),
        inputs,
        waits=_depends_on_apply(fn),
        has_backward=fn.backward is not None,
        decided=decided_by_calls(fn) or any(call.settled for call in fn.calls) or _is_run_without_gradients(fn),
        marks=bool(fn.context_calls("mark_dirty")),
    )


def _is_run_without_gradients(fn: FunctionClass) -> bool:
    """Whether no call in its own file leads to backward, as far as calls decide that."""
    return bool(fn.calls) and backward_never_runs(fn)


def _numbers(fn: FunctionClass) -> tuple[int, ...] | None:
    """The argument counts of calls that would matter for ``exact_calls``; None if any may matter."""
    if fn.variadic_inputs is not None:
        return None
    if fn.required_inputs == len(fn.inputs):
        return ()
    numbers = range(fn.required_inputs, len(fn.inputs) + 1)
    if _reads_needs_input_grad(fn):
        return tuple(numbers)
    counts = [each.count for each in fn.gradients]
    longest = max((len(fn.inputs) if count is None else count for count in counts), default=len(fn.inputs))
    return tuple(each for each in numbers if each > longest or _has_gradient_beyond(fn, each))


def _has_gradient_beyond(fn: FunctionClass, inputs: int) -> bool:
    return any(is_none(slot.value) is Tri.NO for returned in fn.gradients for slot in returned.slots[inputs:])


def _open(fn: FunctionClass, entry: Input) -> OpenInput:
    """What a literal in a call may add to the evidence: a second strong piece for the same kind changes nothing."""
    strong = [each for each in entry.evidence if each.trust in (Trust.PROOF, Trust.STRONG)]
    return OpenInput(
        to_none=not entry.may_be_none or (entry.gradient is Tri.YES and absent_reason(fn, entry) is None),
        to_tensor=not any(each.tensor and not each.own_gradient for each in strong),
        to_other=all(each.tensor for each in strong),
        never_gets_gradient=entry.gradient is Tri.NO,
    )


def _depends_on_apply(fn: FunctionClass) -> bool:
    """Whether there may be more findings once its ``apply`` is known to be read: see the uses of ``applied``."""
    return not fn.applied and (
        fn.has_subclass
        or bool(fn.called_directly)
        or fn.backward is None
        or fn.forward is None
        or (fn.required_inputs < len(fn.inputs) and _reads_needs_input_grad(fn))
        or any(method.lacks_ctx or method.receiver is not None for method in fn.own_protocol_methods)
    )


def _reads_needs_input_grad(fn: FunctionClass) -> bool:
    return any(method.facts.of(NeedsInputGradRead) for method in fn.methods.values())
