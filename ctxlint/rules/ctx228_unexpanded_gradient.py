"""CTX228: the gradient of a sum or mean is returned as it came, although the input has dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.output_shapes import unexpanded_gradients
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class UnexpandedGradient(Rule[FunctionClass]):
    """
    ## What it does
    Reports a `backward` that returns its incoming gradient, or a multiple of it, for an input that `forward` reduces
    with `sum` or `mean`.

    ## Why is this bad?
    A gradient has the shape of its input. That of a sum or mean has fewer dimensions, or smaller ones, and torch raises
    `RuntimeError: Function FBackward returned an invalid gradient at index 0 - got [] but expected shape compatible
    with [3]`: it sums gradients that are too large, but expands none. It does not raise for an input without dimensions,
    or one whose reduced dimensions have size 1 and are kept.

    ## Example
    ```python
    import torch


    class Total(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.sum()

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output
    ```

    ## Use instead
    ```python
    import torch


    class Total(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.shape = x.shape
            return x.sum()

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output.expand(ctx.shape)
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Shapes are not tracked in general: only a gradient that is the incoming one, negated, copied, or times a number, and
    only if `forward` has one output, which is the `sum` or `mean` of a function of single elements of the input on every
    path. If that combines inputs, such as `prediction - target`, it must be over all dimensions.

    ## References
    - [torch.autograd.Function.backward](https://pytorch.org/docs/stable/generated/torch.autograd.Function.backward.html)
    """

    code = "CTX228"
    name = "unexpanded-gradient"
    subject = FunctionClass
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        backward = fn.counted_backward
        if backward is None:
            return
        for index, node in dict(unexpanded_gradients(fn)).items():
            name = fn.inputs[index].name
            yield Finding(
                fn.span(node),
                f"`{backward.name}` of `{fn.name}` returns a gradient in the shape of the output for `{name}`, which "
                f"`forward` reduces; torch raises RuntimeError at backward unless `{name}` has that shape. Return it expanded to the shape of `{name}`.",
            )
