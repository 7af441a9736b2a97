"""CTX314: saving or marking in backward."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.functions import ContextCall, FunctionClass
from ctxlint.rules.base import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.settings import Settings

_ONLY_BEFORE_BACKWARD = (
    "save_for_backward",
    "save_for_forward",
    "mark_dirty",
    "mark_non_differentiable",
    "set_materialize_grads",
)


class LateSave(Rule[FunctionClass]):
    """
    ## What it does
    Reports `save_for_backward`, `save_for_forward`, `mark_dirty`, `mark_non_differentiable` and `set_materialize_grads`
    called in `backward` or `vjp`.

    ## Why is this bad?
    Autograd looks at what these calls left behind once, when forward returns. Later they have no effect, and no error
    tells.

    ## Example
    ```python
    import torch


    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad_output):
            ctx.set_materialize_grads(False)
            return grad_output * 2
    ```

    ## Use instead
    ```python
    import torch


    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * 2
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    A ctx that backward passes to a helper is not followed.

    ## References
    - [torch.autograd.function.FunctionCtx](https://pytorch.org/docs/stable/autograd.html#context-method-mixins)
    """

    code = "CTX314"
    name = "late-save"
    subject = FunctionClass

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        where = "forward" if fn.setup_context is None else "setup_context"
        for method in fn.own_protocol_methods:
            if method.name not in ("backward", "vjp"):
                continue
            for call in method.facts.of(ContextCall):
                if call.method in _ONLY_BEFORE_BACKWARD:
                    yield Finding(
                        fn.span(call.node),
                        f"`ctx.{call.method}` in `{method.name}` silently has no effect; torch looks at it only at `apply`. "
                        f"Call it in `{where}`.",
                    )
