"""CTX311: the same tensor both saved and set as an attribute."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fixes.saving import drop_attribute
from ctxlint.model.analyses.attribute_uses import without_the_data
from ctxlint.model.analyses.saved_state import saved_and_stashed
from ctxlint.model.analyses.saved_state_uses import uses_of_kept
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Category, Finding, FixAvailability, Rule
from ctxlint.rules.related import at, reads_of, way_to

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.function import ContextWrite


class SavedAndStashed(Rule[FunctionClass]):
    """
    ## What it does
    Reports a tensor that `forward` both passes to `save_for_backward` and stores as an attribute of ctx.

    ## Why is this bad?
    The attribute defeats the purpose of saving: the tensor is not freed after backward; saved-tensor hooks
    (checkpointing, offloading) process the saved tensor while the attribute keeps the original alive; and an output
    stored on ctx creates a reference cycle.

    ## Example
    ```python
    import torch


    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.x = x
            return x**2

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * 2 * ctx.x
    ```

    ## Use instead
    ```python
    import torch


    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * 2 * x
    ```

    ## Fix safety
    Safe: `backward` reads the unpacked tensor, and the attribute is removed. Unsafe if `backward` passes the tensor to
    a call that may store it or compare its identity. Offered only if both are written once, on every path through
    `forward`, and `backward` unpacks all saved tensors at once before it reads the attribute.

    ## Known limits
    Not reported if the name of the tensor is rebound between the two statements, if some path keeps the attribute without
    saving the tensor, if `forward` replaces or deletes the attribute later, if another function that gets ctx sets it, or if `backward` uses the attribute only
    for custom attributes of the tensor, such as `ctx.weight.main_grad`.

    ## References
    - [FunctionCtx.save_for_backward](https://pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.save_for_backward.html)
    """

    code = "CTX311"
    name = "saved-and-stashed"
    subject = FunctionClass
    category = Category.SUSPICIOUS
    fix = FixAvailability.SOMETIMES
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for write, save in saved_and_stashed(fn):
            itself = uses_of_kept(fn, write.attribute).of_this_object
            if itself or any(without_the_data(each, write.attribute) for each in fn.reading_methods):
                continue  # a saved tensor loses custom attributes
            unread = not fn.escapes and not fn.has_subclass and not reads_of(fn, write.attribute)
            advice = "Drop the attribute." if unread else _advice(fn, write)
            yield Finding(
                fn.span(write.node),
                f"`{fn.storing_ctx}.{write.attribute}` keeps a tensor that is saved as well; it stays alive as long as the graph, and saved-tensor "
                f"hooks do not see it. {advice}",
                drop_attribute(fn, write, save),
                (*(() if save.by else at(fn, [save.node], "saved here")), *way_to(fn, write, save)),
            )


def _advice(fn: FunctionClass, write: ContextWrite) -> str:
    """What to read instead; ``jvp`` gets what ``save_for_forward`` saves."""
    jvp, read = fn.methods.get("jvp"), f"read `{fn.reading_ctx}.saved_tensors`"
    kept = (argument.value for call in fn.context_calls("save_for_forward") for argument in call.arguments)
    if jvp is None or write.attribute not in jvp.context_attributes or any(each == write.value for each in kept):
        return f"Drop the attribute and {read}."
    return f"Drop the attribute, {read}, and call `save_for_forward` for `jvp` as well."
