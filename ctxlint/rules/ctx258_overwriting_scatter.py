"""CTX258: the gradient of a gather is scattered without adding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.overwriting_scatters import overwriting_scatters
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class OverwritingScatter(Rule[FunctionClass]):
    """
    ## What it does
    Reports a `backward` that writes the gradient of `gather` or `index_select` to its places with `scatter_` or `index_copy_`, if
    the index is an input.

    ## Why is this bad?
    Where the index holds a place twice, that element of the input is in two elements of the output, and its gradient is the sum of
    theirs. `scatter_` and `index_copy_` keep only one of them, and which one is arbitrary on a GPU. A test with a permutation does
    not show it.

    ## Example
    ```python
    import torch


    class Rows(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, index):
            ctx.save_for_backward(index)
            ctx.rows = x.shape[0]
            return x.index_select(0, index)

        @staticmethod
        def backward(ctx, grad):
            (index,) = ctx.saved_tensors
            grad_x = grad.new_zeros(ctx.rows, grad.shape[1])
            grad_x.index_copy_(0, index, grad)
            return grad_x, None
    ```

    ## Use instead
    ```python
    import torch


    class Rows(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, index):
            ctx.save_for_backward(index)
            ctx.rows = x.shape[0]
            return x.index_select(0, index)

        @staticmethod
        def backward(ctx, grad):
            (index,) = ctx.saved_tensors
            grad_x = grad.new_zeros(ctx.rows, grad.shape[1])
            grad_x.index_add_(0, index, grad)
            return grad_x, None
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Off by default: callers often pass an index that holds no place twice, such as the result of `nonzero`. Not reported for an
    expression that may have one element along the dimension, as after `unsqueeze`, or for an index that `forward` computes.

    ## References
    - [torch.Tensor.scatter_](https://pytorch.org/docs/stable/generated/torch.Tensor.scatter_.html)
    - [torch.Tensor.scatter_add_](https://pytorch.org/docs/stable/generated/torch.Tensor.scatter_add_.html)
    """

    code = "CTX258"
    name = "overwriting-scatter"
    subject = FunctionClass
    default = False
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for each in overwriting_scatters(fn):
            yield Finding(
                fn.span(each.node),
                f"`{each.name}` keeps one gradient for a place that `{each.index.name}` holds twice, and `forward` of `{fn.name}` gathers "
                f"`{each.input.name}` by it; the others are silently lost. Use `{each.adding}`.",
            )
