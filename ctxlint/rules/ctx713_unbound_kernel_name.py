"""CTX713: a kernel of Triton reads a name that it binds only under a flag."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.function import FunctionClass
from ctxlint.model.interpreter.events import KernelFaultKind
from ctxlint.model.interpreter.values import is_input
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.misfit_wording import faulty_launches
from ctxlint.rules.related import way_to
from ctxlint.rules.wording import fitting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class UnboundKernelName(Rule[FunctionClass]):
    """
    ## What it does
    Reports the launch of a Triton kernel that binds a name only under a flag, and reads it in any case, if the launch passes the other
    value of the flag, or `weight is not None` for an input that may be `None`; also by `triton.heuristics`, or if the kernel itself
    tests `w_ptr is not None`.

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
    Off by default: not every test that keeps `None` from a launch is known. Only constants that an `if` tests by themselves, and that the
    kernel asserts nothing about. Not reported for `None` if a test that is not about gradients comes before the launch, if `forward`
    returns or raises under a test of the input, or if all calls in view pass a tensor.

    ## References
    - [triton.jit](https://triton-lang.org/main/python-api/generated/triton.jit.html)
    """

    code = "CTX713"
    name = "unbound-kernel-name"
    subject = FunctionClass
    default = False

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for event, fault, by in faulty_launches(fn, KernelFaultKind.UNBOUND):
            bound, otherwise = fault.others
            absent = fault.absent and (kept_value(fn, fault.absent) or fault.absent)
            when = f"if `{fn.inputs[absent.index].name}` is `None`" if is_input(absent) else f"as `{otherwise}` holds"
            fact = f"{by} launches `{fault.callee}`, which binds `{fault.code}` only if `{bound}`, and reads it in any case"
            raises = f"Triton raises CompilationError {when}"
            yield Finding(
                fn.span(event.node),
                fitting(
                    *(f"{fact}; {raises}. {remedy}" for remedy in (f"Bind `{fault.code}` in both cases.", "Bind it."))
                ),
                related=way_to(fn, event),
            )
