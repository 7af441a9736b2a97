"""CTX221: the gradient of an output that may be differentiable is dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.outputs import dropped_gradients, may_be_none, output_name, surely_differentiable
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Category, Finding, Rule
from ctxlint.rules.related import at
from ctxlint.rules.wording import first_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.analyses.outputs import OutputGradient


class DroppedOutputGradient(Rule[FunctionClass]):
    """
    ## What it does
    Reports a gradient that `backward` drops, under any name (`_`, `*args`, `del grad`), of an output that is not marked
    as non-differentiable: a floating-point tensor, or a kernel's result called `lse`, `loss`, `norm` or similar.

    ## Why is this bad?
    A log-sum-exp, a norm or an auxiliary loss that is returned next to the result looks differentiable: it has a
    `grad_fn` and `requires_grad=True`. A loss that uses it silently gets no gradient from it. With the mark, the output
    has no `grad_fn`, and the same loss raises or treats it as a constant.

    ## Example
    ```python
    import torch
    from kernels import attention_backward, attention_forward


    class Attention(torch.autograd.Function):
        @staticmethod
        def forward(ctx, q, k, v):
            out, lse = attention_forward(q, k, v)
            ctx.save_for_backward(q, k, v, out, lse)
            return out, lse

        @staticmethod
        def backward(ctx, grad_out, *_):
            return attention_backward(grad_out, *ctx.saved_tensors)
    ```

    ## Use instead
    ```python
    import torch
    from kernels import attention_backward, attention_forward


    class Attention(torch.autograd.Function):
        @staticmethod
        def forward(ctx, q, k, v):
            out, lse = attention_forward(q, k, v)
            ctx.save_for_backward(q, k, v, out, lse)
            ctx.mark_non_differentiable(lse)
            return out, lse

        @staticmethod
        def backward(ctx, grad_out, *_):
            return attention_backward(grad_out, *ctx.saved_tensors)
    ```

    ## Fix safety
    There is no fix: only the author knows whether the gradient is needed.

    ## Known limits
    Off by default: nothing is wrong if no caller differentiates the output. Reported by default if `forward` marks other
    outputs as non-differentiable, but not this one, whose name suggests floats, and neither the name of the gradient nor a
    comment says that it is unused. An output that is certainly a
    floating-point tensor and whose gradient has an ordinary name is reported by CTX211, which is on by default.

    ## References
    - [FunctionCtx.mark_non_differentiable](https://pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.mark_non_differentiable.html)
    """

    code = "CTX221"
    name = "dropped-output-gradient"
    subject = FunctionClass
    category = Category.SUSPICIOUS
    default = False
    default_in_view = True
    about_backward = True

    def may_be_in_view(self, subject: FunctionClass) -> bool:
        return bool(subject.context_calls("mark_non_differentiable"))

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        backward = fn.counted_backward
        if backward is None:
            return
        dropped = [(each, surely_differentiable(fn, each.index)) for each in dropped_gradients(fn)]
        for kind in dict.fromkeys((certain, each.wanted) for each, certain in dropped):
            alike = [each for each, certain in dropped if (certain, each.wanted) == kind]
            notes = at(fn, [each.param.node.name for each in alike[1:]], "and this one")
            message = _message(fn, backward.name, alike, certain=kind[0])
            yield Finding(fn.span(alike[0].param.node.name), message, related=notes, in_view=alike[0].wanted)


def _message(fn: FunctionClass, backward: str, dropped: list[OutputGradient], *, certain: bool) -> str:
    """What is lost; ``certain``: the outputs are floating-point tensors."""
    outputs, wanted = _outputs(fn, [each.index for each in dropped]), dropped[0].wanted
    several = len(dropped) > 1
    gradient, them, use = ("gradients", "them", "their gradients") if several else ("gradient", "it", "its gradient")
    kind, condition = "not marked as non-differentiable", f"if {'they hold' if several else 'it holds'} floats, "
    if certain:
        kind, condition = "floating-point tensors" if several else "a floating-point tensor", ""
    fact = f"`{backward}` of `{fn.name}` drops the {gradient} of {outputs}, {kind}"
    mark = f"mark {them} as well" if wanted else f"call `{fn.storing_ctx}.mark_non_differentiable`"
    where = f" where {'they are tensors' if several else 'it is a tensor'}"
    where *= any(may_be_none(fn, each.index) for each in dropped)
    return f"{fact}; {condition}a loss on {them} silently has no effect. Use {use}, or {mark}{where}."


def _outputs(fn: FunctionClass, indices: list[int]) -> str:
    """``output 2 (`lse`)``, ``the outputs `lse` and `norm```, or ``3 outputs``."""
    names = [output_name(fn, each) for each in indices]
    if len(indices) == 1:
        return f"output {indices[0] + 1}" + (f" (`{names[0]}`)" if names[0] is not None else "")
    known = [each for each in names if each is not None]
    if len(known) < len(names):
        return f"{len(indices)} outputs"
    return f"the outputs {first_of(known, _MOST_NAMES)}"


_MOST_NAMES = 2
