"""CTX502: an incoming gradient is assumed to be contiguous."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fixes.contiguity import allow_any_layout
from ctxlint.model.analyses.second_order import ASSERTED, KERNEL, layout_uses
from ctxlint.model.function import FunctionClass
from ctxlint.model.syntax import code_of
from ctxlint.rules.base import Category, Finding, FixAvailability, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.interpreter.method import Method


class NonContiguousGradOutput(Rule[FunctionClass]):
    """
    ## What it does
    Reports `.view(...)` and `.data_ptr()` of an incoming gradient that was not made contiguous first, and the launch of a
    kernel, `kernel[grid]`, that gets one, if `backward` does not ask for its strides; also an assertion that a gradient is
    contiguous.

    ## Why is this bad?
    Autograd does not guarantee the memory layout of a gradient. If the output is transposed afterwards, so is its
    gradient, and `view` raises `RuntimeError: view size is not compatible with input tensor's size and stride`. After
    `y.sum()`, the gradient is one value expanded to the shape of `y`, with stride 0: a kernel that gets the raw pointer
    reads wrong values, or out of bounds.

    ## Example
    ```python
    import torch


    class Flat(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.reshape(2, -1)

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output.view(-1)
    ```

    ## Use instead
    ```python
    import torch


    class Flat(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.reshape(2, -1)

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output.reshape(-1)
    ```

    ## Fix safety
    Safe for `view`: `reshape` gives the same view if possible, and a copy where `view` raises. If the argument may be a
    dtype, which `reshape` does not accept, it becomes `.contiguous().view(...)`. Unsafe for `data_ptr`, and if
    `backward` writes to tensors that may be the gradient: `grad_output = grad_output.contiguous()` is inserted before
    it, because `grad_output.contiguous().data_ptr()` would point to memory that is already freed. There is no fix for these
    two if `set_materialize_grads` is called: the gradient may be `None`.

    ## Known limits
    Off by default: for many shapes, `view` works with any strides. A gradient whose name is rebound first is
    not checked, nor is a `backward` under a decorator of the project, which may make it contiguous.

    ## References
    - [torch.Tensor.view](https://pytorch.org/docs/stable/generated/torch.Tensor.view.html)
    """

    code = "CTX502"
    name = "non-contiguous-grad-output"
    subject = FunctionClass
    category = Category.SUSPICIOUS
    default = False
    fix = FixAvailability.SOMETIMES
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        if fn.backward is None or fn.backward.inherited:
            return
        for node, name, method in layout_uses(fn):
            fact = f"`{name}.{method}` assumes a contiguous gradient; this"
            effect, instead = (
                "silently reads wrong values of transposed or expanded ones",
                "Call `.contiguous()` first.",
            )
            if method == "view":
                effect, instead = "raises RuntimeError for many transposed or expanded ones", "Use `reshape`."
            elif method == ASSERTED:
                fact = f"`backward` of `{fn.name}` asserts that the incoming gradient `{name}` is contiguous"
                effect = "it raises AssertionError for transposed or expanded ones"
            elif method == KERNEL:
                fact = f"{_launched(fn.backward, node)} gets the incoming gradient `{name}` but none of its strides; it"
            joint = ";" if method == ASSERTED else ""
            yield Finding(fn.span(node), f"{fact}{joint} {effect}. {instead}", fix=allow_any_layout(fn, node, name))


def _launched(backward: Method, argument: cst.CSTNode) -> str:
    """The kernel that is launched with an argument."""
    call = next((each for each in backward.above(argument) if isinstance(each, cst.Call)), None)
    kernel = call.func.value if call is not None and isinstance(call.func, cst.Subscript) else None
    return f"`{code_of(kernel)}`" if kernel is not None else "A kernel"
