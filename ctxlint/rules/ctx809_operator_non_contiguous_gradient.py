"""CTX809: the backward of a custom operator assumes that an incoming gradient is contiguous."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ctxlint.model.analyses.layout_uses import layout_uses, silent_uses
from ctxlint.model.analyses.merged_dimensions import dimensions_of_result
from ctxlint.model.function import SourceFile
from ctxlint.model.interpreter.summary import ASSERTED
from ctxlint.rules.base import Category, Finding, Rule
from ctxlint.rules.layout_wording import assumed_contiguous

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class OperatorNonContiguousGradient(Rule[SourceFile]):
    """
    ## What it does
    Reports what CTX502 reports, in the backward function given to `register_autograd`: `.view(...)` and `.data_ptr()` of
    an incoming gradient, and a kernel that gets one without its strides.

    ## Why is this bad?
    Torch passes gradients as they come, in any memory layout: that of `torch.cat` is a part of a larger tensor, and
    that of `y.sum()` one expanded value. `view` raises RuntimeError for many of them; a kernel that computes addresses
    from the shape silently reads wrong values. `opcheck` does not try such gradients.

    ## Example
    ```python
    import torch


    @torch.library.custom_op("demo::flat", mutates_args=())
    def flat(x: torch.Tensor) -> torch.Tensor:
        return x.reshape(2, -1).clone()


    def backward(ctx, grad):
        return grad.view(-1)


    flat.register_autograd(backward)
    ```

    ## Use instead
    ```python
    import torch


    @torch.library.custom_op("demo::flat", mutates_args=())
    def flat(x: torch.Tensor) -> torch.Tensor:
        return x.reshape(2, -1).clone()


    def backward(ctx, grad):
        return grad.reshape(-1)


    flat.register_autograd(backward)
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Off by default: compiled code may handle strides. A `view` counts if the code shows that it merges dimensions, and not for a
    gradient with one dimension, if a fake in view shows that. Where the kernel is in view, CTX817 reports it.

    ## References
    - [torch.library.register_autograd](https://pytorch.org/docs/stable/library.html#torch.library.register_autograd)
    """

    code = "CTX809"
    name = "operator-non-contiguous-gradient"
    subject = SourceFile
    category = Category.SUSPICIOUS
    default = False

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        for operator in file.operator_gradients if settings.torch.reach(2, 4) else ():
            silent = {use.name for use in silent_uses(operator.backward, ())}  # of CTX817
            for use in layout_uses(operator.backward, (), partial(dimensions_of_result, operator)):
                fits = use.how == "view" and use.position in operator.vectors  # whatever the stride of a vector is
                if use.how != ASSERTED and use.name not in silent and not fits:
                    yield Finding(operator.span(use.node), assumed_contiguous(use))
