"""CTX103: forward takes a ctx although there is a ``setup_context``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fixes.receiver_parameters import drop_ctx
from ctxlint.model.function import FunctionClass, Style
from ctxlint.rules.base import Finding, FixAvailability, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class ForwardTakesCtx(Rule[FunctionClass]):
    """
    ## What it does
    Reports a `forward` that takes the ctx although the class or one of its bases defines `setup_context`.

    ## Why is this bad?
    If `setup_context` is defined, torch calls `forward` with the inputs only. The first input is bound to `ctx`, and
    the last parameter gets no value: `apply` raises `TypeError: missing a required argument: 'x'` (before torch 2.2:
    `F.forward() missing 1 required positional argument: 'x'`). If the last parameter has a default, nothing raises:
    `ctx` is the first tensor, and every input is shifted by one.

    ## Example
    ```python
    import torch


    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * 2
    ```

    ## Use instead
    ```python
    import torch


    class Double(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * 2
    ```

    ## Fix safety
    Safe: the parameter is removed if `forward` does not use it. Unsafe if `forward` has defaults or `*args`, because a
    call may then work by accident, and if `target-torch` includes releases before 2.0, which do not know
    `setup_context`. There is no fix if `forward` uses the ctx: that code belongs in `setup_context`.

    ## Known limits
    Not reported if `target-torch` ends before 2.0. A parameter counts as the ctx if it is used as one, if it is
    named `ctx` and `forward` does not compute with it, or if it is named `self` and never used.

    ## References
    - [Extending torch.func with autograd.Function](https://pytorch.org/docs/stable/notes/extending.func.html)
    """

    code = "CTX103"
    name = "forward-takes-ctx"
    subject = FunctionClass
    fix = FixAvailability.SOMETIMES

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        forward, setup = fn.forward, fn.setup_context
        if not fn.signature_judgeable or fn.style is not Style.SETUP_CONTEXT or forward is None or setup is None:
            return
        if forward.ctx is None or not forward.signature_known or (forward.inherited and setup.inherited):
            return
        if not settings.torch.reach(2, 0):
            return
        ctx = forward.ctx.name
        shifts = forward.variadic is not None or any(param.has_default for param in forward.own_params)
        effect = (
            f", so `{ctx}` is the first input, and every input is shifted by one"
            if shifts
            else " and raises TypeError at `apply`"
        )
        if forward.inherited:
            yield Finding(
                fn.span(setup.node.name),
                f"`{fn.name}` defines `setup_context`, but its inherited `forward` takes `{ctx}`; torch passes only the "
                f"inputs{effect}. Define a `forward` without `{ctx}` too.",
            )
            return
        used = ctx in forward.facts.names_read
        advice = (
            f"Move the code that uses `{ctx}` to `setup_context`, and drop the parameter" if used else f"Drop `{ctx}`"
        )
        yield Finding(
            fn.span(forward.node.name),
            f"`forward` of `{fn.name}` takes `{ctx}` although `setup_context` is defined; torch passes only the "
            f"inputs{effect}. {advice}.",
            fix=None if used else drop_ctx(fn, forward, ignored_setup_context=settings.torch.fall_below(2, 0)),
        )
