"""CTX225: forward returns integers or bools, for which backward computes a gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.integral_outputs import are_indices, is_integral, zero_gradients
from ctxlint.model.analyses.outputs import is_read
from ctxlint.model.function import FunctionClass
from ctxlint.model.interpreter.values import Tri, is_none
from ctxlint.rules.base import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.function import Method, Returned


class IntegerOutput(Rule[FunctionClass]):
    """
    ## What it does
    Reports a `forward` whose outputs are all integer or bool tensors, if `backward` computes a gradient, and one such
    output of several if `backward` computes with its gradient.

    ## Why is this bad?
    Only floating-point and complex tensors can require grad. The output has no `grad_fn`: `backward` never runs, and
    nothing is learned through the Function. Next to a floating-point output, it runs, and gets zeros for the gradient of
    the integers, whatever the caller makes of them. Torch raises only if the whole loss depends on it: `RuntimeError: element 0
    of tensors does not require grad and does not have a grad_fn`.

    ## Example
    ```python
    import torch


    class Spike(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x > 0

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output / (1 + x.abs()) ** 2
    ```

    ## Use instead
    ```python
    import torch


    class Spike(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return (x > 0).to(x.dtype)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output / (1 + x.abs()) ** 2
    ```

    ## Fix safety
    There is no fix: callers may need the integers.

    ## Known limits
    Reported only if all outputs on all paths are certainly integers or bools, and `backward` reads a gradient and
    returns something other than None. Not reported if an output is marked as non-differentiable. Of several outputs, an
    operator, a method, or a function of torch has to get the gradient that is zero.

    ## References
    - [Locally disabling gradient computation: requires_grad](https://pytorch.org/docs/stable/notes/autograd.html#setting-requires-grad)
    """

    code = "CTX225"
    name = "integer-output"
    subject = FunctionClass

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        forward, backward = fn.forward, fn.backward
        if forward is None or backward is None or forward.inherited or backward.inherited or fn.has_subclass:
            return
        if not fn.count_judgeable or fn.context_calls("mark_non_differentiable") or not _differentiates(fn, backward):
            return
        if fn.outputs and all(map(_all_integral, fn.outputs)):
            returned = fn.outputs[0]
            several = len(returned.slots) > 1
            what = "integer or bool tensors, which" if several else "an integer or bool tensor, which"
            yield Finding(
                fn.span(returned.node),
                f"`forward` of `{fn.name}` returns {what} cannot require grad; torch silently never runs `backward`. "
                f"Return {'them' if several else 'it'} in a floating-point dtype, perhaps next to the integers.",
                rests_on=tuple(slot.value for each in fn.outputs for slot in each.slots),
            )
            return
        for index, param in zero_gradients(fn):
            slots = [each.slots[index] for each in fn.outputs]
            indices = all(are_indices(each.value) for each in slots)
            yield Finding(
                fn.span(slots[0].node or fn.outputs[0].node),
                f"Output {index + 1} of `{fn.name}` is an integer or bool tensor, which cannot require grad, but `backward` "
                f"computes with its gradient `{param.name}`; torch always passes zeros there, silently. "
                f"{f'Drop `{param.name}`' if indices else 'Return it in a floating-point dtype'}.",
                rests_on=tuple(each.value for each in slots),
            )


def _all_integral(returned: Returned) -> bool:
    """Whether a return consists of integer or bool tensors only."""
    return returned.exact and bool(returned.slots) and all(is_integral(slot.value) for slot in returned.slots)


def _differentiates(fn: FunctionClass, backward: Method) -> bool:
    """Whether backward reads an incoming gradient and certainly returns some gradient."""
    incoming = (*backward.positional, *((backward.variadic,) if backward.variadic is not None else ()))
    gradients = [slot.value for returned in fn.gradients for slot in returned.slots if not slot.starred]
    return any(is_read(backward, each) for each in incoming) and any(is_none(value) is Tri.NO for value in gradients)
