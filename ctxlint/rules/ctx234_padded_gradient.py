"""CTX234: the gradient of a padded input has the padded size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.padded_gradients import padded_gradients
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    import libcst as cst

    from ctxlint.config.settings import Settings


class PaddedGradient(Rule[FunctionClass]):
    """
    ## What it does
    Reports a gradient that `backward` makes like a saved tensor, if `forward` has padded the input before it saved it, and nothing
    cuts the gradient to the size of the input.

    ## Why is this bad?
    A gradient must have the shape of its input. For inputs that `forward` pads, `backward` raises `RuntimeError: Function
    AttentionBackward returned an invalid gradient at index 0 - got [2, 8] but expected shape compatible with [2, 5]`. Tests with
    sizes that need no padding pass.

    ## Example
    ```python
    import torch
    import torch.nn.functional as F


    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            size = x.shape[-1]
            if size % 8 != 0:
                x = F.pad(x, [0, 8 - size % 8])
            ctx.save_for_backward(x)
            return (x * 2)[..., :size]

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            grad_x = torch.zeros_like(x)
            grad_x[..., : grad_output.shape[-1]] = grad_output * 2
            return grad_x[..., : x.shape[-1]]
    ```

    ## Use instead
    ```python
    import torch
    import torch.nn.functional as F


    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            size = x.shape[-1]
            if size % 8 != 0:
                x = F.pad(x, [0, 8 - size % 8])
            ctx.save_for_backward(x)
            return (x * 2)[..., :size]

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            grad_x = torch.zeros_like(x)
            grad_x[..., : grad_output.shape[-1]] = grad_output * 2
            return grad_x[..., : grad_output.shape[-1]]
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Shapes are not tracked in general. The gradient counts if `empty_like(x)` or the like makes it, and a slice takes at most
    `x.shape[-1]`, where `x` is the saved tensor. How large a slice by another size is, such as that of the incoming gradient, is unknown.

    ## References
    - [torch.nn.functional.pad](https://pytorch.org/docs/stable/generated/torch.nn.functional.pad.html)
    """

    code = "CTX234"
    name = "padded-gradient"
    subject = FunctionClass
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        backward = fn.counted_backward
        if backward is None:
            return
        found: dict[cst.CSTNode, list[tuple[str, cst.CSTNode]]] = {}
        for returned, entry, node in padded_gradients(fn, backward):
            found.setdefault(returned.node, []).append((entry.name, node))
        for each in found.values():
            names, several = quoted(name for name, _node in each), len(each) > 1
            yield Finding(
                fn.span(each[0][1]),
                f"`{backward.name}` of `{fn.name}` returns {'gradients' if several else 'a gradient'} for {names} in the size to which "
                f"`forward` pads {'them' if several else 'it'}; torch raises RuntimeError at backward where it does. Return "
                f"{'each' if several else 'it'} in the size of the input.",
            )
