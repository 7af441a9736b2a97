"""CTX259: backward reads a parameter that torch never passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.unpassed_parameters import unpassed_parameters
from ctxlint.model.function import FunctionClass
from ctxlint.model.syntax import code_of
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class UnpassedParameter(Rule[FunctionClass]):
    """
    ## What it does
    Reports a parameter of `backward` behind the incoming gradients that has the name of an input such as a size or a flag, and a
    default.

    ## Why is this bad?
    Torch passes `backward` one gradient for each output, and nothing else. Such a parameter always has its default. Where
    `forward` gets another value, the gradient is silently that of another function.

    ## Example
    ```python
    import torch


    class Column(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, offset=0):
            ctx.shape = x.shape
            return x[:, offset]

        @staticmethod
        def backward(ctx, grad_output, offset=0):
            grad_x = grad_output.new_zeros(ctx.shape)
            grad_x[:, offset] = grad_output
            return grad_x, None
    ```

    ## Use instead
    ```python
    import torch


    class Column(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, offset=0):
            ctx.shape, ctx.offset = x.shape, offset
            return x[:, offset]

        @staticmethod
        def backward(ctx, grad_output):
            grad_x = grad_output.new_zeros(ctx.shape)
            grad_x[:, ctx.offset] = grad_output
            return grad_x, None
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Not reported for the default `None`, which `backward` usually replaces, if it takes the value from ctx itself, as in
    `n = ctx.n if n < 0 else n`, or only asserts it, if the number of outputs is unknown, or if other code calls
    `backward` itself.

    ## References
    - [Extending torch.autograd](https://pytorch.org/docs/stable/notes/extending.html#how-to-use)
    """

    code = "CTX259"
    name = "unpassed-parameter"
    subject = FunctionClass
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        backward, found = fn.backward, list(unpassed_parameters(fn))
        if backward is None or not found:
            return
        one = len(found) == 1
        names = [each.name for each in found]
        defaults = quoted(code_of(each.node.default) for each in found if each.node.default is not None)
        kept = ", ".join(f"{backward.ctx_name}.{each}" for each in names)
        first = min(each.index for each in fn.inputs if each.name in names)
        short = any((each.count or first + 1) <= first for each in fn.gradients)
        use = f"{'' if short else 'and '}use {'that' if one else 'those'}"
        none = f", and return `None` for {'it' if one else 'each'}" if short else ""
        yield Finding(
            fn.span(found[0].node.name),
            f"`{backward.name}` of `{fn.name}` reads {quoted(names)}, which torch never passes; {'it is' if one else 'they are'} always "
            f"{defaults}, also where `forward` gets {'another value' if one else 'other values'}. "
            f"Write `{kept} = {', '.join(names)}` in `forward`, {use}{none}.",
        )
