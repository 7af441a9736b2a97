"""CTX201: a return of backward with fewer gradients than forward has inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fixes.missing_none import put_none_in
from ctxlint.model.analyses.gradient_placements import one_for_each_place, shortfalls
from ctxlint.model.analyses.outputs import gives_indices, may_give_indices, unfit_outputs
from ctxlint.model.analyses.variadic_gradients import gradients_before_variadic, returns_without_variadic
from ctxlint.model.function import FunctionClass
from ctxlint.model.interpreter.values import NONE
from ctxlint.rules.base import Finding, FixAvailability, Rule
from ctxlint.rules.releases import at_backward, defaults_are_bound, refusing_torch
from ctxlint.rules.wording import all_inputs, counted, place_of_gradients, wanted_inputs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class TooFewGradients(Rule[FunctionClass]):
    """
    ## What it does
    Reports each return of `backward` (or `vjp`) that has fewer gradients than `forward` has inputs without a default,
    or than a call of `apply` in a linted file passes. With `setup_context`, every input counts since torch 2.2. Also
    one with gradients for some inputs that have a default, but not for all, and one without any for `*args` if a call passes on what it gets: `apply(x, *args)`.

    ## Why is this bad?
    Autograd expects one gradient for each input of `apply`, and `None` for inputs that have none. With fewer,
    `loss.backward()` raises `RuntimeError: function FBackward returned an incorrect number of gradients (expected 2,
    got 1)`, and not earlier: forward and evaluation work. Under `torch.compile`, no error is raised since torch 2.11:
    the missing gradients silently become `None`.

    ## Example
    ```python
    import torch


    class Multiply(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx, grad_output):
            a, b = ctx.saved_tensors
            return grad_output * b
    ```

    ## Use instead
    ```python
    import torch


    class Multiply(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx, grad_output):
            a, b = ctx.saved_tensors
            return grad_output * b, grad_output * a
    ```

    ## Fix safety
    Unsafe, and only where the names show which input each gradient is for, and `backward` computes none for the other
    inputs: `None` is added for these if `None` is written next to them already, or if they do not look like tensors
    with a gradient. One gradient without such a name counts as that of the first input if `None` follows it. Elsewhere
    only the author knows which gradient is missing. If inputs that are not tensors got no `None`, missing-none (CTX203)
    is reported instead.

    ## Known limits
    Each return is checked on its own. Not reported if the number of gradients depends on run-time values (`return
    helper(x)`, `*grads`), except where it certainly has one for each of `*args` and too few before these; if a subclass
    or a direct call uses the result, under an unknown decorator, if no output can have a gradient, or if `backward`
    cannot take one gradient for each output (CTX205). Fewer gradients than inputs with defaults are legal as long as
    calls omit those inputs: they are reported only if a call in a linted file passes them and no return has enough
    gradients for that call, or if no return has one for each but some return counts some of them.

    ## References
    - [torch.autograd.Function.backward](https://pytorch.org/docs/stable/generated/torch.autograd.Function.backward.html)
    """

    code = "CTX201"
    name = "too-few-gradients"
    subject = FunctionClass
    holds_unreached = True
    about_gradients = True
    fix = FixAvailability.SOMETIMES
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        if unfit_outputs(fn) or gives_indices(fn):
            return  # torch cannot even call it: CTX205; or perhaps never does
        torch = refusing_torch(fn, settings)
        every = tuple(shortfalls(fn, defaults_are_bound=defaults_are_bound(fn, settings)))
        for shortfall in one_for_each_place(every):
            if shortfall.placement is not None or fn.backward is None:
                continue
            expected, returned = shortfall.expected, shortfall.returned
            condition = "if an output holds floats, " if may_give_indices(fn) else ""
            actual = "`None`" if returned.value == NONE else counted(returned.count or 0, "gradient")
            yield Finding(
                place_of_gradients(fn, returned),
                f"`{fn.backward.name}` of `{fn.name}` returns {actual} but {wanted_inputs(fn, expected)}; {condition}{torch} raises "
                f"RuntimeError {at_backward(fn, shortfall, settings)}. Return one gradient for each input, `None` if there is none.",
                put_none_in(fn, shortfall, every),
                rests_on=(returned,),
            )
        for returned, count in gradients_before_variadic(fn, at_most=True):
            if count < len(fn.inputs) and fn.backward is not None and fn.variadic_inputs is not None:
                rest = f"`*{fn.variadic_inputs.name}`"
                yield Finding(
                    place_of_gradients(fn, returned),
                    f"`{fn.backward.name}` of `{fn.name}` returns {counted(count, 'gradient')} before those for {rest} but "
                    f"`forward` takes {all_inputs(fn)} there; {torch} raises RuntimeError at backward. Return one "
                    f"gradient for each input, `None` if there is none.",
                    rests_on=(returned,),
                )
        for returned in returns_without_variadic(fn) if not every else ():
            if fn.backward is not None and fn.variadic_inputs is not None:
                rest = f"`*{fn.variadic_inputs.name}`"
                yield Finding(
                    place_of_gradients(fn, returned),
                    f"`{fn.backward.name}` of `{fn.name}` returns {counted(returned.count or 0, 'gradient')}, none for {rest}; "
                    f"if a call passes any there, {torch} raises RuntimeError at backward. Return `None` for each of "
                    f"{rest} as well.",
                    rests_on=(returned,),
                )
