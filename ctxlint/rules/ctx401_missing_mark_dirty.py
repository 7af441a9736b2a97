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
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.function import Input
    from ctxlint.model.interpreter.values import Parameter


class MissingMarkDirty(Rule[FunctionClass]):
    """
    ## What it does
    Reports in-place changes in `forward` of an input that gets a gradient, or that is returned, where `mark_dirty` is
    not told of it: in-place methods, `op=`, item assignment, `out=`, `torch.distributed.all_reduce`. A view of the
    input counts as the input, as do `contiguous()` and `reshape`.

    ## Why is this bad?
    Autograd runs forward without recording, so nothing notices the change. A leaf that requires grad is overwritten
    without the error that an in-place operation on it raises elsewhere, `a leaf Variable that requires grad has been
    used in an in-place operation`. And a caller that goes on with the tensor it passed in, rather than with what it got
    back, bypasses the backward of this Function: its gradient is silently wrong.

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
    The mark is added where forward takes ctx, changes the input on every path and returns the input itself, and it
    alone, on every path: a marked input that is a view raises beside other outputs. That is unsafe: calls on a leaf that requires grad then raise, as they should.

    ## Known limits
    A kernel or a helper that writes into an input is not seen. Inputs without a gradient, such as running statistics
    and output buffers, may be changed. Silent where the write goes through `.data`, where the ctx is given to another
    function, which may mark, and where a test asks for gradients first.

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
                    rests_on=(mutation.target,) if mutation.target is not None else (),
                )


def _may_get_gradient(given: Input, mutation: Mutation) -> bool:
    """Whether an input is certainly a tensor and nothing says that it has no gradient."""
    in_place = mutation.how in operations.INPLACE_METHODS or mutation.how in ("out=", "all_reduce")
    return given.gradient is not Tri.NO and (given.is_tensor is Tri.YES or in_place)


def _message(fn: FunctionClass, tensor: Parameter, mutation: Mutation) -> str:
    name = tensor.name
    where = "" if fn.setup_context is None else " in `setup_context`"
    remedy = f"Call `ctx.mark_dirty({name})`{where}, or work" if may_be_marked(fn, tensor) else "Work"
    return (
        f"`{mutation.how}` changes the input `{name}` in place, unmarked; a leaf is silently overwritten, and later uses "
        f"of the input silently bypass this `backward`. {remedy} on `{name}.clone()`."
    )
