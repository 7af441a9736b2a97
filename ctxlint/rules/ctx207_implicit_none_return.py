"""CTX207: a path through backward that ends without return and without raise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.fall_through import lost_path
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.wording import own_place, when

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class ImplicitNoneReturn(Rule[FunctionClass]):
    """
    ## What it does
    Reports a `backward` (or `vjp`) in which some path reaches the end of the body without `return` and without
    `raise`.

    ## Why is this bad?
    Python returns `None` there. For a Function with one input that means "no gradient": nothing raises, and
    everything before it silently stops learning. With more inputs `loss.backward()` raises `RuntimeError: function
    FBackward returned an incorrect number of gradients (expected 2, got 1)`; under `torch.compile` that is silent
    too from torch 2.11 on.

    ## Example
    ```python
    import torch


    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            grad_input = 2 * x * grad_output
    ```

    ## Use instead
    ```python
    import torch


    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            grad_input = 2 * x * grad_output
            return grad_input
    ```

    ## Fix safety
    There is no fix: what the path should return is for the author to say.

    ## Known limits
    An explicit `return None` is a choice. So is the end of a chain of tests of one thing (`if mode == "sum": … elif
    mode == "mean": …`), which may well be exhaustive. Silent where the end is reached only when no input needs a
    gradient or no gradient came in, after a loop that returns, after a call whose name says that it raises, and
    where no output of `forward` can have a gradient.

    ## References
    - [torch.autograd.Function.backward](https://pytorch.org/docs/stable/generated/torch.autograd.Function.backward.html)
    """

    code = "CTX207"
    name = "implicit-none-return"
    subject = FunctionClass
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        path = lost_path(fn)
        if path is None or fn.backward is None:
            return
        yield Finding(
            own_place(fn, fn.backward),
            f"`{fn.backward.name}` of `{fn.name}` ends without `return`{when(path)}; {_effect(fn)}",
        )


def _effect(fn: FunctionClass) -> str:
    inputs = len(fn.inputs)
    if fn.variadic_inputs is not None:
        return "torch raises RuntimeError at backward, or silently gives no gradient. Return one for each input."
    if inputs == 1:
        return f"`{fn.inputs[0].name}` silently gets no gradient. Return a gradient, or write `return None`."
    return "torch raises RuntimeError at backward. Return one gradient for each input."
