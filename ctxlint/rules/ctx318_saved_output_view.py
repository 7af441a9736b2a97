"""CTX318: a view of an output is saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.saved_state import saved_output_views
from ctxlint.model.function import FunctionClass
from ctxlint.model.syntax import code_of
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.related import way_to

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.interpreter.events import ContextCall
    from ctxlint.model.interpreter.values import Slot


class SavedOutputView(Rule[FunctionClass]):
    """
    ## What it does
    Reports an argument of `save_for_backward` that is a view of an output of `forward`, on one path at least.

    ## Why is this bad?
    An output may be saved: autograd recognises it and stores it without a reference cycle. A view of it is another
    tensor, which references the output, whose `grad_fn` references the view. If backward never runs (a validation loss,
    an exception), the graph and all its inputs are never freed, not even by the garbage collector.

    ## Example
    ```python
    import torch


    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            result = x.exp()
            ctx.save_for_backward(result.view(-1))
            return result

        @staticmethod
        def backward(ctx, grad_output):
            (result,) = ctx.saved_tensors
            return grad_output * result.view_as(grad_output)
    ```

    ## Use instead
    ```python
    import torch


    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            result = x.exp()
            ctx.save_for_backward(result)
            return result

        @staticmethod
        def backward(ctx, grad_output):
            (result,) = ctx.saved_tensors
            return grad_output * result
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Not reported: `reshape` and `contiguous`, which may copy; a detached view, which references nothing; outputs that
    never have a `grad_fn`: integers, bools, outputs marked as non-differentiable, and outputs of unknown type whose
    gradient `backward` does not read; what a callable of the caller returns, which may be an input.

    ## References
    - [pytorch#94990](https://github.com/pytorch/pytorch/issues/94990): memory leak with a saved view of an output
    - [FunctionCtx.save_for_backward](https://pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.save_for_backward.html)
    """

    code = "CTX318"
    name = "saved-output-view"
    subject = FunctionClass
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for save, argument in saved_output_views(fn):
            if argument.node is not None:
                returned = any(argument.value in each.options() for each in fn.outputs_values())
                of, there = ("what another path returns", "there, ") if returned else ("an output", "")
                yield Finding(
                    fn.span(argument.node),
                    f"`{code_of(argument.node)}` {_is_view(save, argument)} of {of}; {there}this reference cycle is never freed when "
                    f"backward does not run. Save the output itself, and take the view in `backward`.",
                    related=way_to(fn, save),
                    rests_on=() if save.by else (argument.value,),
                )


def _is_view(save: ContextCall, argument: Slot) -> str:
    """What the argument is: a view, or a tuple with one, as in ``*saved``."""
    given = save.node.args if isinstance(save.node, cst.Call) else ()
    spread = any(each.star and each.value is argument.node for each in given)
    return "holds a view" if spread else "is a view"
