"""CTX253: a matrix product in backward of two dtypes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.mixed_products import mixed_products
from ctxlint.model.function import FunctionClass
from ctxlint.model.syntax import code_of
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.wording import fitting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class MixedDtypes(Rule[FunctionClass]):
    """
    ## What it does
    Reports a matrix product in `backward` of the incoming gradient with a tensor of another dtype, if `forward` converts the output to one
    dtype, and what is multiplied to another.

    ## Why is this bad?
    An incoming gradient has the dtype of its output. `torch.mm`, `torch.matmul` and `@` promote no dtypes: `RuntimeError: expected m1 and m2
    to have the same dtype, but got: float != c10::Half`. It works only where `backward()` is called under autocast.

    ## Example
    ```python
    import torch


    class HalfLinear(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            x, weight = x.half(), weight.half()
            ctx.save_for_backward(x, weight)
            return (x @ weight.t()).float()

        @staticmethod
        def backward(ctx, grad_output):
            x, weight = ctx.saved_tensors
            return grad_output @ weight, grad_output.t() @ x
    ```

    ## Use instead
    ```python
    import torch


    class HalfLinear(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            x, weight = x.half(), weight.half()
            ctx.save_for_backward(x, weight)
            return (x @ weight.t()).float()

        @staticmethod
        def backward(ctx, grad_output):
            x, weight = ctx.saved_tensors
            grad_output = grad_output.to(weight.dtype)
            return grad_output @ weight, grad_output.t() @ x
    ```

    ## Fix safety
    There is no fix: converting the gradient or the other tensor gives another precision.

    ## Known limits
    Off by default: `backward()` may be called under autocast, and `forward` may have been left by then with parameters that are converted
    in place. Only `torch.mm`, `torch.matmul`, `torch.bmm`, the methods of the same names, and `@`. Only dtypes that a conversion names, with views and
    operators between it and the product. Not reported under a test, `try` or `with` other than `torch.no_grad()`, or if `backward` has a decorator such as `custom_bwd`, or mentions autocast.

    ## References
    - [Automatic mixed precision: functions that need a particular dtype](https://pytorch.org/docs/stable/notes/amp_examples.html)
    """

    code = "CTX253"
    name = "mixed-dtypes"
    subject = FunctionClass
    default = False
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for each in mixed_products(fn):
            other, name = " ".join(code_of(each.other).split()), each.gradient
            has = f"`backward` of `{fn.name}` multiplies `{name}`, which has the dtype of its output, {each.has}"
            remedy = f"Write `{name}.{_CONVERSIONS[each.wants]}()`."
            messages = (
                f"{has}, by {what}, which is {each.wants}; torch raises RuntimeError outside of autocast. {remedy}"
                for what in (f"`{other}`", "a tensor")
            )
            yield Finding(fn.span(each.node), fitting(*messages))
            return


_CONVERSIONS = {"float32": "float", "float64": "double", "float16": "half", "bfloat16": "bfloat16"}
