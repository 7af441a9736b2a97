"""CTX245: a gradient is summed over a dimension that the input has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.lost_dimensions import reduced_gradients
from ctxlint.model.function import FunctionClass
from ctxlint.model.syntax import code_of
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.analyses.lost_dimensions import Reduced


class TooFewDimensions(Rule[FunctionClass]):
    """
    ## What it does
    Reports a `sum` or `mean` that leaves a gradient with fewer dimensions than its input has, such as
    `grad_output.t().sum(dim=(0, 1))` for a bias.

    ## Why is this bad?
    A gradient must have the shape of its input. One with fewer dimensions raises
    `RuntimeError: Function LinearBackward returned an invalid gradient at index 2 - got [] but expected shape compatible with [4]`.
    Where the input is optional, as a bias often is, nobody may have noticed.

    ## Example
    ```python
    import torch


    class Linear(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight, bias):
            ctx.save_for_backward(x, weight)
            return torch.nn.functional.linear(x, weight, bias)

        @staticmethod
        def backward(ctx, grad_output):
            x, weight = ctx.saved_tensors
            grad = grad_output.reshape(-1, weight.shape[0]).t()
            grad_weight = grad @ x.reshape(-1, weight.shape[1])
            return grad_output @ weight, grad_weight, grad.sum(dim=(0, 1))
    ```

    ## Use instead
    ```python
    import torch


    class Linear(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight, bias):
            ctx.save_for_backward(x, weight)
            return torch.nn.functional.linear(x, weight, bias)

        @staticmethod
        def backward(ctx, grad_output):
            x, weight = ctx.saved_tensors
            grad = grad_output.reshape(-1, weight.shape[0]).t()
            grad_weight = grad @ x.reshape(-1, weight.shape[1])
            return grad_output @ weight, grad_weight, grad.sum(dim=1)
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Shapes are not tracked in general. The input must be the bias of a linear function or convolution, or `forward` must
    read one of its sizes on every path, as in `x.shape[1]`; what is summed must be a product of matrices, a tensor that is reshaped
    to a known number of dimensions, also by `einops.rearrange`, or a sum over everything.

    ## References
    - [torch.autograd.Function.backward](https://pytorch.org/docs/stable/generated/torch.autograd.Function.backward.html)
    """

    code = "CTX245"
    name = "too-few-dimensions"
    subject = FunctionClass
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        if fn.counted_backward is None:
            return
        found = {reduced.call: (index, reduced) for index, reduced in reduced_gradients(fn)}
        for index, reduced in found.values():
            yield Finding(fn.span(reduced.call), _message(fn.inputs[index].name, reduced))


def _message(name: str, reduced: Reduced) -> str:
    call = " ".join(code_of(reduced.call).split())
    subject = f"`{call}`" if len(call) <= 40 else "This sum"
    left = counted(reduced.left, "dimension") if reduced.left else "no dimensions"
    least = "one" if reduced.needed == 1 else str(reduced.needed)
    return (
        f"{subject} leaves {left} in the gradient for `{name}`, which has at least {least}; torch raises RuntimeError at "
        f"backward. Keep the dimensions of `{name}`."
    )
