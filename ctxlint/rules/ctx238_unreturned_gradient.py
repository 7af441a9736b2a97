"""CTX238: backward writes its gradients down but returns only None."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fixes.missing_return import insert_return
from ctxlint.model.analyses.dropped_gradients import dropped_gradients
from ctxlint.model.analyses.unreturned_gradients import overwritten_gradients, unreturned_gradients
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Finding, FixAvailability, Rule
from ctxlint.rules.wording import fitting, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class UnreturnedGradient(Rule[FunctionClass]):
    """
    ## What it does
    Reports a `backward` that returns only `None` although its gradients are there: as a statement that lacks `return`,
    or in a `return` behind the one that is always executed. Also reports one that computes a gradient and binds its name
    to `None` before anything has read it, or that computes a gradient named after an input and returns `None` for that.

    ## Why is this bad?
    `None` means "no gradient". Nothing raises, and everything before this Function silently stops learning.

    ## Example
    ```python
    import torch


    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.factor = factor
            return x * factor

        @staticmethod
        def backward(ctx, grad_output):
            if ctx.needs_input_grad[0]:
                grad_output * ctx.factor, None
            return None, None
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
            if ctx.needs_input_grad[0]:
                return grad_output * ctx.factor, None
            return None, None
    ```

    ## Fix safety
    Unsafe: `return` is inserted in front of the gradients, where they are the last statement of their block. There is
    no fix for an early `return`, which may be left over from debugging.

    ## Known limits
    The statement must be a tuple of names and `None`, or, in front of a `return` with only `None`, a tuple with one
    element for each input or an operation on the incoming gradient if there is one input. A call in it counts only next
    to a `None`, as it may be there for what it does. A `return` under a condition is intended. `None` in place of a
    gradient is reported on the same level as the computation, if that is an operation of torch. A gradient that nothing
    uses must be named after the input, as `grad_weight` or `dweight`, and be computed by operations of torch, or be
    memory that an extension gets with the incoming gradient; not where all calls in view pass what requires no gradient.

    ## References
    - [torch.autograd.Function.backward](https://pytorch.org/docs/stable/generated/torch.autograd.Function.backward.html)
    """

    code = "CTX238"
    name = "unreturned-gradient"
    subject = FunctionClass
    fix = FixAvailability.SOMETIMES
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for overwritten in overwritten_gradients(fn):
            names, inputs = quoted(overwritten.inputs), quoted(overwritten.inputs.values())
            gets, them = ("gets", "it") if len(overwritten.inputs) == 1 else ("get", "them")
            yield Finding(
                fn.span(overwritten.statement),
                f"`backward` of `{fn.name}` computes {names} and then binds {them} to `None`; {inputs} silently {gets} no "
                f"gradient. Remove this line, or do not compute {them}.",
            )
        for dropped in dropped_gradients(fn):
            name, entry = dropped.name, dropped.entry.name
            fact = f"`backward` of `{fn.name}` computes `{name}`, which nothing uses, and returns `None` for `{entry}`"
            message = fitting(
                f"{fact}; `{entry}` silently gets no gradient. Return `{name}` for it.",
                f"{fact}; that input silently gets no gradient. Return it.",
            )
            yield Finding(fn.span(dropped.node), message)
        for each in unreturned_gradients(fn):
            name = fn.backward.name if fn.backward is not None else "backward"
            if each.returned is None:
                yield Finding(
                    fn.span(each.node),
                    f"`{name}` of `{fn.name}` gives these gradients without `return`; they have no effect, and the code "
                    f"after them runs. Write `return` in front of them, with one gradient for each input.",
                )
            elif each.inputs:
                lost = f"{quoted(each.inputs)} silently {'gets' if len(each.inputs) == 1 else 'get'} no gradient"
                yield Finding(
                    fn.span(each.node),
                    f"`{name}` of `{fn.name}` gives these gradients without `return`, and returns only `None` on "
                    f"{fn.line(each.returned.node)}; {lost}. Write `return` in front of them.",
                    insert_return(fn, each.node),
                )
            else:
                yield Finding(
                    fn.span(each.returned.node),
                    f"`{name}` of `{fn.name}` always returns `None` here and never reaches the gradients on "
                    f"{fn.line(each.node)}; its inputs silently get no gradient. Remove this `return` once the code below it works.",
                )
