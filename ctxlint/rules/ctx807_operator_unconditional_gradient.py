"""CTX807: backward of a custom operator computes an expensive gradient even if its input needs none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.unconditional_gradients import unconditional_operator_gradients
from ctxlint.model.function import SourceFile
from ctxlint.rules.base import Category, Finding, Rule
from ctxlint.rules.wording import computed_in_vain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class OperatorUnconditionalGradient(Rule[SourceFile]):
    """
    ## What it does
    Reports a matrix product or a convolution in the backward of a custom operator that computes the gradient of a single
    input without a test of `ctx.needs_input_grad`, if another input gets a gradient, too.

    ## Why is this bad?
    Autograd runs the backward if any input needs a gradient, and drops the gradients of the others. With a frozen weight
    (LoRA, prompt tuning), or if an input is data, half of the work is wasted. It is CTX222 for `register_autograd`.

    ## Example
    ```python
    import torch


    @torch.library.custom_op("demo::product", mutates_args=())
    def product(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return x @ weight


    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)


    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        grad_x = grad @ weight.t()
        grad_weight = x.t() @ grad
        return grad_x, grad_weight


    product.register_autograd(backward, setup_context=setup_context)
    ```

    ## Use instead
    ```python
    import torch


    @torch.library.custom_op("demo::product", mutates_args=())
    def product(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return x @ weight


    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)


    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        grad_x = grad @ weight.t() if ctx.needs_input_grad[0] else None
        grad_weight = x.t() @ grad if ctx.needs_input_grad[1] else None
        return grad_x, grad_weight


    product.register_autograd(backward, setup_context=setup_context)
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Off by default. Only matrix products and convolutions of torch count as expensive, and only a backward with one
    `return` is checked. Not reported if the flags are used as a whole, or under a test that mentions gradients or
    training.

    ## References
    - [torch.library.register_autograd](https://pytorch.org/docs/stable/library.html#torch.library.register_autograd)
    """

    code = "CTX807"
    name = "operator-unconditional-gradient"
    subject = SourceFile
    category = Category.PERFORMANCE
    default = False

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        for operator in file.operator_gradients if settings.torch.reach(2, 4) else ():
            ctx = operator.backward.ctx_name
            for each in unconditional_operator_gradients(operator):
                input_name = operator.inputs[each.slot].name
                backward = f"`{operator.backward.node.name.value}` of `{operator.name}`"
                yield Finding(operator.span(each.value), f"{backward} {computed_in_vain(each, input_name, ctx)}")
