"""CTX411: a kernel reads the gradient of an output that is reduced on some path as if that had one size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.reduced_outputs import misread_gradients
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.related import way_to
from ctxlint.rules.wording import fitting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.analyses.reduced_outputs import MisreadGradient


class GradientSizeIgnored(Rule[FunctionClass]):
    """
    ## What it does
    Reports the launch of a Triton kernel in `backward` that reads one element of an incoming gradient, or always a range of it,
    though `forward` returns a tensor as it is on one path, and its sum or mean on another, as losses with `reduction="none"` do. Also if
    a function of the project computes that output.

    ## Why is this bad?
    The gradient has the shape of the output. Where the tensor itself is returned, a kernel that reads one element scales
    everything by the gradient of the first element. Where its sum or mean is returned, the gradient is one number, and
    a kernel that reads a range gets whatever is behind it in memory. Both are silent.

    ## Example
    ```python
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def scale_kernel(x_ptr, scale_ptr, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        scale = tl.load(scale_ptr)
        tl.store(x_ptr + at, scale * tl.load(x_ptr + at, mask=at < n), mask=at < n)


    class Squares(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, reduction):
            ctx.save_for_backward(x)
            loss = x * x
            return loss.sum() if reduction == "sum" else loss

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            grad_x = 2 * x.contiguous()
            scale_kernel[(triton.cdiv(x.numel(), 256),)](grad_x, grad_output, x.numel(), BLOCK=256)
            return grad_x, None
    ```

    ## Use instead
    ```python
    import torch


    class Squares(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, reduction):
            ctx.save_for_backward(x)
            loss = x * x
            return loss.sum() if reduction == "sum" else loss

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return 2 * x * grad_output, None
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Off by default, as callers may refuse one of the two outputs, or never differentiate it. Reported by default if the
    code that chooses names `"none"`, and nothing in `forward` may refuse it, or if a call in the project passes a literal
    flag with which nothing is reduced. Only launches in `backward` itself, or in a function that it calls, outside of
    loops, of kernels in the project that get the gradient, a view of all of it, or a contiguous copy; not under a test,
    except for `None`, or `torch.equal(grad_output, torch.tensor(1.0))`. Not reported if `backward` asks for the size of
    the gradient, expands it, or computes something else with it.

    ## References
    - [Triton: tl.load](https://triton-lang.org/main/python-api/generated/triton.language.load.html)
    """

    code = "CTX411"
    name = "gradient-size-ignored"
    subject = FunctionClass
    default = False
    default_in_view = True
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for each in misread_gradients(fn):
            launch = each.launch
            yield Finding(
                fn.span(launch.value_node or launch.node),
                fitting(*_messages(fn.name, each)),
                related=way_to(fn, launch),
                in_view=each.output.shown,
            )


def _messages(function: str, found: MisreadGradient) -> Iterator[str]:
    """The defect, its consequence and the remedy, from the most to the least explicit wording."""
    gradient, (whole, reduction, _shown) = found.gradient, found.output
    if found.first:
        fact = f"`{found.launch.reader}` reads only the first element of the incoming gradient `{gradient}`, which has more"
        where, rest = (
            f"returns `{whole}`; all others are silently ignored",
            "Use all of it, or refuse that output",
        )
    else:
        fact = f"`{found.launch.reader}` reads a range of the incoming gradient `{gradient}`, which is one number"
        where = f"returns `{reduction}`; it silently reads the memory behind it"
        rest = f"Pass a copy in the shape of `{whole}`"
    yield f"{fact} where `forward` of `{function}` {where}. {rest}."
    yield f"{fact} where `forward` {where}. {rest}."
