"""CTX257: backward differentiates by all parameters of a module, of which some may be frozen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.frozen_targets import frozen_targets
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Category, Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.analyses.frozen_targets import FrozenTarget


class GradByFrozenTensor(Rule[FunctionClass]):
    """
    ## What it does
    Reports `torch.autograd.grad` in a `backward` that differentiates by all parameters of a module, or by all of the
    saved `*args`, without a test of which of them need a gradient. CTX224 reports single inputs.

    ## Why is this bad?
    `torch.autograd.grad` raises `RuntimeError` if one of the tensors does not require a gradient, also with
    `allow_unused=True`: "One of the differentiated Tensors does not require grad". So one frozen parameter makes
    `backward` raise, although autograd asks for the other gradients only. Without `allow_unused=True`, it also raises
    for a parameter that the function does not use.

    ## Example
    ```python
    import torch


    class Block(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, module, *weights):
            ctx.save_for_backward(x)
            ctx.module = module
            return module(x)

        @staticmethod
        def backward(ctx, grad_output):
            x = ctx.saved_tensors[0].detach().requires_grad_()
            module = ctx.module
            with torch.enable_grad():
                y = module(x)
            grad_x, *grads = torch.autograd.grad(y, (x, *module.parameters()), grad_output)
            return grad_x, None, *grads
    ```

    ## Use instead
    ```python
    import torch


    class Block(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, module, *weights):
            ctx.save_for_backward(x)
            ctx.module = module
            return module(x)

        @staticmethod
        def backward(ctx, grad_output):
            x = ctx.saved_tensors[0].detach().requires_grad_()
            module = ctx.module
            with torch.enable_grad():
                y = module(x)
            wanted = [each for each in module.parameters() if each.requires_grad]
            grad_x, *found = torch.autograd.grad(y, (x, *wanted), grad_output, allow_unused=True)
            found = iter(found)
            return grad_x, None, *(next(found) if each.requires_grad else None for each in module.parameters())
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Off by default: a project may never freeze a parameter, and callers may filter what they pass. Not reported if
    `backward` asks for the flags in `ctx.needs_input_grad`, for `requires_grad` in a test or in a loop over parameters,
    filters, or sets the flag.

    ## References
    - [torch.autograd.grad](https://pytorch.org/docs/stable/generated/torch.autograd.grad.html)
    """

    code = "CTX257"
    name = "grad-by-frozen-tensor"
    subject = FunctionClass
    category = Category.SUSPICIOUS
    default = False
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for found in list(frozen_targets(fn))[:1]:
            yield Finding(fn.span(found.node), _message(fn, found))


def _message(fn: FunctionClass, found: FrozenTarget) -> str:
    frozen, passed = ("frozen or not used", "`allow_unused=True` and") if found.needs_all else ("frozen", "only")
    return (
        f"`backward` of `{fn.name}` differentiates by all of `{found.name}`; if one is {frozen}, "
        f"`torch.autograd.grad` raises RuntimeError. Pass {passed} those with `requires_grad`; use zeros for others."
    )
