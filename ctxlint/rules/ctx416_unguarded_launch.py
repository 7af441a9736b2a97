"""CTX416: forward launches a kernel of Triton on the current GPU, whichever GPU the inputs are on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.unguarded_launches import unguarded_launches
from ctxlint.model.function import FunctionClass
from ctxlint.rules.base import Category, Finding, Rule
from ctxlint.rules.misfit_wording import innermost
from ctxlint.rules.related import at, way_to
from ctxlint.rules.wording import fitting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class UnguardedLaunch(Rule[FunctionClass]):
    """
    ## What it does
    Reports a Function whose `forward` launches a Triton kernel, itself or in a function that it calls, where nothing makes
    the GPU of the tensors the current one.

    ## Why is this bad?
    Operations of torch run on the GPU of their tensors. Triton launches a kernel on the current GPU, which is the first one
    until something else is set. For tensors on another GPU, it raises `ValueError: Pointer argument (at 0) cannot be accessed
    from Triton (cpu tensor?)`. Where the GPUs have access to the memory of each other, the kernel runs, but it does
    not wait for the operations on the other GPU, nor they for it. That happens to a model whose layers are on several GPUs
    in one process, as with `device_map="auto"`. A `backward` needs no such code: autograd's engine runs it with the GPU
    of the incoming gradients as the current one.

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
            x = x.contiguous()
            y = torch.empty_like(x)
            double[(triton.cdiv(x.numel(), 128),)](x, y, x.numel(), BLOCK=128)
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
            x = x.contiguous()
            y = torch.empty_like(x)
            with torch.cuda.device(x.device):
                double[(triton.cdiv(x.numel(), 128),)](x, y, x.numel(), BLOCK=128)
            return y

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * 2
    ```

    ## Fix safety
    There is no fix: a decorator or the caller may be the better place.

    ## Known limits
    Off by default: with one GPU for each process, as under `torchrun`, `torch.cuda.set_device` is usually called once.
    Reported once for a Function. Not reported under any context manager but `torch.device`, which only chooses where new tensors
    are created, and those for grad mode, autocast and the like, in a function
    that mentions the current device or a guard, with a decorator that may choose a device, or under `try`; nor if
    a call of the Function in view is under such a context manager. Only kernels under `triton.jit`, `triton.autotune` and
    `triton.heuristics`. Whether the program sets the current GPU itself before each call is not known.

    ## References
    - [torch.cuda.device](https://pytorch.org/docs/stable/generated/torch.cuda.device.html)
    - [CUDA semantics](https://pytorch.org/docs/stable/notes/cuda.html)
    """

    code = "CTX416"
    name = "unguarded-launch"
    subject = FunctionClass
    category = Category.SUSPICIOUS
    default = False

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        launches = [*unguarded_launches(fn)]
        if not launches:
            return
        first, *others = launches
        by = innermost(fn, first.method, first.event, first.fault)
        fact = f"{by} launches `{first.fault.callee}` on the current GPU"
        condition, name = f"if `{first.tensor}` is on another one", first.tensor
        remedies: tuple[str, ...] = (
            f"Use `with torch.cuda.device({name}.device):` around it",
            f"Use `with torch.cuda.device_of({name}):` around it",
            f"Use `with torch.cuda.device_of({name}):`",
            f"Use `torch.cuda.device_of({name})`",
        )
        if not name:
            condition, remedies = "if the tensors are on another one", ("Use `torch.cuda.device` with theirs",)
        effect = "Triton raises ValueError, or, with peer access, silently runs out of order"
        nodes = dict.fromkeys(each.event.node for each in others if each.event.node is not first.event.node)
        yield Finding(
            fn.span(first.event.node),
            fitting(
                *(f"{fact}; {condition}, {effect}. {each}." for each in remedies),
            ),
            related=(*way_to(fn, first.event), *at(fn, nodes, "launched on the current GPU as well")),
        )
