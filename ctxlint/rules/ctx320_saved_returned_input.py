"""CTX320: setup_context saves an input that forward returns unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.rejections import saved_returned_inputs
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class SavedReturnedInput(Rule[FunctionClass]):
    """
    ## What it does
    Reports `save_for_backward` and `save_for_forward` in `setup_context` with an input that `forward` returns
    unchanged.

    ## Why is this bad?
    Torch replaces an input that is returned unchanged with a view, and cannot tell which of the two is meant to be
    saved. It raises `RuntimeError: An input that has been returned as-is as output is being saved for backward. This is
    not supported if you override setup_context` at every `apply`, with and without gradients. A `forward` that takes
    ctx may save it.

    ## Example
    ```python
    import torch


    class Sign(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x

        @staticmethod
        def setup_context(ctx, inputs, output):
            (x,) = inputs
            ctx.save_for_backward(x)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * x.sign()
    ```

    ## Use instead
    ```python
    import torch


    class Sign(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x.view_as(x)

        @staticmethod
        def setup_context(ctx, inputs, output):
            (x,) = inputs
            ctx.save_for_backward(x)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * x.sign()
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Not reported if anything is marked as dirty or non-differentiable, which torch accepts, or if only one path returns
    the input.

    ## References
    - [pytorch#97318](https://github.com/pytorch/pytorch/pull/97318): the error
    - [FunctionCtx.save_for_backward](https://pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.save_for_backward.html)
    """

    code = "CTX320"
    name = "saved-returned-input"
    subject = FunctionClass
    about_context = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for method, name, node in saved_returned_inputs(fn):
            yield Finding(
                fn.span(node),
                f"`{method}` gets the input `{name}`, which `forward` of `{fn.name}` returns unchanged; torch "
                f"raises RuntimeError at `apply`. Return `{name}.view_as({name})`.",
            )
