"""CTX221: the gradient of an output that may be differentiable is dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.outputs import dropped_gradients, output_name, surely_differentiable
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Category, Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


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
    Off by default: nothing is wrong if no caller differentiates the output. An output that is certainly a
    floating-point tensor and whose gradient has an ordinary name is reported by CTX211, which is on by default.

    ## References
    - [FunctionCtx.mark_non_differentiable](https://pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.mark_non_differentiable.html)
    """

    code = "CTX221"
    name = "dropped-output-gradient"
    subject = FunctionClass
    category = Category.SUSPICIOUS
    default = False
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        backward = fn.counted_backward
        if backward is None:
            return
        for each in dropped_gradients(fn):
            name = output_name(fn, each.index)
            output = f"output {each.index + 1}" + (f" (`{name}`)" if name is not None else "")
            certain = surely_differentiable(fn, each.index)
            yield Finding(
                fn.span(each.param.node.name),
                f"`{backward.name}` of `{fn.name}` drops the gradient of {output}, "
                f"{'a floating-point tensor' if certain else 'not marked as non-differentiable'}; "
                f"{'' if certain else 'if it holds floats, '}a loss on it silently has no effect. Use its "
                f"gradient, or call `{fn.storing_ctx}.mark_non_differentiable`.",
            )
