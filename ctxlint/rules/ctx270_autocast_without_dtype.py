"""CTX270: backward enters the autocast of forward again, but in the dtype that is the default."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.autocast_reruns import autocast_reruns
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.related import at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class AutocastWithoutDtype(Rule[FunctionClass]):
    """
    ## What it does
    Reports `torch.cuda.amp.autocast(ctx.flag)`, or that of the CPU, in `backward` if the flag is what
    `torch.is_autocast_enabled()` has returned in `forward`.

    ## Why is this bad?
    The flag says that `forward` has run under autocast, but not in which dtype. `torch.cuda.amp.autocast` without a dtype
    means float16, and `torch.cpu.amp.autocast` bfloat16, whatever autocast the caller has entered. A model that trains
    with `torch.autocast("cuda", dtype=torch.bfloat16)` is computed again in float16, where large values overflow.

    ## Example
    ```python
    import torch


    class Checkpoint(torch.autograd.Function):
        @staticmethod
        def forward(ctx, function, x):
            ctx.function = function
            ctx.autocast = torch.is_autocast_enabled()
            ctx.save_for_backward(x)
            return function(x)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            x = x.detach().requires_grad_()
            with torch.enable_grad(), torch.cuda.amp.autocast(ctx.autocast):
                y = ctx.function(x)
            return None, torch.autograd.grad(y, x, grad_output)[0]
    ```

    ## Use instead
    ```python
    import torch


    class Checkpoint(torch.autograd.Function):
        @staticmethod
        def forward(ctx, function, x):
            ctx.function = function
            ctx.autocast = torch.is_autocast_enabled("cuda")
            ctx.dtype = torch.get_autocast_dtype("cuda")
            ctx.save_for_backward(x)
            return function(x)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            x = x.detach().requires_grad_()
            with torch.enable_grad(), torch.autocast("cuda", ctx.dtype, ctx.autocast):
                y = ctx.function(x)
            return None, torch.autograd.grad(y, x, grad_output)[0]
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Not reported for `torch.autocast`, which takes the dtype that is set where `backward` runs, or if a method mentions a dtype
    of 16 bits or that of autocast.

    ## References
    - [torch.autocast](https://pytorch.org/docs/stable/amp.html#torch.autocast)
    - [torch.utils.checkpoint](https://pytorch.org/docs/stable/checkpoint.html)
    """

    code = "CTX270"
    name = "autocast-without-dtype"
    subject = FunctionClass
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for found in autocast_reruns(fn):
            other = "bfloat16" if found.dtype == "float16" else "float16"
            yield Finding(
                fn.span(found.node),
                f"`backward` of `{fn.name}` enters autocast with no dtype, which is {found.dtype}; if `forward` ran under "
                f"autocast in {other}, this silently computes in another dtype. Pass the "
                f'`torch.get_autocast_dtype("{found.device}")` of `forward`.',
                related=at(fn, [found.written], "no dtype is kept here"),
            )
