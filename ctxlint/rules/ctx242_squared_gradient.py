"""CTX242: backward multiplies by the incoming gradient twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.squared_gradients import squared_gradients
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.related import at
from ctxlint.rules.wording import names_of, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class SquaredGradient(Rule[FunctionClass]):
    """
    ## What it does
    Reports a product in `backward` both of whose operands have the incoming gradient as a factor, if it is returned as
    a gradient.

    ## Why is this bad?
    A gradient is linear in the incoming one: if the loss is multiplied by 3, so are all gradients. This one is silently
    multiplied by 9, and depends on the scale of `GradScaler` and on the size of the batch. It is right at most where
    the incoming gradient is 1, as in `backward(y.sum())`.

    ## Example
    ```python
    import torch


    class Spike(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, alpha):
            ctx.save_for_backward(x)
            ctx.alpha = alpha
            return (x > 0).to(x)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            grad_x = grad_output / (1 + (ctx.alpha * x) ** 2)
            return grad_output * grad_x, None
    ```

    ## Use instead
    ```python
    import torch


    class Spike(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, alpha):
            ctx.save_for_backward(x)
            ctx.alpha = alpha
            return (x > 0).to(x)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output / (1 + (ctx.alpha * x) ** 2), None
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Not reported in loops, if a factor depends on the gradient in another way than by products, sums and changes of the
    shape (`grad.sign()`, `grad > 0`, `1 + 0.1 * grad`), or for the square of one expression. A tensor that a call
    without a result gets is unknown.

    ## References
    - [Extending torch.autograd](https://pytorch.org/docs/stable/notes/extending.html)
    """

    code = "CTX242"
    name = "squared-gradient"
    subject = FunctionClass
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        backward = fn.counted_backward
        squared = list(squared_gradients(fn))
        if backward is None or not squared:
            return
        for product in {each.product: None for _index, each in squared}:
            slots = {index: each for index, each in squared if each.product is product}
            first = next(iter(slots.values()))
            inside = [each for each in first.reads if product not in backward.above(each)]
            names = quoted(names_of(fn, slots))
            yield Finding(
                fn.span(product),
                f"`{backward.name}` of `{fn.name}` multiplies by `{first.incoming}` twice; the gradient for {names} silently "
                f"grows with its square. Multiply by `{first.incoming}` once.",
                related=at(fn, inside, f"`{first.incoming}` is a factor here, too"),
            )
