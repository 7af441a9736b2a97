"""CTX711: a kernel of Triton that is launched for ``size // block`` programs, and so leaves out the last elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.left_out import left_out_by, sizes_may_fit
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.misfit_wording import innermost
from ctxlint.rules.related import way_to
from ctxlint.rules.wording import fitting, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.interpreter.events import LeftOut


class FlooredGrid(Rule[FunctionClass]):
    """
    ## What it does
    Reports launches of Triton kernels with a grid of `size // block`, in which each program fills one block of a tensor of
    `torch.empty_like` and the like, if nothing makes sure that the size of the tensor is a multiple of that of a block.
    Launches in functions that the Function calls count too.

    ## Why is this bad?
    `//` rounds down. The elements after the last whole block belong to no program, so nothing writes them: the result
    silently holds whatever was in that memory, or zeros. With fewer elements than one block, no program runs at all.

    ## Example
    ```python
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def square_backward(x_ptr, g_ptr, dx_ptr, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(dx_ptr + at, 2 * tl.load(x_ptr + at) * tl.load(g_ptr + at))


    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            n = x.numel()
            grad_x = torch.empty_like(x, memory_format=torch.contiguous_format)
            square_backward[(n // 1024,)](x.contiguous(), grad_output.contiguous(), grad_x, BLOCK=1024)
            return grad_x
    ```

    ## Use instead
    ```python
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def square_backward(x_ptr, g_ptr, dx_ptr, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = at < n
        tl.store(dx_ptr + at, 2 * tl.load(x_ptr + at, mask=mask) * tl.load(g_ptr + at, mask=mask), mask=mask)


    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            n = x.numel()
            grad_x = torch.empty_like(x, memory_format=torch.contiguous_format)
            square_backward[(triton.cdiv(n, 1024),)](x.contiguous(), grad_output.contiguous(), grad_x, n, BLOCK=1024)
            return grad_x
    ```

    ## Fix safety
    There is no fix: the kernel needs masks, or the Function a check.

    ## Known limits
    Only blocks of a known size, a tensor that the same function creates and returns, and kernels that store to it at
    `program_id(n) * BLOCK`, and the next elements, alone. Not reported if a test is about the size or the shape, if an
    unknown function gets either, or if one of the functions on the way, a method of the Function, or the code around a
    call of it computes a remainder, tests a size, makes groups as in `x.view(-1, 64)`, or has a name with `pad`,
    `multiple`, `check` or the like in it: the sizes may fit then.

    ## References
    - [Triton: vector addition](https://triton-lang.org/main/getting-started/tutorials/01-vector-add.html)
    """

    code = "CTX711"
    name = "floored-grid"
    subject = FunctionClass

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        found = [
            (method, event, left_out)
            for method in fn.own_protocol_methods
            for event, left_out in left_out_by(method.node, method.facts)
            if not left_out.beyond
        ]
        if not found or sizes_may_fit(fn):
            return
        for method, event, left_out in found:
            by = innermost(fn, method, event, left_out)
            yield Finding(fn.span(event.node), fitting(*_messages(by, left_out)), related=way_to(fn, event))


def _messages(by: str, found: LeftOut) -> Iterator[str]:
    """The defect, its consequence and the remedy, from the most to the least explicit wording."""
    fact = f"{by} launches `{found.kernel}` for `{found.size} // {found.block_name}` blocks"
    rest = _rest(found)
    multiple = f"a multiple of {found.block}"
    for remedy in ("Use `triton.cdiv` and masks, or raise an error then", "Use `triton.cdiv` and masks"):
        yield f"{fact}; if `{found.size}` is not {multiple}, the rest of {quoted(found.names)} {rest}. {remedy}."


def _rest(found: LeftOut) -> str:
    """What the elements that nothing writes hold."""
    several = len(found.names) > 1
    if found.zeros:
        return f"silently {'stay' if several else 'stays'} 0"
    return f"silently {'are' if several else 'is'} uninitialized memory"
