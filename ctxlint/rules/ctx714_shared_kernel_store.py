"""CTX714: all programs of a kernel of Triton store to the same addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.function import KernelFaultKind, SourceFile
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.wording import fitting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class SharedKernelStore(Rule[SourceFile]):
    """
    ## What it does
    Reports `tl.store` of what differs between the programs of a launch at addresses that are the same in all of them: nothing in the
    address, the mask or the pointer depends on `tl.program_id`.

    ## Why is this bad?
    The programs overwrite each other. What the last one has stored stays, and the rest of the tensor silently is uninitialized memory. A
    sum over all programs is that of one of them.

    ## Example
    ```python
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def double_backward(g_ptr, dx_ptr, g_stride, dx_stride, n, BLOCK: tl.constexpr):
        row = tl.program_id(0)
        g_ptr += row * g_stride
        at = tl.arange(0, BLOCK)
        tl.store(dx_ptr + at, 2 * tl.load(g_ptr + at, mask=at < n), mask=at < n)


    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad_output):
            grad_x = torch.empty(grad_output.shape, device=grad_output.device)
            rows, n = grad_output.shape
            double_backward[(rows,)](grad_output.contiguous(), grad_x, n, n, n, BLOCK=triton.next_power_of_2(n))
            return grad_x
    ```

    ## Use instead
    ```python
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def double_backward(g_ptr, dx_ptr, g_stride, dx_stride, n, BLOCK: tl.constexpr):
        row = tl.program_id(0)
        g_ptr += row * g_stride
        dx_ptr += row * dx_stride
        at = tl.arange(0, BLOCK)
        tl.store(dx_ptr + at, 2 * tl.load(g_ptr + at, mask=at < n), mask=at < n)


    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad_output):
            grad_x = torch.empty(grad_output.shape, device=grad_output.device)
            rows, n = grad_output.shape
            double_backward[(rows,)](grad_output.contiguous(), grad_x, n, n, n, BLOCK=triton.next_power_of_2(n))
            return grad_x
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Only launches in the same file whose grid is written out and not 1. Not reported under a test, in a kernel in which programs wait for
    each other, or if other code of the kernel may write through the pointer.

    ## References
    - [triton.jit](https://triton-lang.org/main/python-api/generated/triton.jit.html)
    """

    code = "CTX714"
    name = "shared-kernel-store"
    subject = SourceFile
    default = False

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        for each in file.kernel_faults:
            if each.kind is KernelFaultKind.SHARED:
                fact = f"All programs of `{each.kernel}` store to the same addresses of `{each.code}`"
                effect = "they silently overwrite each other"
                add, sums = "Add the offset of the program", ", or use `tl.atomic_add` for a sum."
                like = f", as to `{each.other}`" if each.other else ""
                why = ", which do not depend on `program_id`"
                yield Finding(
                    each.span, fitting(f"{fact}{why}; {effect}. {add}{like}{sums}", f"{fact}; {effect}. {add}{sums}")
                )
