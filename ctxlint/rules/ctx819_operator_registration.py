"""CTX819: setup_context of a custom operator as a positional argument."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fix import Applicability, Edit, Fix
from ctxlint.model.function import SourceFile
from ctxlint.rules.base import Finding, FixAvailability, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class OperatorRegistration(Rule[SourceFile]):
    """
    ## What it does
    Reports a call of `register_autograd` that passes `setup_context` as a positional argument.

    ## Why is this bad?
    `register_autograd` takes `setup_context` by keyword only. The call raises `TypeError: register_autograd() takes 2
    positional arguments but 3 were given` as soon as the file is imported.

    ## Example
    ```python
    import torch


    @torch.library.custom_op("demo::square", mutates_args=())
    def square(x: torch.Tensor) -> torch.Tensor:
        return x * x


    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)


    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * grad * x


    square.register_autograd(backward, setup_context)
    ```

    ## Use instead
    ```python
    import torch


    @torch.library.custom_op("demo::square", mutates_args=())
    def square(x: torch.Tensor) -> torch.Tensor:
        return x * x


    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)


    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * grad * x


    square.register_autograd(backward, setup_context=setup_context)
    ```

    ## Fix safety
    Safe: the call raises without it. Not offered for an argument in parentheses of its own.

    ## Known limits
    Only operators whose definition is in the project, by their name as a string, or if a single decorator makes them.

    ## References
    - [torch.library.register_autograd](https://pytorch.org/docs/stable/library.html#torch.library.register_autograd)
    """

    code = "CTX819"
    name = "operator-registration"
    subject = SourceFile
    fix = FixAvailability.SOMETIMES

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        for operator in file.operators if settings.torch.reach(2, 4) else ():
            span = operator.setup_by_position
            if span is None or not operator.registered_here:
                continue
            start = file.source.offset(span.start)
            written = file.source.text[start : file.source.offset(span.end)]
            shown = f"`setup_context={written}`" if written.isidentifier() else "`setup_context=`"
            fix = Fix("Pass it by keyword", (Edit(start, start, "setup_context="),), Applicability.SAFE)
            in_parentheses = not file.source.text[:start].rstrip().endswith(",")
            yield Finding(
                span,
                f"`register_autograd` takes `setup_context` by keyword only; this call for `{operator.name}` raises "
                f"TypeError. Write {shown}{'' if written.isidentifier() else ' in front of it'}.",
                None if in_parentheses else fix,
            )
