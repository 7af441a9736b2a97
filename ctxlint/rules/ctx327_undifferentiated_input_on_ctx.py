"""CTX327: an input whose gradient is None, stored in an attribute of ctx."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fixes.saving import save_instead
from ctxlint.model.analyses.attribute_uses import released_explicitly
from ctxlint.model.analyses.deliberate_gradients import refuses_to_save
from ctxlint.model.analyses.missing_gradients import depends_on
from ctxlint.model.analyses.stashes import Held, stashes
from ctxlint.model.function import FunctionClass, Trust
from ctxlint.model.interpreter.values import Tri
from ctxlint.rules.base import Category, Finding, FixAvailability, Rule
from ctxlint.rules.related import merged, reads_of, way_to
from ctxlint.rules.stash_wording import remedy
from ctxlint.rules.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.analyses.stashes import Stash
    from ctxlint.model.interpreter.method import Method


class UndifferentiatedInputOnCtx(Rule[FunctionClass]):
    """
    ## What it does
    Reports `ctx.a = t` if `backward` uses `ctx.a` and `t` is an input that is certainly a tensor and whose
    gradient is always `None`: a frozen or quantized weight, a mask, an index. Tuples, lists and dicts that hold such a
    tensor count as well.

    ## Why is this bad?
    `save_for_backward` takes inputs whatever their gradient is. An attribute

    - is not checked: if the tensor is modified in place between forward and backward, the gradient is silently wrong; a
      saved tensor raises `RuntimeError: one of the variables needed for gradient computation has been modified by an
      inplace operation`;
    - is not seen by saved-tensor hooks: `save_on_cpu` does not move it, and checkpointing does not free it, so that a
      layer that loads or dequantizes its weight in `forward` keeps each of them until its graph is freed.

    Inputs that get a gradient are CTX301.

    ## Example
    ```python
    import torch


    class Frozen(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.weight = weight
            return x @ weight.t()

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output @ ctx.weight, None
    ```

    ## Use instead
    ```python
    import torch


    class Frozen(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.save_for_backward(weight)
            return x @ weight.t()

        @staticmethod
        def backward(ctx, grad_output):
            (weight,) = ctx.saved_tensors
            return grad_output @ weight, None
    ```

    ## Fix safety
    As for CTX301.

    ## Known limits
    Off by default: many projects keep masks and indices on ctx that nobody modifies, and that checkpointing has no reason to
    free. Not reported if `backward` reads only metadata such as the shape, or if it clears the attribute itself.

    ## References
    - [FunctionCtx.save_for_backward](https://pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.save_for_backward.html)
    - [Hooks for saved tensors](https://pytorch.org/docs/stable/notes/autograd.html#hooks-for-saved-tensors)
    """

    code = "CTX327"
    name = "undifferentiated-input-on-ctx"
    subject = FunctionClass
    category = Category.SUSPICIOUS
    default = False
    fix = FixAvailability.SOMETIMES
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        yield from merged(self.each(fn), "and here")

    def each(self, fn: FunctionClass) -> Iterator[Finding]:
        """A finding for each assignment."""
        if any(decorator.copies for method in fn.context_methods for decorator in method.decorators):
            return
        for stash in stashes(fn):
            if stash.held is not Held.UNDIFFERENTIATED or _is_only_asked(stash) or refuses_to_save(fn):
                continue
            names = tuple(name for name in stash.names if _is_tensor(fn, name))
            if not names or (stash.one_of and names != stash.names) or released_explicitly(fn, stash.write.attribute):
                continue
            yield Finding(
                fn.span(stash.write.node),
                _message(stash, names),
                save_instead(fn, stash),
                (*way_to(fn, stash.write), *reads_of(fn, stash.write.attribute)),
                stash.rests_on,
            )


def _is_only_asked(stash: Stash) -> bool:
    """Whether backward does not need the values, but metadata, or perhaps this very object."""
    return stash.uses.only_metadata or (stash.uses.of_this_object and not stash.uses.reads_values)


def _is_tensor(fn: FunctionClass, name: str) -> bool:
    """Whether an input is certainly a tensor, by itself or as an output depends on it like on one."""
    entry = next((each for each in fn.inputs if each.name == name), None)
    forward = fn.forward
    if (
        entry is None
        or forward is None
        or any(not each.tensor and each.trust is not Trust.HINT for each in entry.evidence)
    ):
        return False
    if entry.is_tensor is Tri.YES or any(_takes_a_tensor(forward, use) for use in forward.named.get(name, ())):
        return True
    return depends_on(fn, forward, entry)


def _takes_a_tensor(method: Method, use: cst.Name) -> bool:
    """Whether an operation of torch gets a name, perhaps transposed or converted, where it takes nothing but a tensor."""
    node: cst.CSTNode = use
    around = method.parents[use]
    while isinstance(around, cst.Attribute) and around.value is node and around.attr.value in _OF_TENSORS:
        called = method.parents[around]
        node = called if isinstance(called, cst.Call) and called.func is around else around
        around = method.parents[node]
    if isinstance(around, cst.BinaryOperation):
        return isinstance(around.operator, cst.MatrixMultiply)
    call = method.parents[around] if isinstance(around, cst.Arg) else None
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
        return False
    place = _PLACES.get(call.func.attr.value)
    passed = [each.value for each in call.args if each.keyword is None and not each.star]
    return place is not None and node in passed[place]


_OF_TENSORS = frozenset(str.split("T bfloat16 contiguous double float half mT t to transpose type_as"))
"""The methods that transpose or convert a tensor."""

_PLACES = {
    **dict.fromkeys(("bmm", "linear", "matmul", "mm"), slice(None)),
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), slice(3)),
    **dict.fromkeys(("gather", "index_select"), slice(-1, None)),
    **dict.fromkeys(("masked_fill", "masked_fill_", "masked_select"), slice(1)),
}
"""The arguments that some functions and methods of torch take as tensors."""


def _message(stash: Stash, names: tuple[str, ...]) -> str:
    several = len(names) > 1 and not stash.one_of
    named = " or ".join(f"`{name}`" for name in names) if stash.one_of else quoted(names)
    what = f"the input{'s' if several else ''} {named}{' on some paths' if stash.on_some_paths else ''}"
    effect = f"in-place modifications {'silently give wrong gradients' if stash.uses.computes else 'go unnoticed'}"
    if stash.is_noticed:
        effect = f"{'they stay' if several else 'it stays'} in memory as long as the graph"
    return (
        f"`{stash.fn.storing_ctx}.{stash.write.attribute}` keeps {what}; {effect}, "
        f"and saved-tensor hooks do not see {'them' if several else 'it'}. {remedy(stash)}"
    )
