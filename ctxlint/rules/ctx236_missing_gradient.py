"""CTX236: backward gives no gradient for an input that the result depends on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.dropped_gradients import dropped_gradients
from ctxlint.model.analyses.misplaced_gradients import returned_for_another
from ctxlint.model.analyses.missing_gradients import missing_gradients
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Category, Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class MissingGradient(Rule[FunctionClass]):
    """
    ## What it does
    Reports a tensor for which `backward` always returns `None` although `forward` computes an output from it by
    differentiable operations, also in functions of the project, or although a call passes a leaf for it: a parameter,
    such as `norm.weight`, or another tensor with `requires_grad=True`; or an incoming gradient, in the `backward` of
    another Function. An element of `*args` counts as well.

    ## Why is this bad?
    `None` tells autograd that the output does not depend on the input. A parameter that is passed there keeps `grad` as
    `None`: no error, and it is never trained.

    ## Example
    ```python
    import torch


    class Blend(torch.autograd.Function):
        @staticmethod
        def forward(ctx, image, alpha, background):
            ctx.save_for_backward(image, alpha, background)
            return image * alpha + (1 - alpha) * background

        @staticmethod
        def backward(ctx, grad_output):
            image, alpha, background = ctx.saved_tensors
            return grad_output * alpha, grad_output * (image - background), None
    ```

    ## Use instead
    ```python
    import torch


    class Blend(torch.autograd.Function):
        @staticmethod
        def forward(ctx, image, alpha, background):
            ctx.save_for_backward(image, alpha, background)
            return image * alpha + (1 - alpha) * background

        @staticmethod
        def backward(ctx, grad_output):
            image, alpha, background = ctx.saved_tensors
            grad_background = grad_output * (1 - alpha) if ctx.needs_input_grad[2] else None
            return grad_output * alpha, grad_output * (image - background), grad_background
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Off by default: a mask, a table of angles or a frozen weight needs no gradient. Reported by default where a call passes a
    parameter that a module creates to train it, and reads only there, or an incoming gradient. A Function that returns no gradient for any
    input is checked only for such parameters, in the `forward` of a module, and for tensors whose gradient the caller requests
    before it differentiates the result, unless its name says that it stops gradients. None is checked
    whose `backward` may leave gradients elsewhere, such as in `weight.main_grad`.
    What a kernel computes is unknown: there, only the call shows a parameter, `weight` or `bias` of a layer, or one that
    the file creates.

    ## References
    - [Extending torch.autograd](https://pytorch.org/docs/stable/notes/extending.html)
    """

    code = "CTX236"
    name = "missing-gradient"
    subject = FunctionClass
    holds_unreached = True
    category = Category.SUSPICIOUS
    default = False
    default_in_view = True
    about_backward = True

    def may_be_in_view(self, subject: FunctionClass) -> bool:
        return any(each.trained or each.incoming or each.differentiated_inputs for each in subject.calls)

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        too_few = any(each.count is not None and each.count < len(fn.inputs) for each in fn.gradients)  # which, is open
        missing = list(missing_gradients(fn))
        dropped = {each.entry.index for each in dropped_gradients(fn)} if missing else set()
        for each in missing:
            if each.index in dropped:  # what it computes for it is lost, which is CTX238
                continue
            name, ctx = each.name, fn.reading_ctx
            if each.call is not None and each.incoming_of:
                fact = f"`None` for `{name}`, for which {each.call.place} passes the incoming gradient of `{each.incoming_of}`"
                consequence = "second derivatives silently lack the part through it"
            elif each.call is not None and each.differentiated:
                end = each.call.place.replace(each.call.line, each.differentiated, 1)
                fact = f"`None` for `{name}`, for which {each.call.place} passes a tensor that requires grad"
                consequence = f"`backward()` on {end} silently gives it no gradient through `{fn.name}`"
            elif each.call is not None and each.trained:
                fact = f"`None` for `{name}`, for which the call on {each.call.place} passes a parameter"
                consequence = "unless that is frozen, it is silently never trained"
            elif each.call is not None:
                fact = f"`None` for `{name}`, for which the call on {each.call.place} passes a leaf"
                consequence = "unless that is frozen, it silently gets no gradient"
            else:
                fact = f"`None` for `{name}`, from which `forward` computes an output"
                consequence = "if it requires a gradient, it silently gets none"
            remedy = f"Return its gradient, under `if {ctx}.needs_input_grad[{each.index}]`."
            moved = returned_for_another(fn, each.index)
            if moved is not None:  # torch raises if that other input is not a tensor
                fact += f", and `{moved[0]}` for `{moved[1].name}`"
                consequence = consequence.replace("silently ", "")
                remedy = "Return each gradient for the input that it is of."
            yield Finding(
                fn.span(each.node),
                f"`backward` of `{fn.name}` always returns {fact}; {consequence}. {remedy}",
                in_view=not too_few and (each.trained or bool(each.incoming_of or each.differentiated)),
            )
