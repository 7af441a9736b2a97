"""CTX214: gradients may be None after ``set_materialize_grads(False)``, and nothing tests for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.outputs import others_have_gradients, unmaterialized, untested_operations
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class UnmaterializedGradient(Rule[FunctionClass]):
    """
    ## What it does
    Reports a `backward` that uses an incoming gradient without testing it for `None`, in a Function with several
    outputs whose `forward` calls `ctx.set_materialize_grads(False)`.

    ## Why is this bad?
    After that call, torch passes `None` instead of zeros for an output that the loss does not use. Arithmetic with it
    raises `TypeError: unsupported operand type(s) for *: 'NoneType' and 'float'`, and a method call raises
    `AttributeError: 'NoneType' object has no attribute 'sum'`, but only in programs that leave an output unused.

    ## Example
    ```python
    import torch


    class SinCos(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(x)
            return x.sin(), x.cos()

        @staticmethod
        def backward(ctx, grad_sin, grad_cos):
            (x,) = ctx.saved_tensors
            return grad_sin * x.cos() - grad_cos * x.sin()
    ```

    ## Use instead
    ```python
    import torch


    class SinCos(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(x)
            return x.sin(), x.cos()

        @staticmethod
        def backward(ctx, grad_sin, grad_cos):
            (x,) = ctx.saved_tensors
            grad_x = torch.zeros_like(x)
            if grad_sin is not None:
                grad_x = grad_x + grad_sin * x.cos()
            if grad_cos is not None:
                grad_x = grad_x - grad_cos * x.sin()
            return grad_x
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    A gradient that occurs in any test counts as tested everywhere. Not reported under `try`, or if `backward` raises depending on
    another gradient.

    ## References
    - [FunctionCtx.set_materialize_grads](https://pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.set_materialize_grads.html)
    """

    code = "CTX214"
    name = "unmaterialized-gradient"
    subject = FunctionClass
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        backward = fn.judgeable_backward
        if backward is None or not unmaterialized(fn):
            return
        counts = [returned.count for returned in fn.outputs]
        if not counts or any(count is None or count < 2 for count in counts):
            return
        for param, node in untested_operations(fn):
            if not others_have_gradients(fn, backward.positional.index(param)):
                continue  # backward does not run without this one
            error = "AttributeError" if isinstance(node, (cst.Call, cst.Attribute)) else "TypeError"
            yield Finding(
                fn.span(node),
                f"`{param.name}` is `None` (`set_materialize_grads(False)`) when the loss does not use its output; this then "
                f"raises {error}. Test `{param.name} is not None` first.",
            )
