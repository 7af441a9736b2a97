"""CTX251: a gradient depends on the incoming gradient only through what is not linear in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.nonlinear_gradients import nonlinear_gradients
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.wording import names_of, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class NonlinearGradient(Rule[FunctionClass]):
    """
    ## What it does
    Reports a gradient in which the incoming gradient occurs only in a denominator, or in `exp`, `log`, `reciprocal` or `rsqrt`.

    ## Why is this bad?
    A gradient is linear in the incoming one, by the chain rule: if the loss is multiplied by 3, so are all gradients, and where the
    output does not matter for the loss, there is none. `1 / (1 + grad_output)` is 1 there, and becomes smaller as the incoming
    gradient grows. Such a formula is usually meant for the input, and the factor `grad_output` has been forgotten.

    ## Example
    ```python
    import torch


    class Gate(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return (x >= 1).float()

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return (1 / (grad_output + 1)).masked_fill(x >= 1, 0)
    ```

    ## Use instead
    ```python
    import torch


    class Gate(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return (x >= 1).float()

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return (grad_output / (x + 1)).masked_fill(x >= 1, 0)
    ```

    ## Fix safety
    There is no fix: only the author knows the formula.

    ## Known limits
    Off by default: what undoes such an operation is not always known.
    Not reported if the incoming gradient also occurs elsewhere in the gradient, as in `grad / grad.norm()` and `grad.sign()`,
    which may be on purpose, in loops, or if a second such operation may undo the first.

    ## References
    - [Extending torch.autograd](https://pytorch.org/docs/stable/notes/extending.html)
    """

    code = "CTX251"
    name = "nonlinear-gradient"
    subject = FunctionClass
    default = False
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        backward = fn.counted_backward
        found = list(nonlinear_gradients(fn)) if backward is not None else []
        for node in {bent.node: None for _index, bent in found}:
            slots = {index: bent for index, bent in found if bent.node is node}
            bent = next(iter(slots.values()))
            yield Finding(
                fn.span(node),
                f"`backward` of `{fn.name}` uses `{bent.incoming}` only in {bent.how}; the gradient for {quoted(names_of(fn, slots))} "
                f"is silently not proportional to it, and twice the loss does not double it. Multiply by `{bent.incoming}`.",
            )
