"""CTX714: all programs of a kernel of Triton store to the same addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.function import FunctionClass
from ctxlint.model.interpreter.events import KernelFaultKind
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.misfit_wording import faulty_launches
from ctxlint.rules.related import way_to
from ctxlint.rules.wording import fitting, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.interpreter.events import FaultyLaunch, KernelFault


class SharedKernelStore(Rule[FunctionClass]):
    """
    ## What it does
    Reports the launch of a Triton kernel in which `tl.store` writes what differs between the programs along an axis of the grid to
    addresses that are the same in all of them: nothing in the address or the mask depends on `tl.program_id` of that axis.

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
    Off by default: a size may be such that there is one program only. Only for grids that are a number, or computed from a size of a tensor
    and a number. Not reported under a test, in a kernel in which programs wait for each other, or if other code of the kernel may write
    through the pointer.

    ## References
    - [triton.jit](https://triton-lang.org/main/python-api/generated/triton.jit.html)
    """

    code = "CTX714"
    name = "shared-kernel-store"
    subject = FunctionClass
    default = False

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        launches: dict[tuple[str, str, str], list[tuple[FaultyLaunch, KernelFault]]] = {}
        for event, fault, by in faulty_launches(fn, KernelFaultKind.SHARED):
            launches.setdefault((by, fault.callee, fault.sizes[0]), []).append((event, fault))
        for (by, kernel, along), faults in launches.items():
            event, fault = faults[0]
            fact = f"{by} launches `{kernel}`, whose programs{along} all store to the same addresses"
            pointers, effect = quoted(fault.code for _event, fault in faults), "they silently overwrite each other"
            like = f", as to `{fault.others[0]}`" if fault.others[0] else ""
            remedies = (f"Add the program's offset{each}, or use `tl.atomic_add` for a sum." for each in (like, ""))
            yield Finding(
                fn.span(event.node),
                fitting(*(f"{fact} of {pointers}; {effect}. {remedy}" for remedy in remedies)),
                related=way_to(fn, *(event for event, _fault in faults)),
            )
