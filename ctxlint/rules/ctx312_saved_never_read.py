"""CTX312: a tensor is saved that nothing ever reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fixes.unread_saves import leave_out
from ctxlint.model.analyses.foreign_names import names_of_forward
from ctxlint.model.analyses.saved_metadata import unvalued_saves
from ctxlint.model.analyses.saved_state import never_read
from ctxlint.model.analyses.unread_attributes import kept_for_a_test, unread_save
from ctxlint.model.function import FunctionClass
from ctxlint.model.interpreter.values import Tri, is_input, is_none, is_tensor
from ctxlint.model.syntax import code_of
from ctxlint.rules.base import Category, Finding, FixAvailability, Rule
from ctxlint.rules.related import reads_of_saved
from ctxlint.rules.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.interpreter.values import Value


class SavedNeverRead(Rule[FunctionClass]):
    """
    ## What it does
    Reports an argument of `save_for_backward` that `backward` unpacks and never reads, or only asks for its shape, dtype or
    device, and `save_for_backward` of a Function that never reads `ctx.saved_tensors`. Also reports an input on ctx that `backward` only tests for `None`.

    ## Why is this bad?
    The tensor needlessly occupies memory from forward to backward, and activations are usually what exhausts that
    memory. If `backward` reads none of them, it may have meant to.

    ## Example
    ```python
    import torch


    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            result = x.exp()
            ctx.save_for_backward(x, result)
            return result

        @staticmethod
        def backward(ctx, grad_output):
            x, result = ctx.saved_tensors
            return grad_output * result
    ```

    ## Use instead
    ```python
    import torch


    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            result = x.exp()
            ctx.save_for_backward(result)
            return result

        @staticmethod
        def backward(ctx, grad_output):
            (result,) = ctx.saved_tensors
            return grad_output * result
    ```

    ## Fix safety
    Unsafe: the tensor is removed from the call and from every unpacking, together with a comment on a line of its own;
    both statements are removed if it was the only tensor. Torch then no longer checks that the tensor is not modified
    in place, and nothing keeps it alive for a kernel that has its address. There is no fix if the argument is more than
    a name, an attribute, an item or a copy of these, or if `backward` uses the unpacked name in any way, including
    `del`, or never reads `ctx.saved_tensors`, and none for an attribute.

    ## Known limits
    Off by default: saving a tensor also checks that it is not modified in place before backward, which may be intended.
    Not reported if the saved tuple is indexed, starred or passed on, or if `backward` reads the same tensor from an attribute of ctx.

    ## References
    - [FunctionCtx.save_for_backward](https://pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.save_for_backward.html)
    """

    code = "CTX312"
    name = "saved-never-read"
    subject = FunctionClass
    category = Category.PERFORMANCE
    default = False
    fix = FixAvailability.SOMETIMES
    unnecessary = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        unread = list(never_read(fn))
        meant = _names_without_meaning(fn) if unread else set()  # CTX223 tells where backward means one of them
        also_kept = {each.value for each in fn.context_writes if each.attribute in fn.reads_by_attribute}
        for position, slot in unread:
            if slot.value in also_kept:
                continue  # backward reads it from there
            if (
                slot.node is not None and not _is_not_tensor(fn, slot.value) and code_of(slot.node) not in meant
            ):  # CTX303
                yield Finding(
                    fn.span(slot.node),
                    f"`{code_of(slot.node)}`, saved tensor {position + 1}, is never read in `backward`; it needlessly stays in "
                    f"memory. Remove it from `save_for_backward` and from the unpacking.",
                    None if fn.saves[0].by else leave_out(fn, position, slot),
                    reads_of_saved(fn),
                )
        yield from self._without_values(fn, also_kept)
        backward = fn.judgeable_backward
        if backward is None:
            return
        for write, entry in kept_for_a_test(fn, backward):
            yield Finding(
                fn.span(write.node),
                f"`{fn.storing_ctx}.{write.attribute}` keeps the input `{entry.name}`, of which `{backward.name}` tests only whether it is `None`; "
                f"it needlessly stays in memory. Keep only that.",
            )
        save = unread_save(fn, backward)
        if save is not None:
            yield Finding(
                fn.span(save.node),
                f"`{backward.name}` of `{fn.name}` never reads `{backward.ctx_name}.saved_tensors`; what is saved here needlessly stays "
                f"in memory. Remove this call, or use the tensors.",
            )

    def _without_values(self, fn: FunctionClass, also_kept: set[Value | None]) -> Iterator[Finding]:
        """The saved tensors that backward names, but whose values it never reads."""
        for each in unvalued_saves(fn):
            if each.slot.node is None or each.slot.value in also_kept:
                continue
            name, backward = code_of(each.slot.node), fn.reading_methods[0].name
            fact, remedy = f"is never used in `{backward}`", "Remove it from `save_for_backward` and from `backward`"
            if each.asked:
                fact = f"is only asked for its {quoted(each.asked)} in `{backward}`"
                remedy = f"Keep {'that' if len(each.asked) == 1 else 'these'} on ctx instead"
            yield Finding(
                fn.span(each.slot.node),
                f"`{name}`, saved tensor {each.position + 1}, {fact}; saving it keeps its memory until then. {remedy}.",
                related=reads_of_saved(fn),
            )


def _names_without_meaning(fn: FunctionClass) -> set[str]:
    """The names of forward that backward reads as well although nothing binds them there."""
    return {node.value for node, _ in names_of_forward(fn, fn.backward)} if fn.backward is not None else set()


def _is_not_tensor(fn: FunctionClass, value: Value) -> bool:
    """Whether the saved value certainly is not a tensor."""
    if is_input(value) and value.index < len(fn.inputs):
        return fn.inputs[value.index].is_tensor is Tri.NO
    return is_tensor(value) is Tri.NO and is_none(value) is Tri.NO
