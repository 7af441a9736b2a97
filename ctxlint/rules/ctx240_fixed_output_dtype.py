"""CTX240: an output is float32 whatever the dtype of the input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.fixed_dtypes import fixed_dtypes
from ctxlint.model.function import FunctionClass
from ctxlint.model.syntax import code_of
from ctxlint.rules.base import Category, Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class FixedOutputDtype(Rule[FunctionClass]):
    """
    ## What it does
    Reports a `forward` that returns a comparison of its input converted to float32, such as `(x > 0).float()`.

    ## Why is this bad?
    The output is float32 for a float64, float16 or bfloat16 input as well. In a model after `.double()` or `.half()`, the
    next layer raises `RuntimeError: mat1 and mat2 must have the same dtype`; elementwise operations silently compute in the
    wider dtype.

    ## Example
    ```python
    import torch


    class Spike(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return (x > 0).float()

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output / (1 + x.abs()) ** 2
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
            return grad_output / (1 + x.abs()) ** 2
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Off by default: many models use float32 only. Only comparisons count, as the result of other operations has the dtype of
    the input before it is converted on purpose.

    ## References
    - [Tensor attributes](https://pytorch.org/docs/stable/tensor_attributes.html)
    """

    code = "CTX240"
    name = "fixed-output-dtype"
    subject = FunctionClass
    category = Category.SUSPICIOUS
    default = False

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for each in fixed_dtypes(fn):
            written, name = code_of(each.node), each.input.name
            shown = f"`{written}`" if len(written) <= _LONGEST and "\n" not in written else "a comparison"
            yield Finding(
                fn.span(each.node),
                f"`forward` of `{fn.name}` returns {shown}, float32 whatever the dtype of `{name}`; for float64 or float16, the "
                f"next layer raises RuntimeError, or computes in another dtype. Use `.to({name}.dtype)`.",
            )


_LONGEST = 40
