"""CTX806: backward of a custom operator drops the gradient of an output on purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.outputs import dropped_operator_gradients
from ctxlint.model.function import SourceFile
from ctxlint.rules.base import Category, Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class OperatorDroppedGradient(Rule[SourceFile]):
    """
    ## What it does
    Reports a gradient that a custom operator's backward drops (`_grad_lse`, `del grad_lse`), of an output that is not
    marked as non-differentiable: a floating-point tensor, or one whose gradient is named after an `lse`, a `loss`, a
    `norm` or similar.

    ## Why is this bad?
    The output looks differentiable: it has a `grad_fn` and `requires_grad=True`. A loss that uses it silently gets no
    gradient from it. With the mark, the output has no `grad_fn`, and the same loss raises or treats it as a constant. It
    is CTX221 for `register_autograd`.

    ## Example
    ```python
    from typing import Tuple

    import torch


    @torch.library.custom_op("demo::softmax_with_lse", mutates_args=())
    def softmax_with_lse(x: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        return x.softmax(-1), x.logsumexp(-1)


    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output[0])


    def backward(ctx, grad, _grad_lse):
        (p,) = ctx.saved_tensors
        return p * (grad - (grad * p).sum(-1, keepdim=True))


    softmax_with_lse.register_autograd(backward, setup_context=setup_context)
    ```

    ## Use instead
    ```python
    from typing import Tuple

    import torch


    @torch.library.custom_op("demo::softmax_with_lse", mutates_args=())
    def softmax_with_lse(x: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        return x.softmax(-1), x.logsumexp(-1)


    def setup_context(ctx, inputs, output):
        p, lse = output
        ctx.mark_non_differentiable(lse)
        ctx.save_for_backward(p)


    def backward(ctx, grad, _grad_lse):
        (p,) = ctx.saved_tensors
        return p * (grad - (grad * p).sum(-1, keepdim=True))


    softmax_with_lse.register_autograd(backward, setup_context=setup_context)
    ```

    ## Fix safety
    There is no fix: only the author knows whether the gradient is needed.

    ## Known limits
    Off by default: nothing is wrong if no caller differentiates the output. A gradient with an ordinary name, of an
    output that the operator's own Python code certainly computes as a floating-point tensor, is reported by CTX805,
    which is on by default.

    ## References
    - [torch.library.register_autograd](https://pytorch.org/docs/stable/library.html#torch.library.register_autograd)
    """

    code = "CTX806"
    name = "operator-dropped-gradient"
    subject = SourceFile
    category = Category.SUSPICIOUS
    default = False

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        for operator in file.operator_gradients if settings.torch.reach(2, 4) else ():
            for param, certain in dropped_operator_gradients(operator):
                index = operator.backward.positional.index(param)
                yield Finding(
                    operator.span(param.node.name),
                    f"`{operator.backward.node.name.value}` drops the gradient of output {index + 1} of "
                    f"`{operator.name}`, {'a floating-point tensor' if certain else 'not marked as non-differentiable'}; "
                    f"{'' if certain else 'if it holds floats, '}a loss on it silently has no effect. Use its "
                    f"gradient, or call `ctx.mark_non_differentiable` in `setup_context`.",
                )
