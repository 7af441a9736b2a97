"""CTX401: forward changes an input in place and does not say so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fixes.in_place import mark_dirty
from ctxlint.model.analyses.mutations import (
    input_written,
    marked_dirty,
    may_be_marked,
    on_a_temporary,
    returns_memory_of,
    without_gradient,
)
from ctxlint.model.function import FunctionClass, Mutation
from ctxlint.model.interpreter.values import Tri
from ctxlint.rules.base import Finding, FixAvailability, Rule
from ctxlint.rules.related import way_to
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.function import Input
    from ctxlint.model.interpreter.values import Parameter


class MissingMarkDirty(Rule[FunctionClass]):
    """
    ## What it does
    Reports in-place modifications in `forward` of an input that gets a gradient, or that is returned, without
    `mark_dirty`: in-place methods, `op=`, item assignment, `out=`, `torch.distributed.all_reduce`. A view of the input
    counts as the input, and so do `contiguous()` and `reshape`.

    ## Why is this bad?
    Autograd runs `forward` without recording, so it does not see the modification. A leaf that requires grad is
    overwritten without the usual error, `a leaf Variable that requires grad has been used in an in-place operation`.
    And if the caller continues with the tensor that it passed in instead of the returned one, the backward of this
    Function is bypassed: the gradient is silently wrong.

    ## Example
    ```python
    import torch


    class Double_(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            return x

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * 2
    ```

    ## Use instead
    ```python
    import torch


    class Double_(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * 2
    ```

    ## Fix safety
    The mark is added if `forward` takes ctx, modifies the input on every path, and returns the input itself, and
    nothing else, on every path: with several outputs, a marked input that is a view raises. The fix is unsafe: calls on
    a leaf that requires grad then raise, as they should.

    ## Known limits
    A compiled kernel that writes to an input is not detected, nor is a helper outside the project. Inputs without a gradient, such as running statistics
    and output buffers, may be modified. Not reported if the write goes through `.data`, if the ctx is passed to another
    function, which may mark the input, or if a test checks for gradients first.

    ## References
    - [FunctionCtx.mark_dirty](https://pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.mark_dirty.html)
    """

    code = "CTX401"
    name = "missing-mark-dirty"
    subject = FunctionClass
    fix = FixAvailability.SOMETIMES

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        forward = fn.forward
        marked = marked_dirty(fn)
        if forward is None or forward.inherited or not forward.signature_known or marked is None or not fn.gradients:
            return
        reported: set[int] = set()
        for mutation in forward.facts.of(Mutation):
            tensor = input_written(mutation)
            if tensor is None or tensor in marked or tensor.index in reported or tensor.index >= len(fn.inputs):
                continue
            if on_a_temporary(mutation) or without_gradient(mutation):
                continue
            returned = returns_memory_of(fn, tensor)
            given = fn.inputs[tensor.index]
            if given.surely_differentiable or (returned and _may_get_gradient(given, mutation)):
                reported.add(tensor.index)
                yield Finding(
                    fn.span(mutation.node),
                    _message(fn, tensor, mutation),
                    mark_dirty(fn, forward, mutation, tensor),
                    way_to(fn, mutation),
                    rests_on=(mutation.target,) if mutation.target is not None else (),
                )


def _may_get_gradient(given: Input, mutation: Mutation) -> bool:
    """Whether an input is certainly a tensor and nothing says that it has no gradient."""
    in_place = mutation.how in operations.INPLACE_METHODS or mutation.how in operations.IN_PLACE_COLLECTIVES
    in_place = in_place or mutation.how == "out="
    return given.gradient is not Tri.NO and (given.is_tensor is Tri.YES or in_place)


def _message(fn: FunctionClass, tensor: Parameter, mutation: Mutation) -> str:
    name = tensor.name
    where = "" if fn.setup_context is None else " in `setup_context`"
    remedy = f"Call `ctx.mark_dirty({name})`{where}, or work" if may_be_marked(fn, tensor) else "Work"
    return (
        f"`{mutation.doer}` modifies the input `{name}` in place without `mark_dirty`; a leaf is silently overwritten, and later uses "
        f"of the input silently bypass this `backward`. {remedy} on `{name}.clone()`."
    )
