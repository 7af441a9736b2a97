"""CTX412: memory without values that is added to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.sums_in_new_memory import unfilled_sums
from ctxlint.model.function import FunctionClass
from ctxlint.model.syntax import dotted
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
                yield Finding(fn.span(each.allocation), fitting(*_messages(each)), related=related)


def _messages(found: UnfilledSum) -> Iterator[str]:
    made = (dotted(found.allocation.func) or "").rpartition(".")[2]
    adding = f"`{found.added.by}`" if found.added.by else f"`{found.added.how}`"
    zeros = _ZEROS.get(made, "")
    if any(each.keyword is not None and each.keyword.value == "memory_format" for each in found.allocation.args):
        zeros = zeros if made == "empty_like" else ""
    remedy = f"Use `{zeros}`" if zeros else f"Call `{found.name}.zero_()` first"
    for adder in (adding, "the first use"):
        yield (
            f"`{made}` leaves the values of `{found.name}` unset, and {adder} adds to them; the sum silently contains "
            f"what was in the memory. {remedy}."
        )


_ZEROS = {"empty": "zeros", "empty_like": "zeros_like", "new_empty": "new_zeros"}
"""What allocates the same, with values."""
