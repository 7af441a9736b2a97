"""CTX211: the gradient of a float output is never read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.outputs import ignored_gradients, may_be_none, possible_output_values
from ctxlint.model.function import FunctionClass
from ctxlint.model.interpreter.values import View
from ctxlint.rules.base import Category, Finding, Rule
from ctxlint.rules.related import unread_by
from ctxlint.rules.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class IgnoredOutputGradient(Rule[FunctionClass]):
    """
    ## What it does
    Reports a parameter of `backward` that is never read although it is the gradient of a floating-point output that is
    not marked as non-differentiable; also if `backward` only passes it to functions of the project that never read it.

    ## Why is this bad?
    The output looks differentiable: it has a `grad_fn` and `requires_grad=True`. But a loss computed from it adds
    nothing to the gradients of the inputs, and torch does not warn: with `y, z = F.apply(x)`, `(y +
    z).sum().backward()` computes the gradient of `y` alone.

    ## Example
    ```python
    import torch


    class CubeAndSquare(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x: torch.Tensor):
            ctx.save_for_backward(x)
            return x**3, x**2

        @staticmethod
        def backward(ctx, grad_cube, grad_square):
            (x,) = ctx.saved_tensors
            return grad_cube * 3 * x**2
    ```

    ## Use instead
    ```python
    import torch


    class CubeAndSquare(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x: torch.Tensor):
            ctx.save_for_backward(x)
            return x**3, x**2

        @staticmethod
        def backward(ctx, grad_cube, grad_square):
            (x,) = ctx.saved_tensors
            return grad_cube * 3 * x**2 + grad_square * 2 * x
    ```

    If the output is not meant to be differentiated, mark it: `ctx.mark_non_differentiable(square)`.

    ## Fix safety
    There is no fix.

    ## Known limits
    Reported only if the output is certainly a floating-point tensor (or sometimes `None`). One that only some returns
    have is reported if `backward` reads other elements of `*grads`. A name that begins with `_`
    or contains `unused`, `dummy`, `ignored` or `none`, `del grad`, and a comment that says so, state that the gradient is dropped on purpose. Random numbers and constants
    depend on no input, counts and rounded values have the gradient zero, and so has what is computed from these alone: they need none. Not reported if `backward` returns a gradient that depends on no incoming one, as a
    synthetic gradient does, or if `forward` is inherited: several classes may share it.

    ## References
    - [FunctionCtx.mark_non_differentiable](https://pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.mark_non_differentiable.html)
    """

    code = "CTX211"
    name = "ignored-output-gradient"
    subject = FunctionClass
    category = Category.SUSPICIOUS
    about_gradients = True
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        backward = fn.counted_backward
        if backward is None:
            return
        for each in ignored_gradients(fn):
            values = possible_output_values(fn, each.index) or ()
            sometimes = may_be_none(fn, each.index)  # torch raises for a mark of None
            unless, output = (" or `None`", "it") if sometimes else ("", "that output")
            mark = "mark the tensor" if sometimes else "mark the output"
            helpers = dict.fromkeys(given.called for given in each.given_to)
            if helpers:
                ignores = f"{quoted(helpers)} {'ignores' if len(helpers) == 1 else 'ignore'} `{each.name}`"
                place = f"output {each.index + 1} of `{fn.name}`"
            else:
                ignores = f"`{backward.name}` of `{fn.name}` never reads `{each.name}`"
                place = f"output {each.index + 1}"
            yield Finding(
                fn.span(each.param.node.name),
                f"{ignores}, the gradient of {place}, a floating-point tensor{unless}; a loss on {output} silently has no "
                f"effect. Use it, or {mark} with `{fn.storing_ctx}.mark_non_differentiable`.",
                related=unread_by(fn, each.given_to),
                rests_on=tuple(each for each in values if not isinstance(each, View)),  # a view may have another dtype
            )
