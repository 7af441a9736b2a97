"""CTX235: a gradient that is returned for the wrong input: a None too many or too few in front, or two exchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fixes.misplaced_gradient import drop_none_in_front, exchange, put_none_in_front
from ctxlint.model.analyses.misplaced_gradients import early_gradients, exchanged_gradients, misplaced_gradients
from ctxlint.model.analyses.reachability import judged_gradients
from ctxlint.model.function import FunctionClass
from ctxlint.model.syntax import root_name
from ctxlint.rules.base import Finding, FixAvailability, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.analyses.misplaced_gradients import Displaced, Early


class MisplacedGradient(Rule[FunctionClass]):
    """
    ## What it does
    Reports a `backward` that returns a gradient behind a `None` too many: it has the name of an input in front, for which `None` is
    returned, and there are more gradients than inputs; also `x.grad` behind the gradients of all inputs. Reports gradients that are returned one place too early, with a `None`
    missing in front and one to spare behind: the first is for an input that is not a tensor, and has the name of the next one. Reports two gradients that have changed places: each has the name of
    the input that the other is returned for.

    ## Why is this bad?
    Torch silently drops surplus `None` at the end, so nothing raises: the input gets no gradient, and the next one gets a
    gradient that is not its own. Backward raises only if that is not a tensor, or needs a gradient of another shape.
    Nor do two gradients in the wrong order raise if their shapes fit.

    ## Example
    ```python
    import torch


    class Add(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale, identity, identity_scale):
            ctx.scale = scale
            return x * scale + identity

        @staticmethod
        def backward(ctx, grad_output):
            identity_grad = grad_output.clone()
            return grad_output * ctx.scale, None, None, identity_grad, None
    ```

    ## Use instead
    ```python
    import torch


    class Add(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale, identity, identity_scale):
            ctx.scale = scale
            return x * scale + identity

        @staticmethod
        def backward(ctx, grad_output):
            identity_grad = grad_output.clone()
            return grad_output * ctx.scale, None, identity_grad, None
    ```

    ## Fix safety
    Unsafe, because only the author knows which input the gradient is for. The `None` at the position of the named input is removed,
    if the gradient is at the next one, and if the return writes out a tuple without comments; a missing one is inserted, and that behind dropped. Two gradients change places.

    ## Known limits
    The gradient must be a variable with the whole name of the input, as `grad_x`, `x_grad` or `dx` for `x`. Not reported if another
    gradient behind it has the name of the input at its position. Two that are unpacked from one call may only have the wrong
    names, and are not reported; nor are those computed under a condition, or each as a multiple of the input that it is named after.

    ## References
    - [torch.autograd.Function.backward](https://pytorch.org/docs/stable/generated/torch.autograd.Function.backward.html)
    """

    code = "CTX235"
    name = "misplaced-gradient"
    subject = FunctionClass
    holds_unreached = True
    about_gradients = True
    fix = FixAvailability.SOMETIMES
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        backward = fn.counted_backward
        for each in misplaced_gradients(fn) if backward is not None else ():
            yield Finding(
                fn.span(each.node),
                _message_of_displaced(each),
                drop_none_in_front(fn, each),
                rests_on=(each.returned,),
            )
        for returned in judged_gradients(fn) if backward is not None else ():
            early = early_gradients(fn, returned)
            if early is not None:
                yield Finding(
                    fn.span(early.nodes[0]),
                    _message_of_early(early),
                    put_none_in_front(fn, early),
                    rests_on=(returned, *(returned.slots[each].value for each in early.positions)),
                )
        for pair in exchanged_gradients(fn) if backward is not None else ():
            names, inputs = [each.value for each in pair.nodes], [fn.inputs[each].name for each in pair.indices]
            yield Finding(
                fn.span(pair.nodes[0]),
                f"`{names[0]}` is returned for the input `{inputs[0]}`, and `{names[1]}` for `{inputs[1]}`; if they are "
                "what their names say, both are silently wrong. Return them in the order of the inputs.",
                exchange(fn, pair),
                rests_on=(pair.returned,),
            )


def _message_of_displaced(displaced: Displaced) -> str:
    name, meant = displaced.name, displaced.meant.name
    if displaced.gets is None:
        return (
            f"`{name}` is returned behind the gradients of all inputs, and `None` for `{meant}`; torch raises RuntimeError at backward "
            f"unless it is `None`. Return it for `{meant}`."
        )
    return (
        f"`{name}` is returned for the input `{displaced.gets.name}`, and `None` for `{meant}`, which gets no gradient. "
        f"Remove a `None` in front of it."
    )


def _message_of_early(early: Early) -> str:
    first, last = root_name(early.nodes[0]), root_name(early.nodes[-1])
    against = early.gets.against_a_gradient[0]
    refused = f"`{early.gets.name}`, which is not a tensor{' by default' * against.by_default}"
    remedy = f"Put `None` before `{first}`, and drop"
    if len(early.nodes) == 1:
        what = f"`{first}` is returned for {refused}, and `None` for `{early.meant.name}`"
        return f"{what}; torch raises RuntimeError at backward. {remedy} that behind it."
    until = f"`{last}`" if last is not None else "the last one"
    what = f"All gradients from `{first}` to {until} are returned one place too early, `{first}` for {refused}"
    return f"{what}; torch raises RuntimeError at backward. {remedy} one behind them."
