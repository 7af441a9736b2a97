"""CTX715: a value for each row of a block in a kernel of Triton is combined with its columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.function import FunctionClass
from ctxlint.model.interpreter.events import KernelFaultKind
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.misfit_wording import faulty_launches
from ctxlint.rules.related import way_to
from ctxlint.rules.wording import fitting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.interpreter.events import KernelFault


class MisalignedKernelOperand(Rule[FunctionClass]):
    """
    ## What it does
    Reports the launch of a Triton kernel in which an operand with one value for each row of a block, such as `tl.sum(block, axis=1)`, is
    combined with the block without `[:, None]`.

    ## Why is this bad?
    Triton adds missing dimensions in front, as torch does: the values for the rows become a row. It raises `CompilationError` if
    the block has not as many columns as rows. If it has, each column silently gets the value for another row.

    ## Example
    ```python
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def norm_backward(g_ptr, x_ptr, dx_ptr, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
        row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        column = tl.arange(0, COLUMNS)
        at = row[:, None] * n + column[None, :]
        g, x = tl.load(g_ptr + at), tl.load(x_ptr + at)
        mean = tl.sum(g * x, axis=1) / n
        tl.store(dx_ptr + at, g - x * mean)


    class Norm(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x = x.contiguous()
            y = x / x.pow(2).mean(-1, keepdim=True).sqrt()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad_output):
            (y,) = ctx.saved_tensors
            grad_x = torch.empty_like(y)
            n = y.shape[1]
            norm_backward[(1,)](grad_output.contiguous(), y, grad_x, n, ROWS=16, COLUMNS=32)
            return grad_x
    ```

    ## Use instead
    ```python
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def norm_backward(g_ptr, x_ptr, dx_ptr, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
        row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        column = tl.arange(0, COLUMNS)
        at = row[:, None] * n + column[None, :]
        g, x = tl.load(g_ptr + at), tl.load(x_ptr + at)
        mean = tl.sum(g * x, axis=1) / n
        tl.store(dx_ptr + at, g - x * mean[:, None])


    class Norm(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x = x.contiguous()
            y = x / x.pow(2).mean(-1, keepdim=True).sqrt()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad_output):
            (y,) = ctx.saved_tensors
            grad_x = torch.empty_like(y)
            n = y.shape[1]
            norm_backward[(1,)](grad_output.contiguous(), y, grad_x, n, ROWS=16, COLUMNS=32)
            return grad_x
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Off by default: the sizes of blocks are worked out without Triton. Only sums, maxima and minima of rows and what is computed from
    them, where no test decides. Only sizes that are parameters of the kernel or numbers, and blocks made by `tl.arange`, `tl.load`, sums, and operators. Only if the launch, or each configuration of
    `autotune`, passes a number greater than 1 for the rows.

    ## References
    - [triton.jit](https://triton-lang.org/main/python-api/generated/triton.jit.html)
    """

    code = "CTX715"
    name = "misaligned-kernel-operand"
    subject = FunctionClass
    default = False

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for event, fault, by in faulty_launches(fn, KernelFaultKind.MISALIGNED):
            yield Finding(fn.span(event.node), fitting(*_messages(by, fault)), related=way_to(fn, event))


def _messages(by: str, fault: KernelFault) -> Iterator[str]:
    """The defect, its consequence and the remedy, from the most to the least explicit wording."""
    sizes, (block, vector) = fault.sizes, fault.others
    launches = f"{by} launches `{fault.callee}`, which broadcasts"
    number, other = sorted(sizes, key=str.isdigit, reverse=True)
    if number == other:
        effect = "the result is silently wrong"
    elif other.isdigit():
        effect = "Triton raises CompilationError"
    else:
        which = f"`{other}` is {number}" if number.isdigit() else f"`{number}` equals `{other}`"
        effect = f"Triton raises CompilationError unless {which}, where that is silently wrong"
    yield f"{launches} `{fault.code}`, a value per row, along the columns of `{block}`; {effect}. Write `{vector}[:, None]`."
    yield f"{launches} a value per row along the columns; {effect}. Write `{vector}[:, None]`."
    yield f"{launches} a value per row along the columns; {effect}. Write `[:, None]` after it."
