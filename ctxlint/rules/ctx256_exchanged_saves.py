"""CTX256: backward gives two saved tensors each the name of the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fixes.exchanging import exchange_names
from ctxlint.model.analyses.exchanged_saves import exchanged_saves
from ctxlint.model.analyses.saved_tensors import saving_call
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Finding, FixAvailability, Rule
from ctxlint.rules.related import saves

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class ExchangedSaves(Rule[FunctionClass]):
    """
    ## What it does
    Reports saved tensors that `backward` unpacks in another order than `forward` saves them, by their names.

    ## Why is this bad?
    `ctx.saved_tensors` has the tensors in the order in which `save_for_backward` was given them. With two of one shape, nothing raises:
    the gradients are computed with the wrong tensor, silently.

    ## Example
    ```python
    import torch


    class Clamp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, low, high):
            ctx.save_for_backward(x, low, high)
            return torch.clamp(x, low, high)

        @staticmethod
        def backward(ctx, grad_output):
            x, high, low = ctx.saved_tensors
            below, above = x < low, x > high
            inside = ~(below | above)
            return grad_output * inside, grad_output * below, grad_output * above
    ```

    ## Use instead
    ```python
    import torch


    class Clamp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, low, high):
            ctx.save_for_backward(x, low, high)
            return torch.clamp(x, low, high)

        @staticmethod
        def backward(ctx, grad_output):
            x, low, high = ctx.saved_tensors
            below, above = x < low, x > high
            inside = ~(below | above)
            return grad_output * inside, grad_output * below, grad_output * above
    ```

    ## Fix safety
    Unsafe, because only the author knows whether the order or the names are wrong. The two names change places.

    ## Known limits
    Both names must be those of the variables that are saved, each in the place of the other, and `backward` must use both. Not reported if
    `save_for_backward` is called in several places, or with `*tensors`, or if `backward` computes the same with the two exchanged. Nor if the
    gradients of the two inputs have changed places as well, by their names, or are right as they are, as far as that can be computed.

    ## References
    - [FunctionCtx.save_for_backward](https://pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.save_for_backward.html)
    """

    code = "CTX256"
    name = "exchanged-saves"
    subject = FunctionClass
    fix = FixAvailability.ALWAYS
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for method in fn.reading_methods:
            for each in exchanged_saves(fn, method):
                first, second, call = each.first.value, each.second.value, saving_call(method)
                yield Finding(
                    fn.span(each.first),
                    f"`{first}` gets the tensor that is saved as `{second}`, and `{second}` the one saved as `{first}`; if they are what "
                    f"their names say, `{method.name}` raises, or is silently wrong. Unpack them in the order of `{call}`.",
                    exchange_names(fn, method, each),
                    saves(fn, call),
                )
