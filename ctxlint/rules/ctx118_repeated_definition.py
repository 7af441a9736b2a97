"""CTX118: a Function that another function defines again in each of its calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Category, Finding, Rule
from ctxlint.rules.wording import fitting, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class RepeatedDefinition(Rule[FunctionClass]):
    """
    ## What it does
    Reports a Function that is defined in another function, which calls its `apply` and returns the result.

    ## Why is this bad?
    Each call creates a class, and another one for autograd, which takes several times as long as `apply` of a small
    Function. Classes are part of reference cycles: with all tensors that their methods use from around them, they stay in
    memory until the garbage collector frees them, also after `backward`. `torch.compile` cannot trace the definition of
    a class: it breaks the graph there, and raises with `fullgraph=True`.

    ## Example
    ```python
    import torch


    def scaled(x, factor):
        class Scale(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * factor

            @staticmethod
            def backward(ctx, grad_output):
                return grad_output * factor

        return Scale.apply(x)
    ```

    ## Use instead
    ```python
    import torch


    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.factor = factor
            return x * factor

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * ctx.factor, None


    def scaled(x, factor):
        return Scale.apply(x, factor)
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Off by default: a function may be called only once. Not reported in tests and in `main`, in a function with a decorator, which may
    keep the result, or if the function does anything else with the class, such as return it.

    ## References
    - [Extending torch.autograd](https://pytorch.org/docs/stable/notes/extending.html#extending-torch-autograd)
    """

    code = "CTX118"
    name = "repeated-definition"
    subject = FunctionClass
    category = Category.PERFORMANCE
    default = False

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        if fn.repeated_in is None:
            return
        around, names = fn.repeated_in
        fact = f"Each call of `{around}` defines `{fn.name}` again; "
        remedy = f"`torch.compile` breaks the graph there. Move it to the module{_passed(names)}."
        kept = "the classes" if not names else "the classes, with what they use of it,"
        message = f"{fact}{kept} stay in memory until the garbage collector frees them, and {remedy}"
        yield Finding(fn.span(fn.node.name), fitting(message, f"{fact}{remedy}"))


def _passed(names: tuple[str, ...]) -> str:
    return f", and pass {quoted(names, 'and')} to `apply`" if names and "self" not in names else ""
