"""CTX307: a path through forward does not store what backward needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.certain_raises import backward_raises
from ctxlint.model.analyses.skipped_state import skipped_state, storing_method
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.related import at, way_to
from ctxlint.rules.wording import if_backward_gets_there, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
from ctxlint.model.analyses.skipped_state import SkippedState


class StateMissingOnPath(Rule[FunctionClass]):
    """
    ## What it does
    Reports a path through `forward` that skips `save_for_backward`, or the assignment of a ctx attribute, although
    `backward` needs it: an early return, a test of `requires_grad` of some inputs while others get
    gradients as well, one branch of a test of an input's type or value, of a flag for training, or of a choice between two computations.

    ## Why is this bad?
    After that path, `backward` raises, far from the cause: `AttributeError: 'FBackward' object has no attribute 'dim'`,
    or `ValueError: not enough values to unpack (expected 2, got 0)`. Programs that never take the path, or that train
    all inputs, are not affected.

    ## Example
    ```python
    import torch


    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            if x.requires_grad:
                ctx.save_for_backward(x, weight)
            return x * weight

        @staticmethod
        def backward(ctx, grad_output):
            x, weight = ctx.saved_tensors
            return grad_output * weight, grad_output * x
    ```

    ## Use instead
    ```python
    import torch


    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.save_for_backward(x, weight)
            return x * weight

        @staticmethod
        def backward(ctx, grad_output):
            x, weight = ctx.saved_tensors
            return grad_output * weight, grad_output * x
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Not reported if a test concerns gradients or inference in a form that ctxlint does not understand, if ctx
    is passed to a helper, or if `backward` tests anything before it reads, except flags of inputs, and incoming
    gradients for which it raises.

    ## References
    - [Extending torch.autograd](https://pytorch.org/docs/stable/notes/extending.html)
    """

    code = "CTX307"
    name = "state-missing-on-path"
    subject = FunctionClass
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        keeper = storing_method(fn)
        if keeper is None or keeper.inherited:
            return
        for each in skipped_state(fn):
            message = _message(each, keeper.ctx_name)
            others = at(fn, each.others, f"this return skips `{each.what}` too")
            yield Finding(
                fn.span(each.node),
                if_backward_gets_there(fn, message) if backward_raises(fn) else message,
                related=(*others, *way_to(fn, *each.events)),
            )


def _message(skipped: SkippedState, ctx: str) -> str:
    provider = f"`{skipped.what}`"
    happens, verb = ("runs", "Call") if skipped.what.endswith(".save_for_backward") else ("is set", "Set")
    if skipped.flags:
        return _message_of_flags(skipped, provider, happens, ctx)
    if skipped.returns:
        skips = f"This return skips {provider} {_when(skipped)}"
        return f"{skips}; `backward` then raises {skipped.error}. {_handled(skipped, 'before', 'that path')}"
    if skipped.trains:
        remedy = _handled(skipped, "there", "that mode")
        if skipped.suffices and not skipped.decides_more and not skipped.handles_none:
            remedy = f"{verb} it there too if the rest fits that mode, else raise a clear error."
        return (
            f"{provider} {happens} only under `{skipped.condition}`; `backward` raises {skipped.error} for a gradient in evaluation "
            f"mode. {remedy}"
        )
    if not skipped.holds:
        fact = f"{provider} is skipped under `{skipped.condition}`; `backward` then raises {skipped.error}"
        return f"{fact}. {_handled(skipped, 'in that case', 'that case')}"
    remedy = _handled(skipped, "in the other case", "the other case")
    if skipped.of_absent and not skipped.handles_none:
        remedy = "Set it to `None` in the other case, and test that in `backward`."
    elif skipped.suffices and not skipped.handles_none:
        remedy = f"{verb} it in the other case too."
    return (
        f"{provider} {happens} only under `{skipped.condition}`; `backward` raises {skipped.error} otherwise. {remedy}"
    )


def _when(skipped: SkippedState) -> str:
    return f"{'under' if skipped.holds else 'unless'} `{skipped.condition}`"


def _handled(skipped: SkippedState, there: str, case: str) -> str:
    """What to do about a path that ``backward`` does not know, or knows as None."""
    if skipped.handles_none:
        return f"Set it to `None` {there}, as `backward` tests for that."
    return f"Handle {case} in `backward` too, or raise a clear error."


def _message_of_flags(skipped: SkippedState, provider: str, happens: str, ctx: str) -> str:
    """For flags of inputs, where others get a gradient as well."""
    if skipped.returns:
        return (
            f"This return skips {provider} {_when(skipped)}; `backward` raises {skipped.error} when only other inputs need a gradient. "
            f"Test `any({ctx}.needs_input_grad)` instead."
        )
    who = f"`{skipped.only}` needs" if skipped.only else "other inputs need"
    remedy = f"Test `any({ctx}.needs_input_grad)` instead." if skipped.decides_more else "Drop the test."
    if skipped.only:
        remedy = "Test the same flags in both."
    if skipped.unserved:
        remedy = f"Test `any({ctx}.needs_input_grad)` instead and return a gradient for `{skipped.unserved}` too, or raise a clear error."
    return (
        f"{provider} {happens} only when {quoted(skipped.flags, 'or')} needs a gradient; `backward` raises {skipped.error} when "
        f"only {who} one. {remedy}"
    )
