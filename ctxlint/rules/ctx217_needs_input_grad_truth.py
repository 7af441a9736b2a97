"""CTX217: ``ctx.needs_input_grad`` itself as a condition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.function import FunctionClass
from ctxlint.model.interpreter.events import FlagsTested
from ctxlint.rules.base import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class NeedsInputGradTruth(Rule[FunctionClass]):
    """
    ## What it does
    Reports `ctx.needs_input_grad` used as a condition by itself, as in `if ctx.needs_input_grad:`.

    ## Why is this bad?
    It is a tuple with one flag for each input. A non-empty tuple is true whatever its flags are, so the branch always
    runs.

    ## Example
    ```python
    import torch


    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad_output):
            grad_x = None
            if ctx.needs_input_grad:
                grad_x = grad_output * 2
            return grad_x
    ```

    ## Use instead
    ```python
    import torch


    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad_output):
            grad_x = None
            if ctx.needs_input_grad[0]:
                grad_x = grad_output * 2
            return grad_x
    ```

    ## Fix safety
    There is no fix: only the author knows which input is meant, or whether `any(...)` is.

    ## Known limits
    A name bound to the tuple counts only within the same method.

    ## References
    - [Extending torch.autograd](https://pytorch.org/docs/stable/notes/extending.html)
    """

    code = "CTX217"
    name = "needs-input-grad-truth"
    subject = FunctionClass

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for method in fn.own_protocol_methods:
            flags = f"{method.ctx_name}.needs_input_grad"
            for event in method.facts.of(FlagsTested):
                yield Finding(
                    fn.span(event.node),
                    f"`{flags}` is a tuple with one flag for each input; as a condition, it is always true. Test "
                    f"`{flags}[i]` or `any({flags})`.",
                )
