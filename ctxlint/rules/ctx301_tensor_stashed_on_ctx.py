"""CTX301: an input or output kept in an attribute of ctx."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fixes.saving import save_instead
from ctxlint.model.functions import FunctionClass
from ctxlint.model.stashes import Held, Stash, freed_by_hand, stashes
from ctxlint.rules.base import Category, Finding, FixAvailability, Rule
from ctxlint.rules.related import reads_of
from ctxlint.rules.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.settings import Settings


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

    ## Fix safety
    The tensor moves into the one `save_for_backward`, or a new one, and backward unpacks it. Safe, and offered only
    where the attribute and the save are written once, on every path through forward, and backward takes all saved
    tensors by one unpacking before it reads the attribute. Not for containers, views of outputs, tensors that forward
    changes afterwards, attributes that `jvp` reads, and wherever ctx is given to another function. A second
    `backward()` without `retain_graph` then raises, as it should.

    ## Known limits
    An input counts where backward returns a gradient for it that is more than zeros. Index tensors, masks, frozen
    weights and others whose gradient is None may be kept on ctx. So may a buffer that backward writes into, and what
    backward never looks into: it only asks whether the attribute is None, or wants an attribute of the tensor's own.
    Silent under a condition that asks for the release of torch.

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
            if stash.held is not Held.COMPUTED:
                related = reads_of(fn, stash.write.attribute)
                freed = freed_by_hand(fn, stash.write.attribute)
                yield Finding(fn.span(stash.write.node), _message(stash, freed), save_instead(fn, stash), related)


def _message(stash: Stash, freed: bool) -> str:
    attribute = f"`ctx.{stash.write.attribute}`"
    if stash.held is Held.INPUT:
        plural = len(stash.names) > 1
        return (
            f"{attribute} keeps {'the inputs' if plural else 'the input'} {quoted(stash.names)}; in-place changes silently "
            f"give wrong gradients, and saved-tensor hooks do not see {'them' if plural else 'it'}. Use "
            f"`save_for_backward`."
        )
    if stash.held is Held.OUTPUT:
        return (
            f"{attribute} keeps an output; output and graph keep each other alive until "
            f"{'backward or ' if freed else ''}the garbage collector runs. "
            f"Use `save_for_backward`."
        )
    return (
        f"{attribute} keeps a view of an output; output and graph keep each other alive for ever. Give the output to "
        f"`save_for_backward`, and take the view in `backward`."
    )
