"""CTX412: memory without values that is added to."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ctxlint.model.analyses.sums_in_new_memory import made_by, unfilled_sums
from ctxlint.model.function import FunctionClass
from ctxlint.model.interpreter.events import UnfilledAllocation, UnfilledInside
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.related import at, way_to
from ctxlint.rules.wording import fitting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.analyses.sums_in_new_memory import UnfilledSum


class UnfilledSumInMemory(Rule[FunctionClass]):
    """
    ## What it does
    Reports memory that a method allocates with `torch.empty_like` and the like, if the first code that gets it adds to it:
    `+=`, `index_add_` and the like, `tl.atomic_add` in a kernel, also in functions of the project.

    ## Why is this bad?
    `torch.empty_like` does not set the values. The sum begins with what was in the memory before, such as another gradient,
    large numbers, or NaN. In a fresh process that is often 0, so that a test may pass.

    ## Example
    ```python
    import torch


    class Gather(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, index):
            ctx.save_for_backward(x, index)
            return x[index]

        @staticmethod
        def backward(ctx, grad_output):
            x, index = ctx.saved_tensors
            grad_x = torch.empty_like(x)
            grad_x.index_add_(0, index, grad_output)
            return grad_x, None
    ```

    ## Use instead
    ```python
    import torch


    class Gather(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, index):
            ctx.save_for_backward(x, index)
            return x[index]

        @staticmethod
        def backward(ctx, grad_output):
            x, index = ctx.saved_tensors
            grad_x = torch.zeros_like(x)
            grad_x.index_add_(0, index, grad_output)
            return grad_x, None
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    In a function of the project, the allocation and the addition have to be statements of one block.
    Only memory that is bound to one name, and whose first use is the addition, under no condition that the allocation is not under;
    of kernels, those of Triton that `triton.jit` alone decorates.

    ## References
    - [torch.empty](https://pytorch.org/docs/stable/generated/torch.empty.html)
    - [torch.Tensor.index_add_](https://pytorch.org/docs/stable/generated/torch.Tensor.index_add_.html)
    """

    code = "CTX412"
    name = "unfilled-sum"
    subject = FunctionClass

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for method in fn.own_protocol_methods:
            for each in unfilled_sums(method):
                related = (*at(fn, [each.added.node], "added here"), *way_to(fn, each.added))
                yield Finding(fn.span(each.allocation), fitting(*_messages(_described(each))), related=related)
        seen: set[UnfilledAllocation] = set()
        for method in fn.own_protocol_methods:
            for event in method.facts.of(UnfilledInside):
                known = replace(event.found, steps=event.through[-1:]) if event.found is not None else None
                if known is not None and known not in seen:
                    seen.add(known)
                    yield Finding(fn.span(event.node), fitting(*_messages(known)), related=way_to(fn, event))


def _described(found: UnfilledSum) -> UnfilledAllocation:
    return UnfilledAllocation(found.name, *made_by(found.allocation), found.added.doer)


def _messages(found: UnfilledAllocation) -> Iterator[str]:
    remedy = f"Use `{found.zeros}`" if found.zeros else f"Call `{found.name}.zero_()` first"
    where = f" in `{found.inside}`" if found.inside else ""
    for adder in (f"`{found.by}`", "the first use"):
        yield (
            f"`{found.made}`{where} leaves the values of `{found.name}` unset, and {adder} adds to them; the sum silently "
            f"contains what was in the memory. {remedy}{' there' if where else ''}."
        )
