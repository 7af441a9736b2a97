"""CTX115: setup_context unpacks another number of inputs than forward takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.input_unpackings import unfit_unpackings
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.related import at
from ctxlint.rules.wording import all_inputs, counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class InputsUnpacking(Rule[FunctionClass]):
    """
    ## What it does
    Reports a `setup_context` that unpacks `inputs` into another number of names than `forward` has parameters.

    ## Why is this bad?
    Torch passes every input of `forward`, also those that the call leaves out. The unpacking raises `ValueError: not
    enough values to unpack (expected 3, got 2)`, or `too many values to unpack (expected 2)`, whenever the Function is
    applied.

    ## Example
    ```python
    import torch


    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(x, scale, mode):
            return x * scale

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.scale = inputs

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * ctx.scale, None, None
    ```

    ## Use instead
    ```python
    import torch


    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(x, scale, mode):
            return x * scale

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.scale, mode = inputs

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * ctx.scale, None, None
    ```

    ## Fix safety
    There is no fix: only the author knows which name is for which input.

    ## Known limits
    Not reported for a `forward` with `*args`, for one with defaults before torch 2.2, which leaves these inputs
    out, and where another statement decides whether the line runs, such as `if len(inputs) == 2:` or `try:`.

    ## References
    - [torch.autograd.Function.setup_context](https://pytorch.org/docs/stable/generated/torch.autograd.Function.setup_context.html)
    """

    code = "CTX115"
    name = "inputs-unpacking"
    subject = FunctionClass

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        forward, setup = fn.forward, fn.setup_context
        if forward is None or setup is None or setup.inherited or len(setup.positional) < 2:
            return
        if not fn.signature_judgeable or not forward.signature_known or fn.variadic_inputs is not None:
            return
        if fn.required_inputs < len(fn.inputs) and not settings.torch.reach(2, 2):
            return
        for each in unfit_unpackings(setup, setup.positional[0].name, len(fn.inputs)):
            names = f"{'at least ' if each.starred else ''}{counted(each.names, 'input')}"
            yield Finding(
                fn.span(each.node),
                f"`setup_context` of `{fn.name}` unpacks {names} but `forward` takes {all_inputs(fn)}; it raises "
                f"ValueError at `apply`. Unpack each input of `forward`.",
                related=at(fn, (forward.node.name,), "the inputs are the parameters of `forward`"),
            )
