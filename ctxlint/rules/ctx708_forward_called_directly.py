"""CTX708: the project calls forward of a Function itself, and never apply."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Category, Finding, Rule
from ctxlint.torch_api.autograd import BY_OTHERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class ForwardCalledDirectly(Rule[FunctionClass]):
    """
    ## What it does
    Reports a Function whose `forward` other code calls itself, `Fn.forward(ctx, x)`, where no file of the project uses
    `Fn.apply`.

    ## Why is this bad?
    Only `apply` records the Function in the graph. A direct call runs `forward` as any other function: autograd records
    the operations in it, with all that they save, and never calls `backward`. Where `forward` computes in compiled code,
    the result has no gradient at all.

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
            return 2 * x * grad_output


    class NoContext:
        def save_for_backward(self, *tensors):
            pass


    def square(x):
        return Square.forward(NoContext(), x)
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
            return 2 * x * grad_output


    def square(x):
        return Square.apply(x)
    ```

    ## Fix safety
    There is no fix: the direct call may pass a ctx of its own.

    ## Known limits
    Off by default: `apply` may be left to the users of a library, and the direct call be meant for inference. Not
    reported if a subclass, or a method of another Function, calls `forward`, or if the project is too large to search.

    ## References
    - [Extending torch.autograd](https://pytorch.org/docs/stable/notes/extending.html)
    """

    code = "CTX708"
    name = "forward-called-directly"
    subject = FunctionClass
    category = Category.SUSPICIOUS
    default = False
    holds_unreached = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        if BY_OTHERS not in fn.called_directly or fn.applied or fn.has_subclass or fn.known_in_part:
            return
        backward, forward = fn.backward, fn.forward
        by_instance = fn.legacy_state is not None or any(call.how.startswith("construct") for call in fn.calls)
        if backward is None or forward is None or backward.inherited or backward.raises_only or by_instance:
            return
        if not fn.called_directly.isdisjoint(("backward", "vjp", "setup_context")):
            return  # other code differentiates it itself
        yield Finding(
            fn.span(backward.node.name),
            f"The project calls `{fn.name}.forward` itself, and `{fn.name}.apply` nowhere; autograd records only what `forward` "
            f"does, and `{backward.name}` never runs. Call `{fn.name}.apply(...)` where gradients are wanted.",
        )
