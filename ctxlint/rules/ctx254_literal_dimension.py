"""CTX254: backward reduces along a fixed dimension, where forward works along the one that callers choose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.literal_dimensions import literal_dimensions
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class LiteralDimension(Rule[FunctionClass]):
    """
    ## What it does
    Reports a reduction in `backward` along a fixed dimension, such as `sum(dim=-1)`, of a Function whose `forward` works along
    a dimension that it is called with, and does not keep it.

    ## Why is this bad?
    The gradient of a softmax along dimension 0 is a sum along dimension 0. For any other dimension than the one in
    `backward`, the gradient is silently wrong, or it has another shape than the input.

    ## Example
    ```python
    import torch


    class Softmax(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, dim):
            y = torch.softmax(x, dim=dim)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad_output):
            (y,) = ctx.saved_tensors
            return y * (grad_output - (y * grad_output).sum(dim=-1, keepdim=True)), None
    ```

    ## Use instead
    ```python
    import torch


    class Softmax(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, dim):
            y = torch.softmax(x, dim=dim)
            ctx.save_for_backward(y)
            ctx.dim = dim
            return y

        @staticmethod
        def backward(ctx, grad_output):
            (y,) = ctx.saved_tensors
            return y * (grad_output - (y * grad_output).sum(dim=ctx.dim, keepdim=True)), None
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Off by default: a Function may only ever be called with one dimension. Only if one input alone gets a gradient, `forward` uses the
    dimension for reductions and the like alone, and has no other in them. Not reported if all calls in view pass that very number.

    ## References
    - [Extending torch.autograd](https://pytorch.org/docs/stable/notes/extending.html)
    """

    code = "CTX254"
    name = "literal-dimension"
    subject = FunctionClass
    default = False
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for each in list(literal_dimensions(fn))[:1]:
            name, ctx = each.entry.name, fn.storing_ctx
            yield Finding(
                fn.span(each.node),
                f"`backward` of `{fn.name}` calls `{each.called}` along dimension {each.number}, `forward` works along `{name}`; if that is "
                f"another one, the gradient is silently wrong. Set `{ctx}.{name} = {name}`, and use that.",
            )
