"""CTX239: `squeeze` removes the only dimension of a gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fixes.squeezing import keep_dimension, name_dimension
from ctxlint.model.analyses.squeezed import squeezed_gradients
from ctxlint.model.analyses.unaligned_squeezes import unaligned_squeezes
from ctxlint.model.function import FunctionClass
from ctxlint.model.syntax import code_of, last_name
from ctxlint.rules.base import Finding, FixAvailability, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.analyses.squeezed import Squeezed


class SqueezedGradient(Rule[FunctionClass]):
    """
    ## What it does
    Reports `squeeze` on a gradient with one dimension, such as `grad_output.sum(0).squeeze(0)`. Also `squeeze()` of a tensor that `forward` saves
    with size 1 along a dimension, next to a sum along that one: `grad_output.sum(dim) / count.squeeze()`.

    ## Why is this bad?
    `sum(0)` has already removed the dimension of the batch. `squeeze(0)` does nothing to what remains, unless its size is 1:
    then it removes the only dimension, and the backward pass of a layer with one output feature raises
    `RuntimeError: Function LinearBackward returned an invalid gradient at index 2 - got [] but expected shape compatible with [1]`.

    Without a dimension, `squeeze()` removes all of size 1. The sum still has them, and torch aligns the last dimensions of the two: `[5, 1]`
    and `[5]` give `[5, 5]`.

    ## Example
    ```python
    import torch


    class Linear(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight, bias):
            ctx.save_for_backward(x, weight)
            return x.mm(weight.t()) + bias

        @staticmethod
        def backward(ctx, grad_output):
            x, weight = ctx.saved_tensors
            grad_bias = grad_output.sum(0).squeeze(0)
            return grad_output.mm(weight), grad_output.t().mm(x), grad_bias
    ```

    ## Use instead
    ```python
    import torch


    class Linear(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight, bias):
            ctx.save_for_backward(x, weight)
            return x.mm(weight.t()) + bias

        @staticmethod
        def backward(ctx, grad_output):
            x, weight = ctx.saved_tensors
            grad_bias = grad_output.sum(0)
            return grad_output.mm(weight), grad_output.t().mm(x), grad_bias
    ```

    ## Fix safety
    The fixes are safe: for other sizes, the gradient stays the same. If a comment would be lost, they are unsafe.

    ## Known limits
    Shapes are not tracked in general. For `squeeze()`, the dimension must be an argument of `apply`, or a negative number, and `unsqueeze` or `keepdim=True` must show it, and no code may ask how many dimensions there are. Otherwise, the gradient must be a sum or mean over the first dimension of a matrix, which `mm` or
    `t` shows it to be, or over all dimensions but the second of a batch, as in `grad_output.sum((0, 2, 3))`, or one after another. Not reported
    if `forward` or `backward` cuts or joins tensors, which then have several columns.

    ## References
    - [torch.squeeze](https://pytorch.org/docs/stable/generated/torch.squeeze.html)
    - [torch.autograd.Function.backward](https://pytorch.org/docs/stable/generated/torch.autograd.Function.backward.html)
    """

    code = "CTX239"
    name = "squeezed-gradient"
    subject = FunctionClass
    fix = FixAvailability.ALWAYS
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        if fn.counted_backward is None:
            return
        found = {squeezed.call: (index, squeezed) for index, squeezed in squeezed_gradients(fn)}
        for index, squeezed in found.values():
            message = _message(fn.inputs[index].name, squeezed)
            yield Finding(fn.span(squeezed.call), message, fix=keep_dimension(fn, squeezed))
        for each in unaligned_squeezes(fn):
            dimension, name = code_of(each.dimension), last_name(each.reduction.func)
            yield Finding(
                fn.span(each.call),
                f"`squeeze()` removes all dimensions of size 1, `{name}` next to it only `{dimension}`; if one of size 1 follows a larger "
                f"one, it raises RuntimeError, or is silently wrong. Write `squeeze({dimension})`.",
                fix=name_dimension(fn, each),
            )


def _message(name: str, squeezed: Squeezed) -> str:
    call = code_of(squeezed.call).removeprefix(code_of(squeezed.sums)).strip()
    if squeezed.raising is not None:
        raising = (
            f"{last_name(squeezed.raising.func)}({', '.join(code_of(each.value) for each in squeezed.raising.args)})"
        )
        return (
            f"`{call.removeprefix('.')}` removes the dimension that the sums leave of the gradient for `{name}` if its size is 1; "
            f"`{raising}` then raises IndexError. Drop each `squeeze`."
        )
    remedy = "Use `.reshape(-1)`" if squeezed.keeps else "Drop each `squeeze`" if squeezed.all else f"Drop `{call}`"
    return (
        f"`{call.removeprefix('.')}` removes the only dimension of the gradient for `{name}` if its size is 1; torch then "
        f"raises RuntimeError at backward. {remedy}."
    )
