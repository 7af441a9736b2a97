"""CTX317: a tensor is saved and then modified in place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.saved_state import changed_after_saving
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Category, Finding, Rule
from ctxlint.rules.related import at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class SavedBeforeMutation(Rule[FunctionClass]):
    """
    ## What it does
    Reports a tensor that `forward` passes to `save_for_backward` and modifies in place afterwards.

    ## Why is this bad?
    `save_for_backward` stores a reference, not a copy, and torch records the tensor when `forward` returns. `backward`
    silently gets the modified tensor: `save_for_backward(x)` before `x.mul_(2)` computes the gradient at twice the
    input.

    ## Example
    ```python
    import torch


    class ScaledSquare(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.clone()
            ctx.save_for_backward(y)
            y.mul_(3)
            return y**2

        @staticmethod
        def backward(ctx, grad_output):
            (y,) = ctx.saved_tensors
            return grad_output * 18 * y
    ```

    ## Use instead
    ```python
    import torch


    class ScaledSquare(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            y = x * 3
            return y**2

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * 18 * x
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Off by default: the modified value may be intended.

    ## References
    - [FunctionCtx.save_for_backward](https://pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.save_for_backward.html)
    """

    code = "CTX317"
    name = "saved-before-mutation"
    subject = FunctionClass
    category = Category.SUSPICIOUS
    default = False
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for mutation, save in changed_after_saving(fn):
            name = mutation.name or "a tensor"
            yield Finding(
                fn.span(mutation.node),
                f"`{name}` is modified in place after `save_for_backward`; `backward` silently gets the modified value. Save it "
                f"after that, or modify a copy.",
                related=at(fn, [save.node], "saved here"),
            )
