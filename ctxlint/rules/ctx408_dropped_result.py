"""CTX408: the result of a method of a tensor is dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fixes.assigning import assign_result
from ctxlint.model.analyses.dropped_results import dropped_results
from ctxlint.model.function import FunctionClass
from ctxlint.model.syntax import code_of
from ctxlint.rules.base import Finding, FixAvailability, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.analyses.dropped_results import DroppedResult


class DroppedResultOfMethod(Rule[FunctionClass]):
    """
    ## What it does
    Reports a statement that only calls a method which does not modify its tensor, such as `grad_output.contiguous()` or
    `grad_x.clamp(min=0)`.

    ## Why is this bad?
    The method returns a new tensor, which nothing takes. The tensor itself silently stays as it is: it is not contiguous for
    the kernel that gets it next, the gradient is not clipped.

    ## Example
    ```python
    import torch


    class GuidedReLU(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clamp(min=0)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            grad_x = grad_output * (x > 0)
            grad_x.clamp(min=0)
            return grad_x
    ```

    ## Use instead
    ```python
    import torch


    class GuidedReLU(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clamp(min=0)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            grad_x = grad_output * (x > 0)
            grad_x = grad_x.clamp(min=0)
            return grad_x
    ```

    ## Fix safety
    The fix assigns the result, and is unsafe because it changes what the method computes. There is no fix if no later
    statement reads the tensor, or if a loop binds its name.

    ## Known limits
    Only what certainly is a tensor counts: `to` and `cuda` of a module modify it. Methods that may be called for their errors
    or to wait for the device are not reported: `x.view(shape)`, `x.expand(shape)`, `x.cpu()`.

    ## References
    - [torch.Tensor](https://pytorch.org/docs/stable/tensors.html)
    """

    code = "CTX408"
    name = "dropped-result"
    subject = FunctionClass
    fix = FixAvailability.SOMETIMES

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for method in fn.own_protocol_methods:
            for dropped in dropped_results(method):
                yield Finding(fn.span(dropped.call), _message(dropped), fix=assign_result(fn, method, dropped))


def _message(dropped: DroppedResult) -> str:
    code = code_of(dropped.call)
    shown = code if len(code) < 60 and "\n" not in code else f"{code_of(dropped.call.func)}(...)"
    remedy = (
        f"Write `{dropped.name} = {shown}`" if dropped.wanted else "Drop the line, or use the result if that is meant"
    )
    return f"The result of `{shown}` is dropped; `{dropped.name}` silently stays as it is. {remedy}."
