"""CTX201: a return of backward with fewer gradients than forward has inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.gradient_placements import shortfalls
from ctxlint.model.analyses.outputs import unfit_outputs
from ctxlint.model.function import FunctionClass
from ctxlint.model.interpreter.values import NONE
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.releases import at_backward, defaults_are_bound
from ctxlint.rules.wording import counted, place_of_gradients, wanted_inputs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class TooFewGradients(Rule[FunctionClass]):
    """
    ## What it does
    Reports each return of `backward` (or `vjp`) that has fewer gradients than `forward` has inputs without default,
    or than a call of `apply` in a file of the run passes. Beside `setup_context` every input counts from torch 2.2 on.

    ## Why is this bad?
    Autograd wants one gradient for each input that `apply` was given, `None` for those that have none. With fewer,
    `loss.backward()` raises `RuntimeError: function FBackward returned an incorrect number of gradients (expected
    2, got 1)`, and not before: forward and evaluation work. Under `torch.compile` it is silent from torch 2.11 on,
    where the missing gradients become `None`.

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
    There is no fix: which gradient is missing is for the author to say. Where only `None` is missing, missing-none
    (CTX203) is reported instead, and mends it.

    ## Known limits
    Each return is judged alone. Silent where the number of gradients hangs on what runs (`return helper(x)`,
    `*grads`), where a subclass or a call by hand uses the result, under an unknown decorator, where no output can have a
    gradient, and where `backward` cannot take one for each output (CTX205). Fewer gradients than inputs with defaults are legal as long as calls leave those inputs
    out: only a call in a file of the run shows otherwise, and it counts when no return has enough for it.

    ## References
    - [torch.autograd.Function.backward](https://pytorch.org/docs/stable/generated/torch.autograd.Function.backward.html)
    """

    code = "CTX201"
    name = "too-few-gradients"
    subject = FunctionClass
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        if unfit_outputs(fn):
            return  # torch cannot even call it, which is CTX205
        for shortfall in shortfalls(fn, defaults_are_bound=defaults_are_bound(fn, settings)):
            if shortfall.placement is not None or fn.backward is None:
                continue
            expected, returned = shortfall.expected, shortfall.returned
            given = "`None`" if returned.value == NONE else counted(returned.count or 0, "gradient")
            yield Finding(
                place_of_gradients(fn, returned),
                f"`{fn.backward.name}` of `{fn.name}` returns {given} but {wanted_inputs(fn, expected)}; torch raises "
                f"RuntimeError {at_backward(expected, settings)}. Return one gradient for each input, `None` where there is none.",
                rests_on=(returned,),
            )
