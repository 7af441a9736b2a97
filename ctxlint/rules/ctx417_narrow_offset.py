"""CTX417: a kernel of Triton computes an offset in 32 bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.called_code import limits_all
from ctxlint.model.function import FunctionClass
from ctxlint.model.interpreter.events import KernelFaultKind
from ctxlint.rules.base import Category, Finding, Rule
from ctxlint.rules.misfit_wording import faulty_launches
from ctxlint.rules.related import way_to
from ctxlint.rules.wording import fitting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.interpreter.events import FaultyLaunch, KernelFault


class NarrowOffset(Rule[FunctionClass]):
    """
    ## What it does
    Reports the launch of a Triton kernel that adds a product of `tl.program_id(...)` and a size or a stride of a tensor to an
    address, where nothing has made it an integer of 64 bits.

    ## Why is this bad?
    `tl.program_id` returns an integer of 32 bits, and so is a product of it with an argument below 2**31. A product that does not fit, as in a
    tensor of more than 2**31 elements, wraps around to a negative number. The kernel then raises `CUDA error: an illegal memory access was encountered`, or silently reads or writes elsewhere.

    ## Example
    ```python
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def double(x_ptr, y_ptr, stride, n, BLOCK: tl.constexpr):
        row = tl.program_id(0)
        at = tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride + at, mask=at < n)
        tl.store(y_ptr + row * stride + at, x * 2, mask=at < n)


    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x = x.contiguous()
            y = torch.empty_like(x)
            double[(x.shape[0],)](x, y, x.stride(0), x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
            return y

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * 2
    ```

    ## Use instead
    ```python
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def double(x_ptr, y_ptr, stride, n, BLOCK: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        at = tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride + at, mask=at < n)
        tl.store(y_ptr + row * stride + at, x * 2, mask=at < n)


    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x = x.contiguous()
            y = torch.empty_like(x)
            double[(x.shape[0],)](x, y, x.stride(0), x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
            return y

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * 2
    ```

    ## Fix safety
    There is no fix: 64 bits cost registers.

    ## Known limits
    Off by default: most tensors are smaller. Reported once for each kernel of a Function. Only products that are added to a parameter of the kernel, and
    only if the launch passes `x.stride(0)`, `x.stride(-2)`, or a size such as `x.shape[n]`. Indices that are computed or loaded are not
    reported, as they may have 64 bits, nor block pointers and descriptors, which use 64 bits. Not reported
    in a kernel that mentions `tl.int64`, nor where the Function, a function that it calls or every caller compares a number of
    elements with a limit for large tensors, such as `2**31`.

    ## References
    - [triton.language.program_id](https://triton-lang.org/main/python-api/generated/triton.language.program_id.html)
    - [Triton semantics](https://triton-lang.org/main/python-api/triton-semantics.html)
    """

    code = "CTX417"
    name = "narrow-offset"
    subject = FunctionClass
    category = Category.SUSPICIOUS
    default = False

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        launches: dict[str, list[tuple[FaultyLaunch, KernelFault]]] = {}
        makers: dict[str, str] = {}
        if limits_all(fn):
            return
        for event, fault, by in faulty_launches(fn, KernelFaultKind.NARROW):
            launches.setdefault(fault.callee, []).append((event, fault))
            makers.setdefault(fault.callee, by)
        for kernel, faults in launches.items():
            (event, fault), *_others = faults
            pointer, index = fault.others
            launch = f"{makers[kernel]} launches `{kernel}`"
            effect = "from 2**31 it wraps, which faults or is silently wrong"
            wide = f"{index}.to(tl.int64)"
            yield Finding(
                fn.span(event.node),
                fitting(
                    f"{launch}, which adds `{fault.code}` to `{pointer}` in 32 bits; {effect}. Write `{wide}`.",
                    f"{launch}, which adds an offset to `{pointer}` in 32 bits; {effect}. Write `.to(tl.int64)`.",
                    f"{launch}, which computes an offset in 32 bits; {effect}. Write `.to(tl.int64)`.",
                ),
                related=way_to(fn, *(event for event, _fault in faults)),
            )
