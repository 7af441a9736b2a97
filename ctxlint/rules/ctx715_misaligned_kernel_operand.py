"""CTX715: a value for each row of a block in a kernel of Triton is combined with its columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.function import KernelFaultKind, SourceFile
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.wording import fitting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class MisalignedKernelOperand(Rule[SourceFile]):
    """
    ## What it does
    Reports an operand in a Triton kernel that has one value for each row of a block, such as `tl.sum(block, axis=1)`, and is combined with
    the block without `[:, None]`.

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
    Only sizes that are parameters of the kernel or numbers, and blocks made by `tl.arange`, `tl.load`, sums, and operators. Only kernels
    that the same file launches.

    ## References
    - [triton.jit](https://triton-lang.org/main/python-api/generated/triton.jit.html)
    """

    code = "CTX715"
    name = "misaligned-kernel-operand"
    subject = SourceFile

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        for each in file.kernel_faults:
            if each.kind is KernelFaultKind.MISALIGNED:
                rows, columns = each.sizes
                vector = each.code if each.code.isidentifier() else f"({each.code})"
                fact = f"`{each.code}` has one value for each row of `{each.other}`, but Triton takes it for a row"
                effect = (
                    f"it raises CompilationError unless `{rows}` equals `{columns}`, where the result is silently wrong"
                )
                short = (
                    f"An operand with one value for each row of a block in `{each.kernel}` is taken for a row; {effect}"
                )
                yield Finding(
                    each.span,
                    fitting(f"{fact}; {effect}. Write `{vector}[:, None]`.", f"{short}. Write `[:, None]` after it."),
                )
