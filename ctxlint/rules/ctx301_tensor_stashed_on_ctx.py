"""CTX301: an input or output kept in an attribute of ctx."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fixes.saving import save_instead
from ctxlint.model.analyses.stashes import Held, Stash, freed_by_hand, stashes
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Category, Finding, FixAvailability, Rule
from ctxlint.rules.related import reads_of
from ctxlint.rules.stash_wording import asked_of, remedy
from ctxlint.rules.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class TensorStashedOnCtx(Rule[FunctionClass]):
    """
    ## What it does
    Reports `ctx.a = t` where backward reads `ctx.a` and `t` is an input that gets a gradient, or an output. Tuples,
    lists and dicts that hold such a tensor count as well.

    ## Why is this bad?
    `save_for_backward` is made for these tensors. An attribute

    - of an input is not checked: where the tensor is changed in place between forward and backward, the gradient is
      silently wrong, instead of `RuntimeError: one of the variables needed for gradient computation has been
      modified by an inplace operation`;
    - is not seen by saved-tensor hooks: `save_on_cpu` does not move it, checkpointing does not free it;
    - of an output makes a reference cycle, output → grad_fn → ctx → output, which only the cyclic garbage collector
      frees, with all that the graph holds. A *view* of an output is never freed at all.

    This is so from torch 1.13 to 2.15.

    ## Example
    ```python
    import torch


    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.y = y
            return y

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * ctx.y
    ```

    ## Use instead
    ```python
    import torch


    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad_output):
            (y,) = ctx.saved_tensors
            return grad_output * y
    ```

    An input of which `backward` wants no values but only the shape, say, or nothing at all, gives no wrong gradients; but
    the whole tensor stays alive for it. To save it would make an error of an in-place change that is legal as it is: keep
    the shape instead.

    ## Fix safety
    The tensor moves into the one `save_for_backward`, or a new one, and backward unpacks it. Unsafe where backward hands
    the tensor to a call that may keep or compare this very object: under saved-tensor hooks, what is unpacked is another
    one, and a gradient that is hung on it is lost. Unsafe too where it uses the tensor under a condition only: each
    unpacking asks whether the tensor was changed. No fix where backward reads no values. Else safe, but for this: a second
    `backward()` without `retain_graph`, which works with an attribute, raises. Offered only where the attribute and the save are written once, on every path through forward, and backward takes all saved
    tensors by one unpacking before it reads the attribute. Not for containers, views of outputs, tensors that forward
    changes afterwards, attributes that `jvp` reads, and wherever ctx is given to another function.

    ## Known limits
    An input counts where backward returns a gradient for it that is more than zeros. Index tensors, masks, frozen
    weights and others whose gradient is None may be kept on ctx. So may a buffer that backward writes into, and what
    backward never looks into: it only asks whether the attribute is None, or wants an attribute of the tensor's own.
    Silent under a condition that asks for the release of torch, and where backward reads no values, under one that says
    that there are no elements.

    ## References
    - [FunctionCtx.save_for_backward](https://pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.save_for_backward.html)
    - [Reference cycle through ctx](https://github.com/pytorch/pytorch/issues/25340)
    """

    code = "CTX301"
    name = "tensor-stashed-on-ctx"
    subject = FunctionClass
    category = Category.SUSPICIOUS
    fix = FixAvailability.SOMETIMES
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for stash in stashes(fn):
            freed = freed_by_hand(fn, stash.write.attribute)
            if stash.held is Held.COMPUTED or (freed and stash.held is Held.INPUT and stash.uses.only_asked):
                continue
            related = reads_of(fn, stash.write.attribute)
            yield Finding(
                fn.span(stash.write.node), _message(stash, freed), save_instead(fn, stash), related, stash.rests_on
            )


def _message(stash: Stash, freed: bool) -> str:
    attribute, them = f"`ctx.{stash.write.attribute}`", "them" if len(stash.names) > 1 else "it"
    if stash.held is Held.OUTPUT_VIEW:
        return (
            f"{attribute} keeps a view of an output; output and graph keep each other alive for ever. Give the output to "
            f"`save_for_backward`, and take the view in `backward`."
        )
    what = (
        "an output"
        if stash.held is Held.OUTPUT
        else f"the {'inputs' if them == 'them' else 'input'} {quoted(stash.names)}"
    )
    if stash.held is Held.OUTPUT:
        end = "backward or the garbage collector runs" if freed else "the garbage collector runs"
        effect = f"output and graph keep each other alive until {end}"
    elif stash.uses.only_asked:
        effect = f"{'their' if them == 'them' else 'its'} memory stays alive as long as the graph"
    elif stash.uses.reads_values:
        effect = f"in-place changes silently give wrong gradients, and saved-tensor hooks do not see {them}"
    else:
        effect = f"in-place changes go unnoticed, and saved-tensor hooks do not see {them}"
    return f"{attribute} keeps {what}{asked_of(stash)}; {effect}. {remedy(stash)}"
