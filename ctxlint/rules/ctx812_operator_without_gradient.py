"""CTX812: a module calls a custom operator that has no gradient, or one applies a Function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.function import SourceFile
from ctxlint.rules.base import Category, Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class OperatorWithoutGradient(Rule[SourceFile]):
    """
    ## What it does
    Reports an operator made by `torch.library.custom_op` or `triton_op` that the `forward` of a module calls, if nothing in
    the project registers a gradient for it. Also such an operator that returns what `apply` of a Function gives.

    ## Why is this bad?
    The result looks differentiable: it has a `grad_fn`. If a tensor that the operator gets requires a gradient, which
    holds for whatever comes from a layer, `loss.backward()` raises `RuntimeError: Trying to backward through
    demo.scale.default but no autograd formula was registered`. The gradient of an operator is not derived from its
    body, nor from a Function that it applies.

    ## Example
    ```python
    import torch


    @torch.library.custom_op("demo::scale", mutates_args=())
    def scale(x: torch.Tensor) -> torch.Tensor:
        return x * 2


    class Scale(torch.nn.Module):
        def forward(self, x):
            return scale(x)
    ```

    ## Use instead
    ```python
    import torch


    @torch.library.custom_op("demo::scale", mutates_args=())
    def scale(x: torch.Tensor) -> torch.Tensor:
        return x * 2


    def scale_backward(ctx, grad_output):
        return grad_output * 2


    scale.register_autograd(scale_backward)


    class Scale(torch.nn.Module):
        def forward(self, x):
            return scale(x)
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Off by default: a module for inference needs no gradient. Reported by default if the operator applies a Function that has
    one. Only calls by the name of the function count, and none in a
    method that tests for gradients or `training`, or under `torch.no_grad()`. Operators of a `torch.library.Library`, and
    those that modify an argument, are not checked.

    ## References
    - [torch.library](https://pytorch.org/docs/stable/library.html)
    """

    code = "CTX812"
    name = "operator-without-gradient"
    subject = SourceFile
    category = Category.SUSPICIOUS
    default = False
    default_in_view = True

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        for each in file.bare_operators if settings.torch.reach(2, 4) else ():
            if each.applied:
                message = (
                    f"`{each.function}`, a custom operator that applies `{each.applied}`, has no registered gradient, and torch does "
                    "not use that of the Function; if an input requires one, backward raises RuntimeError. "
                    f"Call `{each.function}.register_autograd(...)`."
                )
            else:
                message = (
                    f"`{each.function}`, a custom operator that a module calls, has no registered gradient; if a tensor passed to it "
                    f"requires one, backward raises RuntimeError. Call `{each.function}.register_autograd(...)`."
                )
            yield Finding(each.span, message, in_view=bool(each.applied))
