"""CTX226: backward differentiates with respect to the caller's own tensor, and returns its ``.grad``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.reentrant import collected_grads, returned_grads
from ctxlint.model.function import FunctionClass
from ctxlint.model.syntax import code_of
from ctxlint.rules.base import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.interpreter.method import Method


class SavedInputGrad(Rule[FunctionClass]):
    """
    ## What it does
    Reports a `backward` that returns `x.grad`, where `x` is an input as it was saved, and `y.backward(...)` or a kernel
    fills that `.grad`; also `[x.grad for x in ctx.saved_tensors]`, if all saved tensors are inputs.

    ## Why is this bad?
    A saved input comes back as a part of the caller's graph. If it is a leaf, the inner `backward` adds to its `.grad`,
    and autograd adds the returned gradient again: it counts twice. If it is not, its `.grad` is `None`, and the inner
    `backward` runs, and frees, the caller's graph.

    A kernel that fills `.grad` itself also counts twice for a leaf. For any other tensor, what it adds stays there: two calls
    with that tensor, or a second `backward`, return a sum.

    ## Example
    ```python
    import torch


    class Triple(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 3

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                y = x * 3
            y.backward(grad_output)
            return x.grad
    ```

    ## Use instead
    ```python
    import torch


    class Triple(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 3

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            x = x.detach().requires_grad_()
            with torch.enable_grad():
                y = x * 3
            y.backward(grad_output)
            return x.grad
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Not reported if `backward` sets, resets or copies that `.grad` after the inner `backward`, or rebinds the name; without an
    inner `backward`, if it touches that `.grad` before it returns it, other than to make one where there is none.

    ## References
    - [torch.Tensor.grad](https://pytorch.org/docs/stable/generated/torch.Tensor.grad.html)
    """

    code = "CTX226"
    name = "saved-input-grad"
    subject = FunctionClass
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        backward = fn.judgeable_backward
        if backward is None:
            return
        for each in list(returned_grads(fn, backward))[:1]:
            name, grad = code_of(each.node.value), code_of(each.node)
            effect = _of_others(backward, grad) if each.inner else f"two calls on one tensor share `{grad}`"
            yield Finding(
                fn.span(each.node),
                f"`{name}` is the caller's own tensor, the saved input `{each.saved.name}`; a leaf silently gets its gradient twice, "
                f"and {effect}. Use `{name}.detach().requires_grad_()`.",
            )
        for node in collected_grads(fn, backward):
            name = code_of(node.value)
            yield Finding(
                fn.span(node),
                f"`{name}` is the caller's own tensor, a saved input; a leaf silently gets its gradient twice, and "
                f"{_of_others(backward, code_of(node))}. Use "
                f"`[{name}.detach().requires_grad_() for {name} in {backward.ctx_name}.saved_tensors]`.",
            )


def _of_others(backward: Method, grad: str) -> str:
    """What happens for a tensor that is no leaf: the inner ``backward`` runs on into the graph that it is part of."""
    kept = any("retain_graph" in code_of(each) for each in backward.nodes_of(cst.Arg))
    return (
        f"for any other tensor `{grad}` is `None`"
        if kept
        else "for any other, the caller's graph is run and freed here"
    )
