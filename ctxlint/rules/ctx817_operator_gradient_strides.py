"""CTX817: the backward of a custom operator passes an incoming gradient to a kernel without its strides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.layout_uses import silent_uses
from ctxlint.model.function import SourceFile
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.layout_wording import assumed_contiguous

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class OperatorGradientStrides(Rule[SourceFile]):
    """
    ## What it does
    Reports what CTX410 reports, in the backward function given to `register_autograd`: a Triton kernel of the project that
    gets an incoming gradient without its strides, or without the last one.

    ## Why is this bad?
    Torch passes gradients as they come, in any memory layout: that of `torch.cat` is a part of a larger tensor, and that
    of `y.sum()` one expanded value. A kernel that computes addresses from the shape silently reads wrong values.
    `opcheck` does not try such gradients.

    ## Example
    ```python
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def double_kernel(grad, out, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + at, 2 * tl.load(grad + at, mask=at < n), mask=at < n)


    @torch.library.custom_op("demo::double", mutates_args=())
    def double(x: torch.Tensor) -> torch.Tensor:
        return 2 * x


    def backward(ctx, grad):
        grad_x = torch.empty(grad.shape)
        double_kernel[(1,)](grad, grad_x, grad_x.numel(), BLOCK=64)
        return grad_x


    double.register_autograd(backward)
    ```

    ## Use instead
    ```python
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def double_kernel(grad, out, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + at, 2 * tl.load(grad + at, mask=at < n), mask=at < n)


    @torch.library.custom_op("demo::double", mutates_args=())
    def double(x: torch.Tensor) -> torch.Tensor:
        return 2 * x


    def backward(ctx, grad):
        grad = grad.contiguous()
        grad_x = torch.empty(grad.shape)
        double_kernel[(1,)](grad, grad_x, grad_x.numel(), BLOCK=64)
        return grad_x


    double.register_autograd(backward)
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Not reported if another function of the project gets the gradient as well, as it may look at its layout. What is not
    certain is left to CTX809.

    ## References
    - [torch.library.register_autograd](https://pytorch.org/docs/stable/library.html#torch.library.register_autograd)
    """

    code = "CTX817"
    name = "operator-gradient-strides"
    subject = SourceFile

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        for operator in file.operator_gradients if settings.torch.reach(2, 4) else ():
            for use in silent_uses(operator.backward, ()):
                yield Finding(operator.span(use.node), assumed_contiguous(use))
