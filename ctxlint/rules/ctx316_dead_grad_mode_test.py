"""CTX316: ``torch.is_grad_enabled()`` tested where it is always False."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.grad_mode_tests import grad_mode_tests
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class DeadGradModeTest(Rule[FunctionClass]):
    """
    ## What it does
    Reports `torch.is_grad_enabled()` called inside `forward` or `setup_context`.

    ## Why is this bad?
    Autograd runs both with grad mode off, so the result is always `False`, whatever the caller's grad mode is. Code
    such as `if torch.is_grad_enabled(): ctx.save_for_backward(x)` never saves, and `backward` raises because nothing
    was saved.

    ## Example
    ```python
    import torch


    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            if torch.is_grad_enabled():
                ctx.save_for_backward(x)
            return x**2

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * 2 * x
    ```

    ## Use instead
    ```python
    import torch


    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, keep):
            if keep:
                ctx.save_for_backward(x)
            return x**2

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * 2 * x, None


    def square(x):
        return Square.apply(x, torch.is_grad_enabled())
    ```

    ## Fix safety
    There is no fix. `ctx.needs_input_grad` does not say what the mode is: it is true under `torch.no_grad()` as well.

    ## Known limits
    Not reported in a method that switches grad mode on itself, or for `assert not torch.is_grad_enabled()`, which
    states the fact.

    ## References
    - [Extending torch.autograd](https://pytorch.org/docs/stable/notes/extending.html)
    """

    code = "CTX316"
    name = "dead-grad-mode-test"
    subject = FunctionClass

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        if not fn.signature_judgeable or fn.called_directly & {"forward", "setup_context"}:
            return
        for method in fn.own_protocol_methods:
            if not method.runs_before_backward or fn.backward is None:
                continue
            for call in grad_mode_tests(method.facts):
                yield Finding(
                    fn.span(call.node),
                    f"`torch.is_grad_enabled()` is always `False` in `{method.name}`; torch runs it with grad "
                    "mode off. Call it before `apply`, and pass the result as an input.",
                )
