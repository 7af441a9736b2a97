"""CTX227: a path through forward that ends without return and without raise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.fall_through import has_output, lost_output, works_on_objects
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.wording import own_place, when

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class ImplicitNoneOutput(Rule[FunctionClass]):
    """
    ## What it does
    Reports a `forward` in which some path reaches the end of the body without `return` or `raise`, although another path
    returns an output, or `backward` computes a gradient.

    ## Why is this bad?
    `apply` then silently returns `None`, and `backward` never runs. The error comes later, from the first operation on
    the missing output. A common cause is a `return` that is indented below `if x.requires_grad:`.

    ## Example
    ```python
    import torch


    class Spike(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            if x.requires_grad:
                ctx.save_for_backward(x)
                return (x > 0).to(x)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * (x.abs() < 1)
    ```

    ## Use instead
    ```python
    import torch


    class Spike(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            if x.requires_grad:
                ctx.save_for_backward(x)
            return (x > 0).to(x)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * (x.abs() < 1)
    ```

    ## Fix safety
    There is no fix: only the author knows what the path should return.

    ## Known limits
    An explicit `return None` counts as intended, and so does the end of a chain of tests of one value (`if mode ==
    "sum": … elif mode == "mean": …`), which may be exhaustive, and a path on which all inputs with a gradient are `None`. Not reported after a loop that returns or after a call
    whose name says that it raises.

    ## References
    - [torch.autograd.Function.forward](https://pytorch.org/docs/stable/generated/torch.autograd.Function.forward.html)
    """

    code = "CTX227"
    name = "implicit-none-output"
    subject = FunctionClass
    about_results = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        path = lost_output(fn)
        if path is not None:
            remedy = "Return the output" if has_output(fn) else "Return an output"
            if works_on_objects(fn):
                remedy = "Take a tensor as input, and return an output"
            yield Finding(
                own_place(fn, fn.forward),
                f"`forward` of `{fn.name}` ends without `return`{when(path)}; `apply` silently returns `None`, and "
                f"`{fn.backward.name if fn.backward is not None else 'backward'}` never runs. {remedy}.",
            )
