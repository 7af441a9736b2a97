"""CTX403: something is marked non-differentiable that is not an output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.saved_state import marks_of_no_output
from ctxlint.model.function import FunctionClass
from ctxlint.model.interpreter.values import Parameter, before_views
from ctxlint.model.syntax import code_of
from ctxlint.rules.base import Category, Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.interpreter.values import Value


class MarkNonDifferentiableMisuse(Rule[FunctionClass]):
    """
    ## What it does
    Reports an argument of `mark_non_differentiable` that `forward` does not return.

    ## Why is this bad?
    Torch looks up the marked tensors among the outputs. A tensor that is not an output, a view of an output, or a
    tensor whose name was rebound since is silently ignored, and the intended output stays differentiable.

    ## Example
    ```python
    import torch


    class Sort(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            values, index = x.sort()
            position = index.float()
            ctx.mark_non_differentiable(index)
            ctx.save_for_backward(index)
            return values, position

        @staticmethod
        def backward(ctx, grad_values, grad_position):
            (index,) = ctx.saved_tensors
            return torch.zeros_like(grad_values).scatter_(0, index, grad_values)
    ```

    ## Use instead
    ```python
    import torch


    class Sort(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            values, index = x.sort()
            position = index.float()
            ctx.mark_non_differentiable(position)
            ctx.save_for_backward(index)
            return values, position

        @staticmethod
        def backward(ctx, grad_values, _grad_position):
            (index,) = ctx.saved_tensors
            return torch.zeros_like(grad_values).scatter_(0, index, grad_values)
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Not reported if any return of `forward` cannot be analysed.

    ## References
    - [FunctionCtx.mark_non_differentiable](https://pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.mark_non_differentiable.html)
    """

    code = "CTX403"
    name = "mark-non-differentiable-misuse"
    subject = FunctionClass
    category = Category.SUSPICIOUS

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for call, argument in marks_of_no_output(fn):
            if argument.node is not None:
                yield Finding(
                    fn.span(call.node),
                    f"`{code_of(argument.node)}` is marked non-differentiable but `forward` does not return it; torch silently ignores "
                    f"the mark. {_remedy(fn, argument.value)}",
                )


def _remedy(fn: FunctionClass, marked: Value) -> str:
    """What to write: to mark the returned tensor only if it is computed from the marked one, or one of several."""
    outputs = [option for value in fn.outputs_values() for option in value.options()]
    made_of_it = any(before_views(output) == before_views(marked) for output in outputs)
    one_of_several = not isinstance(marked, Parameter) and all(len(each.slots) > 1 for each in fn.outputs)
    mark_another = "Mark the returned tensor itself, or drop" if made_of_it or one_of_several else "Drop"
    return f"{mark_another} the mark."
