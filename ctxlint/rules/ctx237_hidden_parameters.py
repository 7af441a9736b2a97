"""CTX237: backward gives the parameters in an input that is not a tensor their gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.hidden_parameters import hidden_parameters
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Category, Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class HiddenParameters(Rule[FunctionClass]):
    """
    ## What it does
    Reports a Function that gets a module, a function or a list of blocks, and whose `backward` leaves the gradients of
    the parameters in it to an inner `backward()`, or to a method of the module.

    ## Why is this bad?
    Autograd sees the tensors that `apply` gets, not the parameters of a module. In the first layer, where the data
    requires no gradient, `backward` never runs, and the parameters get no gradient. If the loss depends on nothing else,
    `loss.backward()` raises `RuntimeError: element 0 of tensors does not require grad`.

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
            y.backward(grad_output)
            return None, x.grad
    ```

    ## Use instead
    ```python
    import torch


    class Checkpoint(torch.autograd.Function):
        @staticmethod
        def forward(ctx, function, x, dummy):
            ctx.function = function
            ctx.save_for_backward(x)
            return function(x)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            x = x.detach().requires_grad_()
            with torch.enable_grad():
                y = ctx.function(x)
            y.backward(grad_output)
            return None, x.grad, None


    def checkpoint(function, x):
        return Checkpoint.apply(function, x, torch.empty(0, requires_grad=True))
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Off by default: a function may hold no parameters, and callers may always pass a tensor that requires a gradient. Not
    reported if an input is unused or called `dummy`, `weight` or the like, or if a call in view passes a parameter.

    ## References
    - [torch.utils.checkpoint](https://pytorch.org/docs/stable/checkpoint.html)
    - [Extending torch.autograd](https://pytorch.org/docs/stable/notes/extending.html)
    """

    code = "CTX237"
    name = "hidden-parameters"
    subject = FunctionClass
    category = Category.SUSPICIOUS
    default = False
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        found = hidden_parameters(fn)
        if found is not None:
            yield Finding(
                fn.span(found.node),
                f"`backward` of `{fn.name}` gives the parameters behind `{found.input.name}` their gradients; if no tensor passed to "
                f"`apply` requires one, it never runs, and they get none. Pass one that does as well, such as a dummy.",
            )
