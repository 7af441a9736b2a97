"""CTX271: a method puts a tensor on the current GPU, whatever device its arguments are on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.fixed_devices import fixed_devices
from ctxlint.model.function import FunctionClass
from ctxlint.model.syntax import last_name
from ctxlint.rules.base import Category, Finding, Rule
from ctxlint.rules.related import at
from ctxlint.rules.wording import fitting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.analyses.fixed_devices import OnCurrentGpu


class FixedDevice(Rule[FunctionClass]):
    """
    ## What it does
    Reports `cuda()` without a device on a new or a saved tensor, and `torch.cuda.FloatTensor` and the like,
    in a Function that else only calls operations of torch. Also `torch.cuda.FloatTensor` and the like in `forward`, if other code, such as a
    compiled extension, gets the new tensor together with an input.

    ## Why is this bad?
    The tensor is on the current GPU, which need not be the device of the inputs. On the CPU, `cuda()` raises, or an operation on both tensors does. With several GPUs, the
    current one is usually the first, whatever GPU the model is on. In `backward`, autograd makes the GPU of the incoming gradient the current one.

    ## Example
    ```python
    import torch


    class Spike(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            spikes = torch.zeros_like(x).cuda()
            spikes[x > 0] = 1.0
            return spikes

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * (1 - x.abs()).clamp_min(0)
    ```

    ## Use instead
    ```python
    import torch


    class Spike(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            spikes = torch.zeros_like(x)
            spikes[x > 0] = 1.0
            return spikes

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * (1 - x.abs()).clamp_min(0)
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Off by default: much code is for the first GPU only. Not reported under a context manager, or in a method that mentions a
    device, nor `cuda()` under a condition, or in a method that calls anything but functions and methods of torch: a kernel is for a GPU anyway. `DataParallel` makes the GPU of
    each replica the current one.

    ## References
    - [CUDA semantics](https://pytorch.org/docs/stable/notes/cuda.html)
    """

    code = "CTX271"
    name = "fixed-device"
    subject = FunctionClass
    category = Category.PEDANTIC
    default = False

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for found in fixed_devices(fn):
            yield Finding(fn.span(found.node), _message(fn, found), related=at(fn, found.others, "and here"))


def _message(fn: FunctionClass, found: OnCurrentGpu) -> str:
    """What is wrong. In backward, autograd makes the GPU of the incoming gradient the current one."""
    start = f"`{found.method.name}` of `{fn.name}` puts a tensor on the current GPU by `{last_name(found.node.func)}`"
    if found.passed_to:
        return fitting(
            *(
                f"{start}; if `{found.like}` is on another one, {taker} gets tensors of two GPUs. Use `{found.like}.device`."
                for taker in (f"`{found.passed_to}`", "the call with both")
            )
        )
    where = "the CPU or another GPU" if found.method.runs_before_backward else "the CPU"
    return (
        f"{start}; if `{found.like}` is on {where}, it raises, or returns a tensor on another device. "
        f"Use `{found.like}.device`."
    )
