"""CTX506: a second derivative through a backward that is marked with once_differentiable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.double_backward import second_derivative_of_marked
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class DifferentiatedOnceDifferentiable(Rule[FunctionClass]):
    """
    ## What it does
    Reports `@once_differentiable` on a `backward` whose gradient a caller differentiates once more: it calls `apply`, asks for the
    gradient by an argument with `create_graph=True`, and differentiates what it computes with that.

    ## Why is this bad?
    `once_differentiable` runs `backward` without grad mode. If the incoming gradient has a graph, the second derivative raises
    `RuntimeError: trying to differentiate twice a function that was marked with @once_differentiable`. If it has none, as that
    of `y.sum()`, so has the gradient: the second derivative raises as well, or silently lacks this part where others are added to it.

    ## Example
    ```python
    import torch
    from torch.autograd.function import once_differentiable


    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        @once_differentiable
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * 3 * x**2


    def penalty(x):
        x = x.detach().requires_grad_()
        y = Cube.apply(x)
        (slope,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        slope.square().mean().backward()
        return x.grad
    ```

    ## Use instead
    ```python
    import torch


    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * 3 * x**2


    def penalty(x):
        x = x.detach().requires_grad_()
        y = Cube.apply(x)
        (slope,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        slope.square().mean().backward()
        return x.grad
    ```

    ## Fix safety
    There is no fix: what autograd does not record would need a Function of its own for the second derivative.

    ## Known limits
    Off by default: torch itself raises in most such programs. Only where one block of one function calls `apply` and differentiates twice, and
    where `backward` computes that gradient with a saved tensor that depends on the input, by operations that autograd records.

    ## References
    - [Double backward with custom Functions](https://pytorch.org/tutorials/intermediate/custom_function_double_backward_tutorial.html)
    """

    code = "CTX506"
    name = "differentiated-once-differentiable"
    subject = FunctionClass
    default = False
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        backward = fn.judgeable_backward
        mark = backward.decorator("once_differentiable") if backward is not None else None
        where = second_derivative_of_marked(fn) if mark is not None else ""
        if mark is not None and where:
            yield Finding(
                fn.span(mark.node),
                f"`backward` of `{fn.name}` is marked with `@once_differentiable`, but its gradient is differentiated on {where}; "
                f"that raises RuntimeError, or silently lacks this part. Drop the mark, and let autograd record `backward`.",
            )
