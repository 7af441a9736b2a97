"""CTX313: backward changes a saved input or output in place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.functions import FunctionClass
from ctxlint.model.kept import changed_in_backward
from ctxlint.rules.base import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.settings import Settings


class SavedTensorMutated(Rule[FunctionClass]):
    """
    ## What it does
    Reports an in-place change, in `backward`, of a tensor from ctx that is an input or an output of `forward`.

    ## Why is this bad?
    A saved input or output is the caller's own tensor, not a copy. Grad mode is off in backward, so no check fires: the
    user's weight, or the activation that another layer still needs, silently has another value afterwards.

    ## Example
    ```python
    import torch


    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return x.mul_(2) * grad_output
    ```

    ## Use instead
    ```python
    import torch


    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return x * 2 * grad_output
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    An intermediate of forward may be overwritten to save memory, and is not reported. Nor is a tensor that is one of
    several by the path taken, nor a change that a later one takes back: `x.sub_(y)`, and then `x.add_(y)`.

    ## References
    - [FunctionCtx.save_for_backward](https://pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.save_for_backward.html)
    """

    code = "CTX313"
    name = "saved-tensor-mutated"
    subject = FunctionClass
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        if fn.backward is None or fn.backward.inherited:
            return
        for each in changed_in_backward(fn):
            yield Finding(
                fn.span(each.mutation.node),
                f"`{each.mutation.how}` changes the saved {each.what} `{each.name}` in place; the caller's tensor "
                f"silently has another value after backward. Work on a copy.",
            )
