"""CTX260: a gradient that is not the derivative of what forward computes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.wrong_derivatives import wrong_derivatives
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Category, Finding, Rule
from ctxlint.rules.wording import fitting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class WrongDerivative(Rule[FunctionClass]):
    """
    ## What it does
    Reports a `backward` that does not return the derivative of what `forward` computes of each element, such as
    `grad_output * x` for `x.relu()`. Both are computed for some numbers, and compared.

    ## Why is this bad?
    Training goes on, with wrong gradients. `torch.autograd.gradcheck` finds it, in double precision.

    ## Example
    ```python
    import torch


    class Relu(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.relu()

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * x
    ```

    ## Use instead
    ```python
    import torch


    class Relu(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.relu()

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * (x > 0)
    ```

    ## Fix safety
    There is no fix: only the author knows which of the two is meant.

    ## Known limits
    Off by default: another gradient may be meant, as a surrogate. Only methods without branches and loops, of functions that
    work element by element. Not reported if the gradient is wrong by a constant factor, which scales or reverses it, or
    only where the derivative is 0, or if the incoming gradient is returned, as with straight-through estimators.

    ## References
    - [torch.autograd.gradcheck](https://pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html)
    """

    code = "CTX260"
    name = "wrong-derivative"
    subject = FunctionClass
    category = Category.SUSPICIOUS
    default = False
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        backward = fn.backward
        for each in wrong_derivatives(fn):
            if backward is None:
                return
            given, right = f"{each.given:.3g}", f"{each.right:.3g}"
            where = " and ".join(f"`{name}` is {number:g}" for name, number in each.at)
            fact = f"`{backward.name}` of `{fn.name}` multiplies the gradient of `{each.name}` by {given}"
            effect = f"the derivative of `forward` there is {right}, so `gradcheck` raises"
            yield Finding(
                fn.span(backward.node.name),
                fitting(
                    f"{fact} where {where}; {effect}. Correct one of the two.",
                    f"{fact} for some numbers; the derivative of `forward` there is {right}. Correct one of the two.",
                ),
            )
