"""CTX250: backward runs a function of forward again, with other random numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.redrawn_dropout import redrawn_dropout
from ctxlint.model.analyses.reruns import reruns
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Category, Finding, Rule
from ctxlint.rules.wording import fitting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class UnrestoredRandomState(Rule[FunctionClass]):
    """
    ## What it does
    Reports a Function that gets a module or a function, runs it in `forward`, and runs it again in `backward` to
    differentiate it, if neither mentions a state of random numbers. Reported by default is a `backward` that passes the
    probability of a dropout to `_flash_attn_backward` of `flash_attn` without a random state, itself or in a function.

    ## Why is this bad?
    A dropout in it drops other elements the second time. The gradient is then that of another function than the one that
    `forward` has computed: an element that was dropped gets a gradient, and one that was kept may get none. No error is
    raised, and `gradcheck` of a function without dropout passes. `torch.utils.checkpoint` restores the state. Kernels of
    attention do not store what they drop: they draw it again, from the state that `forward` returned or from another one.

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
            ctx.rng_state = torch.get_rng_state()
            ctx.save_for_backward(x)
            return function(x)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            x = x.detach().requires_grad_()
            with torch.random.fork_rng(), torch.enable_grad():
                torch.set_rng_state(ctx.rng_state)
                y = ctx.function(x)
            return None, torch.autograd.grad(y, x, grad_output)[0]
    ```

    ## Fix safety
    There is no fix: each device has a state of its own. `torch.get_rng_state()` is that of the CPU only; random numbers of
    a GPU need `torch.cuda.get_rng_state()` as well.

    ## Known limits
    Off by default but for such attention: a function without dropout or noise gives the same results again. Only functions that `forward` calls by
    the name of the input, or by the attribute of ctx that keeps it, are known, not those that others call for it. Not
    reported if the ctx is passed to unknown code, or if a method enters a context manager that is not one of torch for grad
    mode, autocast or devices. Calls with a probability are followed into one
    function of the project. They are not reported if something may refuse a dropout, or treats random numbers.

    ## References
    - [torch.utils.checkpoint](https://pytorch.org/docs/stable/checkpoint.html)
    - [torch.random.fork_rng](https://pytorch.org/docs/stable/random.html#torch.random.fork_rng)
    """

    code = "CTX250"
    name = "unrestored-random-state"
    subject = FunctionClass
    category = Category.SUSPICIOUS
    default = False
    default_in_view = True
    about_backward = True

    def may_be_in_view(self, subject: FunctionClass) -> bool:
        return any("dropout" in each.name for each in subject.inputs)

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        found = reruns(fn)
        if found is not None:
            fact = f"`backward` of `{fn.name}` runs `{found.input.name}` again without the random state of `forward`"
            effect = "if it draws random numbers, as dropout does, gradients are silently wrong"
            remedies = ("Keep and restore `torch.get_rng_state()`, and that of GPUs", _SHORTER)
            yield Finding(fn.span(found.node), fitting(*(f"{fact}; {effect}. {each}." for each in remedies)))
        redrawn = redrawn_dropout(fn)
        if redrawn is not None:
            drop, by = redrawn.input.name, f"`{redrawn.by}`" if redrawn.by else f"`backward` of `{fn.name}`"
            fact = f"{by} passes `{drop}` to `{redrawn.callee}` without a random state"
            effect = "unless it is 0, that drops other elements, and gradients are silently wrong"
            shorter = "unless it is 0, gradients are silently wrong"
            save = "Save the `rng_state` of `forward`, and pass it"
            message = fitting(*(f"{fact}; {each}. {save}." for each in (effect, shorter)))
            yield Finding(fn.span(redrawn.node), message, in_view=True)


_SHORTER = "Keep and restore that of each device"
