"""CTX252: a quotient of exponentials that is not a number for large arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.overflowing_quotients import overflowing_quotients
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Category, Finding, Rule
from ctxlint.rules.wording import fitting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class OverflowingQuotient(Rule[FunctionClass]):
    """
    ## What it does
    Reports `exp(x) / (exp(x) + 1)` and `exp(x) / (exp(x) + 1) ** 2` in the methods of a Function, if nothing bounds `x`.

    ## Why is this bad?
    In float32, `exp(x)` is infinite for `x` above 88.7, and in float16 above 11. Infinity divided by infinity is NaN, where the quotient
    should be 1 or 0. A slope as a factor gets there early: with a slope of 25, at 3.6.

    ## Example
    ```python
    import torch


    class Spike(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return (x > 0).to(x.dtype)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * 25 * torch.exp(-25 * x) / (torch.exp(-25 * x) + 1) ** 2
    ```

    ## Use instead
    ```python
    import torch


    class Spike(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return (x > 0).to(x.dtype)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            s = torch.sigmoid(25 * x)
            return grad_output * 25 * s * (1 - s)
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Off by default: the arguments may be small. Only exponents that are written in the same way above and below, and that are linear
    in an input: not a square, `abs`, `clamp` and the like. Not reported if `where` or a mask chooses some elements of the quotient.

    ## References
    - [torch.sigmoid](https://pytorch.org/docs/stable/generated/torch.sigmoid.html)
    """

    code = "CTX252"
    name = "overflowing-quotient"
    subject = FunctionClass
    category = Category.SUSPICIOUS
    default = False

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for method in fn.own_protocol_methods:
            for each in overflowing_quotients(fn, method):
                effect = "the quotient is infinity by infinity, silently NaN"
                yield Finding(
                    fn.span(each.node),
                    fitting(
                        f"`exp({each.exponent})` is infinite in float32 where `{each.exponent}` is above 88.7; {effect}. Use `torch.sigmoid`.",
                        f"An exponential is infinite in float32 where its exponent is above 88.7; {effect}. Use `torch.sigmoid`.",
                    ),
                )
