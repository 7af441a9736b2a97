"""CTX117: a Function that is applied under autocast multiplies tensors of two dtypes in backward."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.autocast_products import unlike_factors
from ctxlint.model.function import FunctionClass
from ctxlint.model.syntax import dotted
from ctxlint.rules.base import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class MissingCustomFwd(Rule[FunctionClass]):
    """
    ## What it does
    Reports a matrix product in `backward` of the incoming gradient with a saved parameter, in a Function without `custom_fwd` and
    `custom_bwd` whose `forward` returns a matrix product, if a function that calls `apply` runs under autocast, or asks for it.

    ## Why is this bad?
    Under autocast, `torch.mm` of float32 tensors in `forward` returns bfloat16 or float16, and so the incoming gradient has that dtype. The
    saved parameter is float32, and `backward` runs without autocast: `RuntimeError: expected m1 and m2 to have the same dtype`.

    ## Example
    ```python
    import torch


    class Linear(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.save_for_backward(x, weight)
            return torch.mm(x, weight)

        @staticmethod
        def backward(ctx, grad_output):
            x, weight = ctx.saved_tensors
            return torch.mm(grad_output, weight.t()), torch.mm(x.t(), grad_output)


    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(3, 3))

        def forward(self, x):
            with torch.autocast("cuda"):
                return Linear.apply(x, self.weight)
    ```

    ## Use instead
    ```python
    import torch
    from torch.amp import custom_bwd, custom_fwd


    class Linear(torch.autograd.Function):
        @staticmethod
        @custom_fwd(device_type="cuda")
        def forward(ctx, x, weight):
            ctx.save_for_backward(x, weight)
            return torch.mm(x, weight)

        @staticmethod
        @custom_bwd(device_type="cuda")
        def backward(ctx, grad_output):
            x, weight = ctx.saved_tensors
            return torch.mm(grad_output, weight.t()), torch.mm(x.t(), grad_output)


    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(3, 3))

        def forward(self, x):
            with torch.autocast("cuda"):
                return Linear.apply(x, self.weight)
    ```

    ## Fix safety
    There is no fix: converting the saved tensor may be what is wanted.

    ## Known limits
    Off by default: the caller may be run without autocast, although it tests for it.
    Only `torch.mm`, `torch.matmul` and `torch.bmm`, and parameters that a call in view passes. Not reported if `backward()` runs under
    the same `with`, or if the methods mention autocast, have other decorators, or convert what they multiply.

    ## References
    - [Automatic mixed precision: functions that need a particular dtype](https://pytorch.org/docs/stable/notes/amp_examples.html)
    """

    code = "CTX117"
    name = "missing-custom-fwd"
    subject = FunctionClass
    default = False
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        found = unlike_factors(fn) if fn.signature_judgeable else None
        if found is None:
            return
        product = dotted(found.product.node.func) if isinstance(found.product.node, cst.Call) else "the product"
        yield Finding(
            fn.span(found.product.node),
            f"`{product}` gets a gradient in the dtype of autocast if the call on {found.call.place} runs under it, and `{found.saved}` in its "
            f"own; torch raises RuntimeError unless they are the same. Add `custom_fwd` and `custom_bwd`.",
        )
