"""CTX324: ``save_for_backward(x.data)``, where torch does not notice in-place modifications."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.saved_data import saved_data
from ctxlint.model.function import FunctionClass
from ctxlint.model.syntax import code_of
from ctxlint.rules.base import Category, Finding, Rule
from ctxlint.rules.related import way_to

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.analyses.saved_data import SavedData


class SavedDataOfTensor(Rule[FunctionClass]):
    """
    ## What it does
    Reports `save_for_backward(x.data)` for an input that gets a gradient, or an output.

    ## Why is this bad?
    Torch counts the in-place modifications of a saved tensor and raises RuntimeError at backward if there was one after
    `apply`. `x.data` has the memory of `x`, but a counter of its own: after `x.mul_(2)`, or after an optimizer's step,
    `backward` silently computes a wrong gradient. A second derivative is missing, too, because `x.data` has no graph.
    `x.detach()` shares the counter.

    ## Example
    ```python
    import torch


    class Linear(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.save_for_backward(x, weight.data)
            return x @ weight.t()

        @staticmethod
        def backward(ctx, grad_output):
            x, weight = ctx.saved_tensors
            return grad_output @ weight, grad_output.t() @ x
    ```

    ## Use instead
    ```python
    import torch


    class Linear(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.save_for_backward(x, weight)
            return x @ weight.t()

        @staticmethod
        def backward(ctx, grad_output):
            x, weight = ctx.saved_tensors
            return grad_output @ weight, grad_output.t() @ x
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Not reported if `forward` calls `save_for_backward` more than once or with a star, modifies the tensor in place, or
    if `backward` modifies a saved tensor in place or uses only the shape.

    ## References
    - [In-place correctness checks](https://pytorch.org/docs/stable/notes/autograd.html#in-place-correctness-checks)
    """

    code = "CTX324"
    name = "saved-data"
    subject = FunctionClass
    category = Category.SUSPICIOUS
    about_gradients = True
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for each in saved_data(fn):
            node = each.argument.node
            if node is not None:
                call = fn.saves[0]
                span = fn.span(call.node if call.by else node)
                yield Finding(
                    span, _message(each, code_of(node)), related=way_to(fn, call), rests_on=(each.argument.value,)
                )


def _message(found: SavedData, code: str) -> str:
    subject = f"`{code}` is saved, which has" if ".data" in code else f"`{code}` is saved as its `.data`, which has"
    itself = f"`{found.tensor}` itself" if ".data" in code else f"the original `{found.tensor}`"
    effect = "silently give wrong gradients" if found.computes else "go unnoticed"
    return (
        f"{subject} a version counter of its own; in-place modifications of `{found.tensor}` {effect}. Save {itself}."
    )
