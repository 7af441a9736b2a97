"""CTX410: a kernel reads an incoming gradient as if it were contiguous."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fixes.contiguity import allow_any_layout
from ctxlint.model.analyses.contiguous_companions import gets_inputs_as_they_came
from ctxlint.model.analyses.layout_uses import silent_uses
from ctxlint.model.analyses.strides_of_gradients import uses_of_multiples
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Finding, FixAvailability, Rule
from ctxlint.rules.layout_wording import assumed_contiguous
from ctxlint.rules.related import way_to

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class GradientStridesIgnored(Rule[FunctionClass]):
    """
    ## What it does
    Reports an incoming gradient that a Triton kernel of the project gets without its strides, or whose address
    `data_ptr()` is passed to a call, in `backward` or in a function that it passes the gradient to. Also a gradient
    of which the kernel gets `grad.view(-1, n)` or `grad.reshape(-1, n)` with the stride of the rows only. And one by whose strides the kernel addresses another tensor.

    ## Why is this bad?
    Autograd does not guarantee the memory layout of a gradient. After `y.sum()` or `y.mean()`, it is one value expanded
    to the shape of `y`, with stride 0; after `y.t()`, it is transposed. A kernel that computes addresses from the shape
    silently reads the wrong values of it, or memory that does not belong to it.

    ## Example
    ```python
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def double_kernel(grad, out, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + at, 2 * tl.load(grad + at, mask=at < n), mask=at < n)


    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, grad_output):
            grad_x = torch.empty(grad_output.shape, device=grad_output.device)
            double_kernel[(triton.cdiv(grad_x.numel(), 256),)](grad_output, grad_x, grad_x.numel(), BLOCK=256)
            return grad_x
    ```

    ## Use instead
    ```python
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def double_kernel(grad, out, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + at, 2 * tl.load(grad + at, mask=at < n), mask=at < n)


    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, grad_output):
            grad_output = grad_output.contiguous()
            grad_x = torch.empty(grad_output.shape, device=grad_output.device)
            double_kernel[(triton.cdiv(grad_x.numel(), 256),)](grad_output, grad_x, grad_x.numel(), BLOCK=256)
            return grad_x
    ```

    ## Fix safety
    Unsafe: the fix makes the gradient contiguous at the start of `backward`, which copies it if it is not. There is
    none if `set_materialize_grads` is called: the gradient may be `None`; nor if the kernel gets an input in whatever
    layout a caller chooses: it is right about two tensors that are transposed alike, until one of them is contiguous.

    ## Known limits
    A `backward` with `grad.stride()` or `grad.is_contiguous()` treats the layout of the gradient on purpose,
    and one under a decorator of the project may get a contiguous one. Not reported if a call on the way passes its
    arguments in another order than the function takes them. What may handle strides, or raises, is CTX502:
    `view`, collectives, compiled extensions, and kernels that the project does not contain.
    Of what is computed from a gradient, its product with a number and conversions of the dtype count, also in a function
    of the project that returns it, for gradients with several dimensions.

    ## References
    - [torch.Tensor.stride](https://pytorch.org/docs/stable/generated/torch.Tensor.stride.html)
    """

    code = "CTX410"
    name = "gradient-strides-ignored"
    subject = FunctionClass
    fix = FixAvailability.SOMETIMES
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        if fn.backward is None or fn.backward.inherited:
            return
        uses = silent_uses(fn.backward, fn.outputs)
        known = {each.name for each in uses}
        for use in (*uses, *(each for each in uses_of_multiples(fn) if each.name not in known)):
            among = gets_inputs_as_they_came(fn, use)
            fix = (
                None if among else allow_any_layout(fn, use)
            )  # the kernel is right about tensors that are transposed alike
            yield Finding(fn.span(use.node), assumed_contiguous(use, among=among), related=way_to(fn, use), fix=fix)
