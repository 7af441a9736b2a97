"""CTX302: a tensor that forward computed, stored in an attribute of ctx."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fixes.saving import save_instead
from ctxlint.model.analyses.attribute_uses import released_explicitly
from ctxlint.model.analyses.deliberate_gradients import refuses_to_save
from ctxlint.model.analyses.one_number import is_one_number, may_be_number
from ctxlint.model.analyses.stashes import Held, holds_gradient, stashes
from ctxlint.model.function import FunctionClass
from ctxlint.model.interpreter.events import Differentiated
from ctxlint.rules.base import Category, Finding, FixAvailability, Rule
from ctxlint.rules.related import merged, reads_of, way_to
from ctxlint.rules.stash_wording import metadata_clause, remedy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.analyses.stashes import Stash


class IntermediateStashedOnCtx(Rule[FunctionClass]):
    """
    ## What it does
    Reports `ctx.a = t` if `backward` reads `ctx.a` and `t` is a floating-point tensor that `forward` computed and does
    not return.

    ## Why is this bad?
    A saved tensor is freed when `backward()` is done. An attribute lives as long as the output: its memory is held
    until the loss goes out of scope. Saved-tensor hooks do not see it, so `save_on_cpu` and checkpointing do not reduce
    that memory. And a second `backward()` without `retain_graph` raises no error.

    ## Example
    ```python
    import torch


    class Silu(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            gate = torch.sigmoid(x)
            ctx.save_for_backward(x)
            ctx.gate = gate
            return x * gate

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            gate = ctx.gate
            return grad_output * gate * (1 + x * (1 - gate))
    ```

    ## Use instead
    ```python
    import torch


    class Silu(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            gate = torch.sigmoid(x)
            ctx.save_for_backward(x, gate)
            return x * gate

        @staticmethod
        def backward(ctx, grad_output):
            x, gate = ctx.saved_tensors
            return grad_output * gate * (1 + x * (1 - gate))
    ```

    ## Fix safety
    The tensor is added to the existing `save_for_backward`, or to a new one, and `backward` unpacks it. Offered only if
    the attribute and the save are written once, on every path through `forward`, and `backward` unpacks all saved
    tensors at once before it reads the attribute. There is no fix for containers, views of outputs, tensors that
    `forward` modifies afterwards, attributes that `jvp` reads, if `backward` reads no values, or if ctx is passed to
    another function.

    Unsafe if `backward` passes the tensor to a call that may store it or compare its identity, or uses a tensor that
    may be an input only under a condition, or if only annotations say that it is a tensor. Otherwise safe, with exceptions that every saved tensor has: a second `backward()` without
    `retain_graph` raises, and so does a tensor that is modified in place before `backward`, or that was created under
    `torch.inference_mode()`.

    The fix does nothing for a second derivative: where `backward` computes a gradient with the tensor, it raises or is
    silently wrong with a saved intermediate, too (CTX503).

    ## Known limits
    Not reported for integer and bool tensors, one-element tensors such as `x.sum()`, states of random number
    generators, tensors in containers, gradients that `forward` computes in advance, buffers that `backward` writes to,
    attributes that `backward` sets to `None` or deletes, that a nested function replaces or deletes, and those that
    hold a number on another path.

    Every attribute is a finding of its own, also in a class that keeps several: each has its own fix and suppression
    comment, and a comment on one line never hides an attribute that is added later.

    ## References
    - [FunctionCtx.save_for_backward](https://pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.save_for_backward.html)
    - [Hooks for saved tensors](https://pytorch.org/docs/stable/notes/autograd.html#hooks-for-saved-tensors)
    """

    code = "CTX302"
    name = "intermediate-stashed-on-ctx"
    subject = FunctionClass
    category = Category.PERFORMANCE
    fix = FixAvailability.SOMETIMES
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        yield from merged(self.each(fn), "and here")

    def each(self, fn: FunctionClass) -> Iterator[Finding]:
        """A finding for each assignment."""
        for stash in stashes(fn):
            if stash.held is not Held.COMPUTED or stash.contained:
                continue
            attribute = stash.write.attribute
            if released_explicitly(fn, attribute) or holds_gradient(fn, stash) or is_one_number(fn, stash):
                continue
            if may_be_number(fn, attribute) or refuses_to_save(fn) or stash.is_filled_later:
                continue
            yield Finding(
                fn.span(stash.write.node),
                f"`{fn.storing_ctx}.{attribute}` keeps {_what(stash)}{metadata_clause(stash)}; {_effect(stash)}, and saved-tensor hooks do "
                f"not see it. {remedy(stash)}",
                save_instead(fn, stash),
                (*way_to(fn, stash.write), *reads_of(fn, attribute)),
                stash.rests_on,
            )


def _effect(stash: Stash) -> str:
    """What happens, apart from the hooks."""
    noticed = stash.uses.only_metadata or stash.is_noticed or _is_only_root(stash)
    if stash.shares_an_output and not noticed:
        effect = "silently give wrong gradients" if stash.uses.computes else "go unnoticed"
        return f"in-place modifications of the output {effect}"
    return "it stays in memory as long as the graph"


def _is_only_root(stash: Stash) -> bool:
    """Whether its graph is all that is used: backward only differentiates it, which reads no values."""
    reads = stash.fn.reads_by_attribute.get(stash.write.attribute, ())
    roots = {each.value_node for method in stash.fn.reading_methods for each in method.facts.of(Differentiated)}
    return bool(reads) and all(each.node in roots for each in reads)


def _what(stash: Stash) -> str:
    """What forward stores there."""
    if stash.converted_input is not None:
        return f"the input `{stash.converted_input}` or a copy of it"
    if stash.shares_an_output:
        return "the memory of an output"
    return "memory that `forward` allocated" if stash.may_be_scratch else "a tensor that `forward` computed"
