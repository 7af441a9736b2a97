"""CTX813: a custom operator asks whether grad mode is on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.function import SourceFile
from ctxlint.rules.base import Category, Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class OperatorGradModeTest(Rule[SourceFile]):
    """
    ## What it does
    Reports `torch.is_grad_enabled()` in a function under `torch.library.custom_op` or `triton_op`.

    ## Why is this bad?
    Torch runs the function below autograd. If an input requires a gradient, the result is `False`, whatever the
    caller's grad mode is, and with or without `register_autograd`. It is `True` only if no input requires a gradient.
    So the operator never keeps what its backward needs: the backward silently computes with what is missing, or raises.

    ## Example
    ```python
    import torch


    @torch.library.custom_op("demo::pool", mutates_args=())
    def pool(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values, where = x.max(-1)
        if torch.is_grad_enabled():
            return values, where
        return values, where.new_empty(0)
    ```

    ## Use instead
    ```python
    import torch


    @torch.library.custom_op("demo::pool", mutates_args=())
    def pool(x: torch.Tensor, keep: bool) -> tuple[torch.Tensor, torch.Tensor]:
        values, where = x.max(-1)
        if keep:
            return values, where
        return values, where.new_empty(0)


    def pooled(x):
        return pool(x, torch.is_grad_enabled() and x.requires_grad)[0]
    ```

    ## Fix safety
    There is no fix: every call needs another argument, or the operator does the same work in both cases.

    ## Known limits
    Off by default: an operator without tensors has the grad mode of its caller, and others raise on purpose. Not
    reported in functions that the operator calls, in an operator that switches grad mode on itself, for `assert not
    torch.is_grad_enabled()`, or for operators with `tags`, a `schema` or further decorators. In `forward` of a
    Function, see CTX316.

    ## References
    - [torch.library.custom_op](https://pytorch.org/docs/stable/library.html#torch.library.custom_op)
    """

    code = "CTX813"
    name = "operator-grad-mode-test"
    subject = SourceFile
    category = Category.SUSPICIOUS
    default = False

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        for each in file.grad_mode_tests if settings.torch.reach(2, 4) else ():
            yield Finding(
                each.span,
                f"`torch.is_grad_enabled()` is `False` in the operator `{each.function}` if an input requires a gradient; "
                f"torch runs it below autograd. Call it before the operator, and pass the result as an input.",
            )
