"""CTX249: ``backward`` requires an incoming gradient to be None."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.none_tests import required_nones
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class NoneGradientTest(Rule[FunctionClass]):
    """
    ## What it does
    Reports a `backward` that raises unless an incoming gradient is `None`, as by `assert grad_mask is None`.

    ## Why is this bad?
    For an output without a gradient, torch passes zeros, also if `mark_non_differentiable` marks it. `backward` gets `None` only
    after `ctx.set_materialize_grads(False)`, so that it always raises.

    ## Example
    ```python
    import torch


    class Rectify(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            mask = x > 0
            ctx.save_for_backward(mask)
            ctx.mark_non_differentiable(mask)
            return x * mask, mask

        @staticmethod
        def backward(ctx, grad_output, grad_mask):
            assert grad_mask is None
            (mask,) = ctx.saved_tensors
            return grad_output * mask
    ```

    ## Use instead
    ```python
    import torch


    class Rectify(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            mask = x > 0
            ctx.save_for_backward(mask)
            ctx.mark_non_differentiable(mask)
            return x * mask, mask

        @staticmethod
        def backward(ctx, grad_output, grad_mask):
            (mask,) = ctx.saved_tensors
            return grad_output * mask
    ```

    ## Fix safety
    There is no fix: the test may be wanted with `set_materialize_grads(False)`.

    ## Known limits
    Only tests that each call of `backward` makes count, and outputs that certainly are tensors: for others, torch passes `None`.

    ## References
    - [FunctionCtx.set_materialize_grads](https://pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.set_materialize_grads.html)
    """

    code = "CTX249"
    name = "none-gradient-test"
    subject = FunctionClass
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for each in required_nones(fn):
            deed = (
                f"asserts that `{each.gradient}` is `None`"
                if each.asserted
                else f"raises if `{each.gradient}` is not `None`"
            )
            test = "assertion" if each.asserted else "test"
            method = "setup_context" if fn.setup_context is not None else "forward"
            yield Finding(
                fn.span(each.node),
                f"`backward` of `{fn.name}` {deed}, but torch passes zeros for an output without a gradient; it raises"
                f"{f' {each.error}' * bool(each.error)}. Drop the {test}, or call `{fn.storing_ctx}.set_materialize_grads(False)` in `{method}`.",
            )
