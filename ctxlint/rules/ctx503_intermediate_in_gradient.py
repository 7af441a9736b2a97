"""CTX503: a gradient is computed from an intermediate of forward: its second derivative is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fixes.decorators import mark_once_differentiable
from ctxlint.model.analyses.double_backward import Making, intermediates_in_gradients, second_derivative_of
from ctxlint.model.analyses.second_order import differentiable_backward
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Category, Finding, FixAvailability, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class IntermediateInGradient(Rule[FunctionClass]):
    """
    ## What it does
    Reports a `backward` without `@once_differentiable` that computes a gradient from an intermediate: a tensor that
    `forward` computed from a differentiable input and stored, and that is neither an input nor an output. A detached
    input, `x.detach()`, is one too, and so are a view, `x.reshape(-1, n)`, and a copy in another dtype, `x.bfloat16()`.

    ## Why is this bad?
    Under `create_graph=True` (gradient penalties, Hessians, meta-learning), `backward` itself is differentiated. A
    saved input or output still has its graph there. An intermediate has none, because `forward` runs with grad mode
    off: it counts as a constant, whether it is saved or set on ctx. If other operations give the gradient a graph, as
    those of a loss `y**2` do, the second derivative is silently wrong. If none does, it raises. A view of an input may
    require a gradient itself, but does not lead to the input: then even `backward()` raises nothing.

    Save the input, and make the view, or the copy, again in `backward`. To keep another intermediate, return it as another output and use its gradient. If no caller needs a second derivative,
    mark `backward` with `@once_differentiable`.

    ## Example
    ```python
    import torch


    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            square = x * x
            ctx.save_for_backward(square)
            return square * x

        @staticmethod
        def backward(ctx, grad_output):
            (square,) = ctx.saved_tensors
            return grad_output * 3 * square
    ```

    ## Use instead
    ```python
    import torch


    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * 3 * x * x
    ```

    ## Fix safety
    Unsafe: it adds `@once_differentiable` to `backward`, as for CTX501. Torch then raises if it differentiates through
    the incoming gradient. A penalty on the gradient alone is still silently wrong. There is no fix
    while the intermediate is an attribute of ctx, which CTX302 moves first.

    ## Known limits
    Off by default: most Functions are never differentiated twice. Reported by default where a function calls `apply`,
    takes a gradient of the result by an argument with `create_graph=True`, and differentiates that, in the same block:
    if `backward` computes that gradient with the intermediate, and the second one is by what it depends on. Only
    differentiable torch operations are followed; if a kernel gets the intermediate, see CTX501.

    ## References
    - [Double backward with custom
      Functions](https://pytorch.org/tutorials/intermediate/custom_function_double_backward_tutorial.html)
    """

    code = "CTX503"
    name = "intermediate-in-gradient"
    subject = FunctionClass
    category = Category.PEDANTIC
    default = False
    default_in_view = True
    fix = FixAvailability.SOMETIMES
    about_backward = True

    def may_be_in_view(self, subject: FunctionClass) -> bool:
        return any(each.second_derivatives for each in subject.calls)

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        backward = differentiable_backward(fn)
        if backward is None:
            return
        found = [(each, second_derivative_of(fn, each)) for each in intermediates_in_gradients(fn)]
        for used, where in sorted(found, key=lambda each: (not each[1], _ORDER.index(each[0].made)))[:1]:
            name, what = used.name, _MADE[used.made]
            anew = used.made is Making.COMPUTED
            remedy = "Compute it again from inputs, or return it as an output" if anew else "Save the input itself"
            second = f"the second derivative on {where}" if where else "a second derivative"
            if used.made is Making.CONVERTED:
                second = f"if that copies it, {second}"
            yield Finding(
                fn.span(used.node),
                f"`backward` of `{fn.name}` computes a gradient with `{name}`, {what}; {second} raises, or is silently wrong"
                f"{'' if used.made is Making.VIEWED else ' if other operations are recorded'}. {remedy}.",
                in_view=bool(where) and used.made is not Making.CONVERTED,
                # If CTX302 moves an attribute into `save_for_backward`, its fix comes first.
                fix=mark_once_differentiable(fn, backward) if "." not in name else None,
            )


_ORDER = (Making.COMPUTED, Making.DETACHED, Making.VIEWED, Making.CONVERTED)
_MADE = {
    Making.COMPUTED: "an intermediate of `forward`",
    Making.DETACHED: "which `forward` detached",
    Making.VIEWED: "a view that `forward` made",
    Making.CONVERTED: "which `forward` converted",
}
