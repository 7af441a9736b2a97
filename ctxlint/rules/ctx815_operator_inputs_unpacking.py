"""CTX815: setup_context of a custom operator unpacks another number of inputs than the operator has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.input_unpackings import INPUTS, unfit_unpackings
from ctxlint.model.function import SourceFile
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.wording import counted, listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class OperatorInputsUnpacking(Rule[SourceFile]):
    """
    ## What it does
    Reports a `setup_context` given to `register_autograd` that unpacks `inputs` into another number of names than the
    operator has positional parameters.

    ## Why is this bad?
    Torch passes all positional inputs, also those with defaults. The unpacking raises `ValueError: not enough values to
    unpack (expected 3, got 2)`, or `too many values to unpack (expected 2)`, in each call that needs a gradient.
    `opcheck` with inputs that need none does not find it.

    ## Example
    ```python
    import torch


    @torch.library.custom_op("demo::scale", mutates_args=())
    def scale(x: torch.Tensor, factor: float, bias: float) -> torch.Tensor:
        return x * factor + bias


    def setup_context(ctx, inputs, output):
        x, ctx.factor = inputs


    def backward(ctx, grad):
        return grad * ctx.factor, None, None


    scale.register_autograd(backward, setup_context=setup_context)
    ```

    ## Use instead
    ```python
    import torch


    @torch.library.custom_op("demo::scale", mutates_args=())
    def scale(x: torch.Tensor, factor: float, bias: float) -> torch.Tensor:
        return x * factor + bias


    def setup_context(ctx, inputs, output):
        x, ctx.factor, bias = inputs


    def backward(ctx, grad):
        return grad * ctx.factor, None, None


    scale.register_autograd(backward, setup_context=setup_context)
    ```

    ## Fix safety
    There is no fix: only the author knows which name is for which input.

    ## Known limits
    Only operators whose definition is in the project. Not reported where another statement decides whether the line
    runs, such as `if len(inputs) == 2:` or `try:`.

    ## References
    - [torch.library.register_autograd](https://pytorch.org/docs/stable/library.html#torch.library.register_autograd)
    """

    code = "CTX815"
    name = "operator-inputs-unpacking"
    subject = SourceFile

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        for operator in file.operator_setups if settings.torch.reach(2, 4) else ():
            setup, names = operator.setup_context, [each.name for each in operator.inputs]
            if setup is None:
                continue
            for each in unfit_unpackings(setup, INPUTS, len(names)):
                count = f"{'at least ' if each.starred else ''}{counted(each.names, 'input')}"
                yield Finding(
                    operator.span(each.node),
                    f"`{setup.node.name.value}` unpacks {count} but `{operator.name}` takes "
                    f"{listed(len(names), 'input', names)}; it raises ValueError in a call that needs a gradient. "
                    "Unpack each of them.",
                )
