"""CTX116: ``apply`` of a Function without ``forward``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class MissingForward(Rule[FunctionClass]):
    """
    ## What it does
    Reports a Function whose `apply` is used, although neither the class nor one of its bases defines `forward`.

    ## Why is this bad?
    `apply` raises `NotImplementedError: You must implement the forward function for custom autograd.Function.` Often the
    class is meant to derive from another Function, whose `forward` it shares.

    ## Example
    ```python
    import torch


    class Round(torch.autograd.Function):
        @staticmethod
        def backward(ctx, grad_output):
            return grad_output


    def rounded(x):
        return Round.apply(x)
    ```

    ## Use instead
    ```python
    import torch


    class Round(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.round()

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output


    def rounded(x):
        return Round.apply(x)
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Not reported for a class with subclasses, which may define `forward`, or if all calls in view are under `pytest.raises`.

    ## References
    - [torch.autograd.Function.forward](https://pytorch.org/docs/stable/generated/torch.autograd.Function.forward.html)
    """

    code = "CTX116"
    name = "missing-forward"
    subject = FunctionClass
    default = False

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        if fn.forward is not None or fn.has_subclass or not (fn.applied and fn.signature_judgeable):
            return
        if fn.legacy_state is not None or (fn.calls and all(call.expects_error for call in fn.calls)):
            return
        yield Finding(
            fn.span(fn.node.name),
            f"`{fn.name}` has no `forward`, but its `apply` is used; torch raises NotImplementedError at `apply`. "
            "Define `forward`, or derive the class from the Function that has it.",
        )
