"""CTX208: the flag of an input that does not exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.certain_raises import raises_before
from ctxlint.model.analyses.gradient_placements import exact_calls
from ctxlint.model.analyses.reachability import methods_that_run
from ctxlint.model.function import FunctionClass, Style
from ctxlint.model.interpreter.events import NeedsInputGradRead, Question
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.related import way_to
from ctxlint.rules.releases import defaults_are_bound
from ctxlint.rules.wording import all_inputs, counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.interpreter.events import Guard
    from ctxlint.model.interpreter.method import Method


class NeedsInputGradIndex(Rule[FunctionClass]):
    """
    ## What it does
    Reports `ctx.needs_input_grad[i]` if `forward` has no input `i`, or if input `i` has a default and a call in a
    linted file omits it. Also reports `a, b = ctx.needs_input_grad` if the number of names is not the number of inputs.

    ## Why is this bad?
    `ctx.needs_input_grad` has one flag for each argument of `apply`; ctx is not counted. A larger index raises
    `IndexError: tuple index out of range` in `backward`, and unpacking raises `ValueError: not enough values to unpack
    (expected 3, got 2)`. An input that a call omits has no flag, unless there is a `setup_context`, which gets defaults
    as well since torch 2.2.

    ## Example
    ```python
    import torch


    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.save_for_backward(x, weight)
            return x * weight

        @staticmethod
        def backward(ctx, grad_output):
            x, weight = ctx.saved_tensors
            grad_x = grad_output * weight if ctx.needs_input_grad[1] else None
            grad_weight = grad_output * x if ctx.needs_input_grad[2] else None
            return grad_x, grad_weight
    ```

    ## Use instead
    ```python
    import torch


    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.save_for_backward(x, weight)
            return x * weight

        @staticmethod
        def backward(ctx, grad_output):
            x, weight = ctx.saved_tensors
            grad_x = grad_output * weight if ctx.needs_input_grad[0] else None
            grad_weight = grad_output * x if ctx.needs_input_grad[1] else None
            return grad_x, grad_weight
    ```

    ## Fix safety
    There is no fix: only the author knows which input is meant.

    ## Known limits
    For an input that calls omit, nothing is reported under a test that may detect it: of the length, for `None`, or of
    a flag stored on ctx. Not reported if `forward` takes `*args`, under `try`, or if all calls in the linted files pass the input,
    even if others may not.

    ## References
    - [torch.autograd.function.FunctionCtx](https://pytorch.org/docs/stable/autograd.html#context-method-mixins)
    """

    code = "CTX208"
    name = "needs-input-grad-index"
    subject = FunctionClass
    says_if_it_runs = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        if not fn.count_judgeable or fn.forward is None or fn.variadic_inputs is not None:
            return
        for method in methods_that_run(fn):
            for read in method.facts.of(NeedsInputGradRead):
                counted = any("len(" in guard.text and "needs_input_grad" in guard.text for guard in read.guards)
                if counted or read.tried:
                    continue
                problem = _too_far(fn, read, method, settings) or _left_out(fn, read, method, settings)
                if problem is not None:
                    yield Finding(fn.span(read.node), problem, related=way_to(fn, read))


def _too_far(fn: FunctionClass, read: NeedsInputGradRead, method: Method, settings: Settings) -> str | None:
    """The problem if all inputs are passed, if there certainly is one."""
    inputs, ctx, when = len(fn.inputs), method.ctx_name, _when(fn, method, read)
    have = f"`forward` of `{fn.name}` takes {all_inputs(fn)}"
    least = inputs if defaults_are_bound(fn, settings) else fn.required_inputs
    if read.unpacked is not None and not least <= read.unpacked <= inputs:
        return (
            f"`{ctx}.needs_input_grad` is unpacked into {counted(read.unpacked, 'name')} but {have}; this raises "
            f"ValueError{when}. Unpack {inputs}."
        )
    if read.index is not None and not -inputs <= read.index < inputs:
        remedy = f"Test the length of `{ctx}.needs_input_grad` there" if read.by else "Count inputs from 0, without ctx"
        return f"{have}; `{ctx}.needs_input_grad[{read.index}]` raises IndexError{when}. {remedy}."
    return None


def _left_out(fn: FunctionClass, read: NeedsInputGradRead, method: Method, settings: Settings) -> str | None:
    """The problem if a call leaves out an input with a default, if some call does or none is known to pass it."""
    ctx, until = method.ctx_name, ""
    if fn.style is Style.SETUP_CONTEXT:
        if not settings.torch.fall_below(2, 2):
            return None
        until = " before 2.2" if settings.torch.reach(2, 2) else ""
    if any(_may_test_presence(guard) for guard in read.guards):
        return None
    if method.name in ("backward", "vjp"):
        until = f" at backward{until}"
    for call, passed in exact_calls(fn):
        if read.unpacked is not None and read.unpacked != passed:
            return (
                f"`{ctx}.needs_input_grad` is unpacked into {counted(read.unpacked, 'name')} but the call on {call.place} "
                f"passes {counted(passed, 'input')}; this raises ValueError{until}. Test the length of `{ctx}.needs_input_grad` first."
            )
        if read.index is not None and read.index >= passed:
            return _index_left_out(fn, read, method, f"for the call on {call.place}, which omits", until)
    open_ended = fn.applied and all(call.starred for call in fn.calls)
    if read.index is not None and read.index >= fn.required_inputs and open_ended:
        return _index_left_out(fn, read, method, "for calls that omit", until)
    return None


def _index_left_out(fn: FunctionClass, read: NeedsInputGradRead, method: Method, who: str, until: str) -> str:
    ctx = method.ctx_name
    return (
        f"`{ctx}.needs_input_grad[{read.index}]` is out of range {who} `{fn.inputs[read.index or 0].name}`; "
        f"this raises IndexError{until}{_when(fn, method, read)}. Test the length of `{ctx}.needs_input_grad` first."
    )


def _when(fn: FunctionClass, method: Method, read: NeedsInputGradRead) -> str:
    """Under another test, or behind what raises, the flag may never be read."""
    return " when this is reached" if read.guards or raises_before(fn, method, read.node) else ""


def _may_test_presence(guard: Guard) -> bool:
    """Whether a test may depend on whether an input was passed: any test may, except of another flag."""
    return guard.asks is None or guard.asks.question is not Question.NEEDS_INPUT_GRAD
