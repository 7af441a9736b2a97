"""CTX273: backward runs a function of forward outside of the autocast that forward may run under."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.uncast_reruns import uncast_reruns
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Category, Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class UnrestoredAutocast(Rule[FunctionClass]):
    """
    ## What it does
    Reports a Function that gets a module or a function and runs it in `backward` to differentiate it, if no method mentions
    autocast.

    ## Why is this bad?
    torch recommends to call `backward()` outside of autocast. What `forward` has computed under autocast is then computed
    again without it: in float32, which takes more time and memory and gives the gradient of other results. An operation
    with a tensor that autocast has made and a parameter of another dtype raises
    `RuntimeError: expected m1 and m2 to have the same dtype`. `torch.utils.checkpoint` enters the autocast of `forward` again.

    ## Example
    ```python
    import torch


    class Checkpoint(torch.autograd.Function):
        @staticmethod
        def forward(ctx, function, x):
            ctx.function = function
            ctx.save_for_backward(x)
            return function(x)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            x = x.detach().requires_grad_()
            with torch.enable_grad():
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
    There is no fix: each type of device has an autocast of its own.

    ## Known limits
    Off by default: many programs use no autocast. Only calls by the attribute of ctx that keeps the input, of which the result
    gets a name and is differentiated, and that `forward` calls or passes on too, or whose result it may get. Not reported if a method has an unknown decorator, or enters a context manager
    that is not one of torch for grad mode, devices, random numbers or profiling.

    ## References
    - [torch.autocast](https://pytorch.org/docs/stable/amp.html#torch.autocast)
    - [torch.utils.checkpoint](https://pytorch.org/docs/stable/checkpoint.html)
    """

    code = "CTX273"
    name = "unrestored-autocast"
    subject = FunctionClass
    category = Category.SUSPICIOUS
    default = False
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        found = uncast_reruns(fn)
        if found is not None:
            fact = f"`backward` of `{fn.name}` runs `{found.input.name}` without the autocast of `forward`"
            effect = "if there is one, this silently computes in another dtype, or raises RuntimeError"
            remedy = "Keep its state in `forward`, and enter it"
            yield Finding(fn.span(found.node), f"{fact}; {effect}. {remedy}.")
