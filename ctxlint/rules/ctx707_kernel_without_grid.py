"""CTX707: a kernel of Triton that is called instead of launched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.function import FunctionClass
from ctxlint.model.interpreter.events import MisfitKind
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.misfit_wording import misfits
from ctxlint.rules.related import way_to
from ctxlint.rules.wording import fitting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class KernelWithoutGrid(Rule[FunctionClass]):
    """
    ## What it does
    Reports calls of functions under `triton.jit` without `[grid]`, in a Function or in functions that it calls.

    ## Why is this bad?
    Only another kernel can call such a function. Elsewhere the call raises `RuntimeError: Cannot call @triton.jit'd
    outside of the scope of a kernel`, and, if the kernel is under `triton.autotune` or `triton.heuristics`, `TypeError`.

    ## Example
    ```python
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def double(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2, mask=at < n)


    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = torch.empty_like(x)
            double(x, y, x.numel(), BLOCK=128)
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
    def double(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2, mask=at < n)


    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = torch.empty_like(x)
            double[(triton.cdiv(x.numel(), 128),)](x, y, x.numel(), BLOCK=128)
            return y

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * 2
    ```

    A launch returns nothing: a kernel stores its results through the pointers of tensors that it gets.

    ## Fix safety
    There is no fix: only the author knows the grid, and where the kernel stores its results.

    ## Known limits
    Not reported: calls under `try`; kernels that a name is bound to again, that have several definitions, that the project
    decorates itself, or that a function defines or returns, and those under a decorator that the project replaces
    where Triton is missing; calls with `*args` or `**kwargs`. With `TRITON_INTERPRET=1`,
    a function whose body uses nothing of Triton can be called.

    ## References
    - [triton.jit](https://triton-lang.org/main/python-api/generated/triton.jit.html)
    """

    code = "CTX707"
    name = "kernel-without-grid"
    subject = FunctionClass
    says_if_it_runs = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for found in misfits(fn, MisfitKind.KERNEL_CALL):
            misfit = found.misfit
            stores = ", and store the result in the kernel" * misfit.valued
            consequence = f"it raises {misfit.raises} {found.when}{found.unless_skipped}"
            fact = f"{found.by} calls the Triton kernel `{misfit.callee}` without a grid"
            remedies = (f"Write `{misfit.callee}[grid](...)`{stores}", f"Add `[grid]`{stores}")
            message = fitting(*(f"{fact}; {consequence}. {remedy}." for remedy in remedies))
            yield Finding(fn.span(found.event.node), message, related=way_to(fn, found.event))
