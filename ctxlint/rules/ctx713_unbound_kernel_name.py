"""CTX713: a kernel of Triton reads a name that it binds only under a flag."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.function import KernelFaultKind, SourceFile
from ctxlint.rules.base import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class UnboundKernelName(Rule[SourceFile]):
    """
    ## What it does
    Reports a name that a Triton kernel binds only under a flag, and reads in any case, if a launch in the same file passes the other
    value of the flag, or `weight is not None` where `weight` is None by default; also in `triton.heuristics`.

    ## Why is this bad?
    Triton does not compile the arm of an `if` that a flag rules out. The name is not defined then, and the launch raises
    `CompilationError`, only for calls without the weight.

    ## Example
    ```python
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def scale_backward(g_ptr, w_ptr, dx_ptr, HAS_WEIGHT: tl.constexpr):
        row = tl.program_id(0)
        g = tl.load(g_ptr + row) * 2
        if HAS_WEIGHT:
            dx = g * tl.load(w_ptr + row)
        tl.store(dx_ptr + row, dx)


    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight=None):
            ctx.save_for_backward(weight)
            return x * 2 if weight is None else x * 2 * weight

        @staticmethod
        def backward(ctx, grad_output):
            (weight,) = ctx.saved_tensors
            grad_output = grad_output.contiguous()
            grad_x = torch.empty_like(grad_output)
            scale_backward[(len(grad_output),)](grad_output, weight, grad_x, weight is not None)
            return grad_x, None
    ```

    ## Use instead
    ```python
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def scale_backward(g_ptr, w_ptr, dx_ptr, HAS_WEIGHT: tl.constexpr):
        row = tl.program_id(0)
        g = tl.load(g_ptr + row) * 2
        if HAS_WEIGHT:
            g *= tl.load(w_ptr + row)
        tl.store(dx_ptr + row, g)


    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight=None):
            ctx.save_for_backward(weight)
            return x * 2 if weight is None else x * 2 * weight

        @staticmethod
        def backward(ctx, grad_output):
            (weight,) = ctx.saved_tensors
            grad_output = grad_output.contiguous()
            grad_x = torch.empty_like(grad_output)
            scale_backward[(len(grad_output),)](grad_output, weight, grad_x, weight is not None)
            return grad_x, None
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Only flags that an `if` tests by themselves, and that the kernel asserts nothing about. What another test decides about is not
    reported.

    ## References
    - [triton.jit](https://triton-lang.org/main/python-api/generated/triton.jit.html)
    """

    code = "CTX713"
    name = "unbound-kernel-name"
    subject = SourceFile
    default = False

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        for each in file.kernel_faults:
            if each.kind is KernelFaultKind.UNBOUND:
                fact = f"`{each.code}` in `{each.kernel}` is bound only under `{each.other}`"
                yield Finding(
                    each.span,
                    f"{fact}; {each.when}, Triton raises CompilationError when it is launched. Bind it for both values.",
                )
