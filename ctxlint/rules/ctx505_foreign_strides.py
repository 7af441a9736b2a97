"""CTX505: a kernel addresses a tensor with the strides of another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.foreign_strides import foreign_layouts
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Category, Finding, Rule
from ctxlint.rules.related import way_to
from ctxlint.rules.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.analyses.foreign_strides import ForeignLayout


class ForeignStrides(Rule[FunctionClass]):
    """
    ## What it does
    Reports the launch of a Triton kernel that multiplies with the strides of one tensor, `x.stride(0)`, to address
    another one: a second input, or a tensor that the Function creates, such as `torch.empty_like(x)`; in `forward`,
    `backward`, or a function of the project that they call.

    ## Why is this bad?
    Callers may pass a transposed, sliced or expanded tensor, and its strides are those of no other. `torch.empty_like`
    keeps the strides of a dense tensor, also of a transposed one, but not those of a slice, `x[:, :n]`, or of an
    expanded tensor. The kernel then silently reads and writes other elements, or memory that does not belong to the
    tensor.

    ## Example
    ```python
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def double_kernel(x_ptr, y_ptr, stride, n, BLOCK: tl.constexpr):
        row, at = tl.program_id(0), tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride + at, mask=at < n)
        tl.store(y_ptr + row * stride + at, 2 * x, mask=at < n)


    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = torch.empty_like(x)
            double_kernel[(x.shape[0],)](x, y, x.stride(0), x.shape[1], BLOCK=1024)
            return y

        @staticmethod
        def backward(ctx, grad_output):
            return 2 * grad_output
    ```

    ## Use instead
    ```python
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def double_kernel(x_ptr, y_ptr, stride, n, BLOCK: tl.constexpr):
        row, at = tl.program_id(0), tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride + at, mask=at < n)
        tl.store(y_ptr + row * stride + at, 2 * x, mask=at < n)


    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x = x.contiguous()
            y = torch.empty_like(x)
            double_kernel[(x.shape[0],)](x, y, x.stride(0), x.shape[1], BLOCK=1024)
            return y

        @staticmethod
        def backward(ctx, grad_output):
            return 2 * grad_output
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Off by default: callers may only pass contiguous tensors. Not reported if `forward` asks for the layout of one of
    the tensors, or another function that gets it may do so, if every call in view passes a tensor that its function has
    computed, or if a decorator of the project may change the arguments. Only inputs that get a gradient count, and none
    that is called like a parameter. A gradient that is addressed with other strides is CTX410.

    ## References
    - [torch.empty_like](https://pytorch.org/docs/stable/generated/torch.empty_like.html)
    - [torch.Tensor.stride](https://pytorch.org/docs/stable/generated/torch.Tensor.stride.html)
    """

    code = "CTX505"
    name = "foreign-strides"
    subject = FunctionClass
    category = Category.SUSPICIOUS
    default = False

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for each in foreign_layouts(fn):
            yield Finding(fn.span(each.use.node), _message(each), related=way_to(fn, each.use))


def _message(found: ForeignLayout) -> str:
    tensors = quoted(list(found.names)) if 0 < len(found.names) <= _MOST_NAMES else "other tensors"
    several, owner = len(found.names) != 1, f"`{found.owner}`" if found.owner else "another tensor"
    fact = f"`{found.use.reader}` addresses {tensors} with strides of {owner}"
    if found.use.by:
        fact = f"`{found.use.by}` lets `{found.use.reader}` address {tensors} with strides of {owner}"
    if found.others_vary:
        case = "laid out differently"
        when = f"if they are {case}" if several or found.owner_varies else f"if {tensors} is {case}"
    else:
        when = f"if {owner} is {'sliced or expanded' if found.alike else 'not contiguous'}"
    return f"{fact}; {when}, it silently uses other elements. Pass {'their' if several else 'its'} own strides as well."


_MOST_NAMES = 3
