"""CTX231: the gradient of an input that forward flattens stays flat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.flattened import flat_gradients
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class FlatGradient(Rule[FunctionClass]):
    """
    ## What it does
    Reports a gradient with two dimensions for an input that `forward` flattens to two, if `forward` gives its output the
    other sizes of that input again.

    ## Why is this bad?
    A gradient must have the shape of its input. For an input with more than two dimensions, the backward pass raises
    `RuntimeError: Function LinearBackward returned an invalid gradient at index 0`. Tests with matrices never reach this error.

    ## Example
    ```python
    import torch


    class Linear(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            flat = x.reshape(-1, x.shape[-1])
            ctx.save_for_backward(flat, weight)
            return (flat @ weight.t()).reshape(*x.shape[:-1], -1)

        @staticmethod
        def backward(ctx, grad_output):
            flat, weight = ctx.saved_tensors
            grad = grad_output.reshape(-1, grad_output.shape[-1])
            return grad @ weight, grad.t() @ flat
    ```

    ## Use instead
    ```python
    import torch


    class Linear(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.shape = x.shape
            flat = x.reshape(-1, x.shape[-1])
            ctx.save_for_backward(flat, weight)
            return (flat @ weight.t()).reshape(*x.shape[:-1], -1)

        @staticmethod
        def backward(ctx, grad_output):
            flat, weight = ctx.saved_tensors
            grad = grad_output.reshape(-1, grad_output.shape[-1])
            return (grad @ weight).reshape(ctx.shape), grad.t() @ flat
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Shapes are not tracked in general. The input counts if `forward` binds `x.reshape(-1, n)` or `view` and reads
    `x.shape[:-1]`, or gives `x` to `linear`; the gradient, if it is a product of matrices: what `reshape(a, b)` and `mm` give, and tensors of
    which some method takes `.t()`.

    ## References
    - [torch.autograd.Function.backward](https://pytorch.org/docs/stable/generated/torch.autograd.Function.backward.html)
    """

    code = "CTX231"
    name = "flat-gradient"
    subject = FunctionClass
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        backward = fn.counted_backward
        if backward is None:
            return
        for index, node in dict(flat_gradients(fn)).items():
            name = fn.inputs[index].name
            yield Finding(
                fn.span(node),
                f"`{backward.name}` of `{fn.name}` returns a gradient with 2 dimensions for `{name}`, which `forward` flattens; "
                f"torch raises RuntimeError at backward if `{name}` has more. Return it in the shape of `{name}`.",
            )
