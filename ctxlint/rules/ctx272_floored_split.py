"""CTX272: forward gives each process a part as long as a quotient that rounds down, and so leaves out the last elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.floored_splits import floored_split
from ctxlint.model.function import FunctionClass
from ctxlint.model.syntax import code_of
from ctxlint.rules.base import Category, Finding, Rule
from ctxlint.rules.wording import fitting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class FlooredSplit(Rule[FunctionClass]):
    """
    ## What it does
    Reports a `forward` that takes the part of its process from an input by `size // world_size`, itself or in a function of the project
    whose result it returns, if nothing makes sure that the size is a multiple.

    ## Why is this bad?
    `//` rounds down. The elements after the last whole part belong to no process: outputs silently lack them. `backward` usually gathers the parts,
    so that the gradient has another shape than the input, and torch raises there.

    ## Example
    ```python
    import torch
    import torch.distributed as dist


    class Scatter(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            world_size, rank = dist.get_world_size(), dist.get_rank()
            return x.split(x.shape[0] // world_size)[rank].contiguous()

        @staticmethod
        def backward(ctx, grad_output):
            gathered = [torch.empty_like(grad_output) for _ in range(dist.get_world_size())]
            dist.all_gather(gathered, grad_output.contiguous())
            return torch.cat(gathered)
    ```

    ## Use instead
    ```python
    import torch
    import torch.distributed as dist


    class Scatter(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            world_size, rank = dist.get_world_size(), dist.get_rank()
            if x.shape[0] % world_size:
                raise ValueError(f"{x.shape[0]} is not a multiple of {world_size}")
            return x.split(x.shape[0] // world_size)[rank].contiguous()

        @staticmethod
        def backward(ctx, grad_output):
            gathered = [torch.empty_like(grad_output) for _ in range(dist.get_world_size())]
            dist.all_gather(gathered, grad_output.contiguous())
            return torch.cat(gathered)
    ```

    ## Fix safety
    There is no fix: the code needs a check, or padding.

    ## Known limits
    Off by default: many projects check sizes when they build the model. Not reported if a method of the Function, the function that takes the part, or the
    code around a call computes a remainder, tests a size, or has a name with `pad`, `multiple`, `check` or the like in it.

    ## References
    - [torch.split](https://pytorch.org/docs/stable/generated/torch.split.html)
    """

    code = "CTX272"
    name = "floored-split"
    subject = FunctionClass
    category = Category.SUSPICIOUS
    default = False

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        found = floored_split(fn)
        if found is None:
            return
        by = f"`{found.by}`, which `forward` of `{fn.name}` calls," if found.by else f"`forward` of `{fn.name}`"
        size, parts = (" ".join(code_of(each).split()) for each in (found.size, found.parts))
        rest = "if that rounds down, the last elements are silently in no part. Test the remainder first"
        yield Finding(
            fn.span(found.node),
            fitting(
                f"{by} takes the part of its process by `{size} // {parts}`; {rest}.",
                f"{by} takes the part of its process by a quotient; {rest}.",
            ),
        )
