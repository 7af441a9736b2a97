"""CTX501: backward leaves autograd without being marked once-differentiable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fixes.decorators import mark_once_differentiable
from ctxlint.model.analyses.second_order import (
    differentiable_backward,
    leaves_autograd,
    leaves_by_copies,
    makes_an_array,
)
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Category, Finding, FixAvailability, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class MissingOnceDifferentiable(Rule[FunctionClass]):
    """
    ## What it does
    Reports a `backward` that uses operations autograd does not record (`.data`, `.detach()`, numpy, `torch.no_grad()`,
    a kernel launch, an extension that fills a gradient, `loss.backward()`) without `@once_differentiable`.

    ## Why is this bad?
    Under `create_graph=True` (gradient penalties, Hessians, meta-learning), `backward` itself is differentiated.
    Operations that autograd does not record count as constants. If other operations give the gradient a graph (a loss
    such as `y**2`, or what computed the input), the second derivative is silently wrong. If none does, it raises
    `element 0 of tensors does not require grad`. A tensor that requires grad and becomes an array raises in `backward`.
    With `@once_differentiable`, torch raises wherever the incoming gradient has a graph: `trying to differentiate twice
    a function that was marked with @once_differentiable`.

    ## Example
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
            return grad_output * 3 * x.detach() ** 2
    ```

    ## Use instead
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
            return grad_output * 3 * x.detach() ** 2
    ```

    ## Fix safety
    Unsafe: with the decorator, a second derivative that is silently wrong, or right by luck, becomes an error. It is
    added below `@staticmethod`, with an import if the file has none; if the name is taken, it is written
    `@torch.autograd.function.once_differentiable`. There is no fix for a class method, or for a file that imports
    nothing from torch at its top level.

    ## Known limits
    Off by default: most kernels are never differentiated twice. The decorator does not catch everything: a penalty on
    the gradient alone is still silently wrong. Not reported if `backward` calls `torch.is_grad_enabled()`, and so treats a
    second derivative in a way of its own.

    ## References
    - [torch.autograd.function.once_differentiable](https://pytorch.org/docs/stable/generated/torch.autograd.function.once_differentiable.html)
    """

    code = "CTX501"
    name = "missing-once-differentiable"
    subject = FunctionClass
    holds_unreached = True
    category = Category.PEDANTIC
    default = False
    fix = FixAvailability.SOMETIMES
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        backward = differentiable_backward(fn)
        if backward is None:
            return
        found = leaves_autograd(fn, backward)
        if found is None:
            return
        off = any(backward.decorator(each) is not None for each in ("no_grad", "inference_mode"))
        consequence = (
            "raises where a tensor with a graph becomes an array"
            if makes_an_array(found[1]) and not off
            else "raises, or is silently wrong if others are recorded"
        )
        remedy = "Mark it with `@once_differentiable`"
        if leaves_by_copies(fn, backward):
            remedy = f"Leave out {found[1]}, or mark `backward` with `@once_differentiable`"
        yield Finding(
            fn.span(backward.node.name),
            f"`backward` of `{fn.name}` uses operations that autograd does not record ({found[1]}); a second derivative "
            f"{consequence}. {remedy}.",
            fix=mark_once_differentiable(fn, backward),
        )
