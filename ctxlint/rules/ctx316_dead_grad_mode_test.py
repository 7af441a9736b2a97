"""CTX316: ``torch.is_grad_enabled()`` tested where it is always False."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.grad_mode_tests import grad_mode_tests
from ctxlint.model.function import FunctionClass
from ctxlint.model.syntax import parents_below
from ctxlint.rules.base import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.function import GenericCall


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
        def forward(ctx, x):
            if ctx.needs_input_grad[0]:
                ctx.save_for_backward(x)
            return x**2

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * 2 * x
    ```

    ## Fix safety
    There is no fix. To use the caller's grad mode, read it before `apply` and pass it as an input.

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
                    f"mode off. {_remedy(fn, call)} before `apply`, and pass the result as an input.",
                )


def _remedy(fn: FunctionClass, call: GenericCall) -> str:
    """The start of the remedy: what is saved for backward may depend on the inputs, anything else only on the mode."""
    stored = (*fn.saves, *fn.context_writes)
    decides = any(
        guard.test is not None and call.node in (guard.test, *parents_below(guard.test))
        for each in stored
        for guard in each.guards
    )
    return f"Test `any({fn.storing_ctx}.needs_input_grad)`, or call `is_grad_enabled`" if decides else "Call it"
