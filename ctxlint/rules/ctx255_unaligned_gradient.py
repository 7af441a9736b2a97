"""CTX255: an incoming gradient lacks a dimension of the tensor that it is multiplied with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.unaligned_products import unaligned_products
from ctxlint.model.function import FunctionClass
from ctxlint.model.syntax import code_of
from ctxlint.rules.base import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.analyses.unaligned_products import UnalignedProduct


class UnalignedGradient(Rule[FunctionClass]):
    """
    ## What it does
    Reports a product of an incoming gradient with a tensor that has more dimensions, if the output is a value for each sample of an
    input, or a sum along another dimension than the first.

    ## Why is this bad?
    Torch aligns the last dimensions of two tensors. The gradient of a loss for each of `n` samples has the shape `[n]`. Times a tensor of
    the shape `[n, c]`, it raises `RuntimeError: The size of tensor a (5) must match the size of tensor b (2) at non-singleton dimension 1`;
    if `n` and `c` are equal, each column is multiplied by the gradient of another sample, silently. A loss that is only ever averaged hides this.

    ## Example
    ```python
    import torch


    class Energy(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.square().sum(dim=1)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * x * 2
    ```

    ## Use instead
    ```python
    import torch


    class Energy(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.square().sum(dim=1)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output.unsqueeze(1) * x * 2
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Off by default where the output has that shape only on some paths, as callers may never take them. Reported by default if `forward` itself names
    the choice, as `"none"` in the list of those that it accepts, and nothing refuses it. Shapes are not tracked in general. The output must be new memory of one size, the first of an input, or a reduction of a tensor
    with the shape of an input along a literal dimension; code must show that the input has two dimensions or more, as `x.shape[1]` does.
    Not reported if `backward` asks for the shape of the gradient, or multiplies under a condition other than `ctx.needs_input_grad`, and if `forward` demands that two sizes of the input are equal, or that one is 1.

    ## References
    - [Broadcasting semantics](https://pytorch.org/docs/stable/notes/broadcasting.html)
    """

    code = "CTX255"
    name = "unaligned-gradient"
    subject = FunctionClass
    default = False
    default_in_view = True
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for each in unaligned_products(fn):
            yield Finding(fn.span(each.node), _message(each), in_view=each.shown)


def _message(product: UnalignedProduct) -> str:
    gradient, paths = product.gradient, "" if product.always else " on some paths"
    if product.missing is None:
        lacks = f"has one dimension{paths}, with the last one of `{product.input}`"
        known, fill = product.dimensions > 0, f"reshape(-1{', 1' * (product.dimensions - 1)})"
    else:
        lacks = f"lacks dimension {product.missing} of `{product.input}`{paths}, with its last ones"
        known, fill = product.always, f"unsqueeze({product.missing})"
    remedy = f"Write `{gradient}.{fill}`" if known else f"Add dimensions of size 1 to `{gradient}`"
    bare = product.node.with_changes(lpar=(), rpar=()) if isinstance(product.node, cst.BaseExpression) else product.node
    code = " ".join(code_of(bare).split())
    subject = f"`{code}`" if len(code) <= _LONGEST else "This product"
    return f"{subject} aligns `{gradient}`, which {lacks}; it raises RuntimeError, or is silently wrong if the sizes fit. {remedy}."


_LONGEST = 28
