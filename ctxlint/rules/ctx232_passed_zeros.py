"""CTX232: zeros for an unused output are passed on to an input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.passed_through import passed_through
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Category, Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class PassedZeros(Rule[FunctionClass]):
    """
    ## What it does
    Reports a `backward` that only passes several gradients on, as a Function does that runs a hook, without
    `ctx.set_materialize_grads(False)`.

    ## Why is this bad?
    For an output that no loss uses, torch passes zeros to `backward`. Passed on, they reach parameters that have nothing to do
    with the loss: their `.grad` is zeros instead of `None`, the backward pass of their layers runs for nothing, and an
    optimizer with weight decay or momentum changes them.

    ## Example
    ```python
    import torch


    class Hooked(torch.autograd.Function):
        @staticmethod
        def forward(ctx, hook, *inputs):
            ctx.hook = hook
            return inputs

        @staticmethod
        def backward(ctx, *grads):
            ctx.hook()
            return None, *grads
    ```

    ## Use instead
    ```python
    import torch


    class Hooked(torch.autograd.Function):
        @staticmethod
        def forward(ctx, hook, *inputs):
            ctx.set_materialize_grads(False)
            ctx.hook = hook
            return inputs

        @staticmethod
        def backward(ctx, *grads):
            ctx.hook()
            return None, *grads
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Off by default: often all outputs are used. Only a `backward` with one `return` of unchanged gradients and `None` is reported.

    ## References
    - [FunctionCtx.set_materialize_grads](https://pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.set_materialize_grads.html)
    """

    code = "CTX232"
    name = "passed-zeros"
    subject = FunctionClass
    category = Category.PEDANTIC
    default = False
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        backward = fn.judgeable_backward
        node = passed_through(fn) if backward is not None and backward.signature_known else None
        if backward is not None and node is not None:
            yield Finding(
                fn.span(node),
                f"`{backward.name}` of `{fn.name}` passes gradients on, also those of outputs that no loss uses; these silently "
                f"become zeros instead of `None`. Call `{fn.storing_ctx}.set_materialize_grads(False)`.",
            )
