"""CTX415: a kernel of Triton that stores whole blocks where the last one goes past the end of a tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.left_out import left_out_by, sizes_may_fit
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Category, Finding, Rule
from ctxlint.rules.misfit_wording import innermost
from ctxlint.rules.related import way_to
from ctxlint.rules.wording import fitting, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class UnmaskedStore(Rule[FunctionClass]):
    """
    ## What it does
    Reports launches of Triton kernels with a grid of `triton.cdiv(size, block)`, in which each program stores one block
    without a mask to a tensor of `torch.empty_like` and the like, if nothing makes sure that the size of the tensor is a
    multiple of that of a block. Launches in functions that the Function calls count too.

    ## Why is this bad?
    `triton.cdiv` rounds up. The last program stores a whole block, too: what is past the end of the tensor goes to the
    next row, or to memory that belongs to another tensor, or to none. Nothing raises, in the main. With tests whose sizes
    are multiples of a block, all is well.

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
            square_backward[(triton.cdiv(n, 1024),)](x.contiguous(), grad_output.contiguous(), grad_x, BLOCK=1024)
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
    There is no fix: the kernel needs a parameter for the size, and `mask`, or `boundary_check` for a block pointer.

    ## Known limits
    Off by default: callers may only pass sizes that fit. Only a tensor that the same function creates, and kernels
    that always store to it at `program_id(n) * BLOCK`, and the next elements. Not reported if a test is about the size or
    the shape, and where CTX711 is not, as the sizes may fit. Loads without a mask alone are not reported.

    ## References
    - [Triton: vector addition](https://triton-lang.org/main/getting-started/tutorials/01-vector-add.html)
    """

    code = "CTX415"
    name = "unmasked-store"
    subject = FunctionClass
    category = Category.SUSPICIOUS
    default = False

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        found = [
            (method, event, beyond)
            for method in fn.own_protocol_methods
            for event, beyond in left_out_by(method.node, method.facts)
            if beyond.beyond
        ]
        if not found or sizes_may_fit(fn):
            return
        for node in dict.fromkeys(event.node for _method, event, _beyond in found):
            same = [(method, event, beyond) for method, event, beyond in found if event.node is node]
            method, event, first = same[0]
            launches = dict.fromkeys(beyond for _method, _event, beyond in same if beyond.kernel == first.kernel)
            names = quoted(dict.fromkeys(name for each in launches for name in each.names))
            sizes = dict.fromkeys((each.size, each.block_name) for each in launches)
            unless = " or ".join(
                f"`{size}`{' is not a multiple' * (not at)} of {block if block.isdecimal() else f'`{block}`'}"
                for at, (size, block) in enumerate(sizes)
            )
            fact = f"{innermost(fn, method, event, first)} launches `{first.kernel}`, which stores without a mask"
            past = f"past `{first.size}`" if len(sizes) == 1 else "past these"
            remedy = "Pass `mask` or `boundary_check` to `tl.store`."
            yield Finding(
                fn.span(node),
                fitting(
                    f"{fact}; if {unless}, it silently writes {past} in {names}. {remedy}",
                    f"{fact}; if a size is not a multiple of its block, it silently writes past it in {names}. {remedy}",
                    f"{fact}; if a size is not a multiple of its block, it silently writes past it. {remedy}",
                ),
                related=way_to(fn, event),
            )
