"""CTX805: backward of a custom operator never reads the gradient of an output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.outputs import ignored_operator_gradients
from ctxlint.model.function import SourceFile
from ctxlint.rules.base import Category, Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class OperatorIgnoredGradient(Rule[SourceFile]):
    """
    ## What it does
    Reports a parameter of a custom operator's backward that is never read, although it is the gradient of a floating-point
    output.

    ## Why is this bad?
    The output looks differentiable: it has a `grad_fn` and `requires_grad=True`. But a loss computed from it adds nothing to
    the gradients of the inputs, and torch does not warn. This is ignored-output-gradient (CTX211) for
    `register_autograd`.

    ## Example
    ```python
    from typing import Tuple

    import torch


    @torch.library.custom_op("demo::softmax_and_lse", mutates_args=())
    def softmax_and_lse(x: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        return x.softmax(-1), x.logsumexp(-1)


    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output[0])


    def backward(ctx, grad, grad_lse):
        (p,) = ctx.saved_tensors
        return p * (grad - (grad * p).sum(-1, keepdim=True))


    softmax_and_lse.register_autograd(backward, setup_context=setup_context)
    ```

    ## Use instead
    ```python
    from typing import Tuple

    import torch


    @torch.library.custom_op("demo::softmax_and_lse", mutates_args=())
    def softmax_and_lse(x: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        return x.softmax(-1), x.logsumexp(-1)


    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output[0])


    def backward(ctx, grad, grad_lse):
        (p,) = ctx.saved_tensors
        return p * (grad - (grad * p).sum(-1, keepdim=True) + grad_lse.unsqueeze(-1))


    softmax_and_lse.register_autograd(backward, setup_context=setup_context)
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Checked only for outputs that the operator's own Python code certainly computes as floating-point tensors. A name
    that begins with `_` or contains `unused`, `dummy`, `ignored` or `none`, and `del grad`, state that the gradient is dropped on purpose.

    ## References
    - [torch.library.register_autograd](https://pytorch.org/docs/stable/library.html#torch.library.register_autograd)
    """

    code = "CTX805"
    name = "operator-ignored-gradient"
    subject = SourceFile
    category = Category.SUSPICIOUS

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        for operator in file.operator_gradients if settings.torch.reach(2, 4) else ():
            for param in ignored_operator_gradients(operator):
                index = operator.backward.positional.index(param)
                yield Finding(
                    operator.span(param.node.name),
                    f"`{operator.backward.node.name.value}` never reads `{param.name}`, the gradient of output {index + 1} of "
                    f"`{operator.name}`, a floating-point tensor; a loss on that output silently has no effect. Use it, or "
                    f"call `ctx.mark_non_differentiable` in `setup_context`.",
                )
