"""CTX403: something is marked non-differentiable that is not an output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.saved_state import marks_of_no_output
from ctxlint.model.analyses.unreturned_marks import is_unmarkable
from ctxlint.model.analyses.unsavable_values import is_unsavable
from ctxlint.model.function import FunctionClass
from ctxlint.model.interpreter.values import NONE, Item, Parameter, Tri, Variadic, before_views, is_input
from ctxlint.model.syntax import code_of
from ctxlint.rules.base import Category, Finding, Rule
from ctxlint.rules.related import way_to
from ctxlint.rules.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.interpreter.events import ContextCall
    from ctxlint.model.interpreter.values import Slot, Value


class MarkNonDifferentiableMisuse(Rule[FunctionClass]):
    """
    ## What it does
    Reports an argument of `mark_non_differentiable` that `forward` does not return, or that is not a tensor.

    ## Why is this bad?
    Torch looks up the marked tensors among the outputs. A tensor that is not an output, a view of an output, or a
    tensor whose name has since been rebound is silently ignored, and the intended output stays differentiable. For an argument that is not a tensor, such as a list of
    tensors, torch raises RuntimeError.

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
    Not reported if any return of `forward` cannot be analysed, or if a function that gets ctx marks the tensor: other
    Functions may call it too.

    ## References
    - [FunctionCtx.mark_non_differentiable](https://pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.mark_non_differentiable.html)
    """

    code = "CTX403"
    name = "mark-non-differentiable-misuse"
    subject = FunctionClass
    about_context = True
    category = Category.SUSPICIOUS

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        for call in fn.context_calls("mark_non_differentiable"):
            wrong = [each.node for each in call.arguments if not each.starred and _is_rejected(fn, each.value)]
            for node in wrong:
                if node is not None:
                    runs = " if this line runs" if call.guards else ""
                    fact = f"`{code_of(node)}` is not a tensor; torch raises RuntimeError at `apply`{runs}."
                    yield Finding(
                        fn.span(call.node), f"{fact} Pass each tensor as an argument.", related=way_to(fn, call)
                    )
        found: dict[tuple[ContextCall, bool], list[str]] = {}
        for call, argument in marks_of_no_output(fn):
            if call.by:
                continue  # another Function, which may call that too, may return it
            if argument.node is not None and not (is_input(argument.value) and _is_no_tensor(fn, argument.value)):
                key = call, _another_is_meant(fn, argument)
                found.setdefault(key, []).append(code_of(argument.node))
        for (call, another), marked in found.items():
            yield Finding(fn.span(call.node), _message(marked, another), related=way_to(fn, call))


def _is_rejected(fn: FunctionClass, value: Value) -> bool:
    """Whether torch certainly rejects a mark of a value."""
    return is_unmarkable(value) or is_unsavable(fn, value)


def _is_no_tensor(fn: FunctionClass, value: Parameter) -> bool:
    """Whether an input is not a tensor, as far as is known: torch may reject the mark."""
    return fn.inputs[value.index].is_tensor is Tri.NO


def _message(marked: list[str], another: bool) -> str:
    if len(marked) == 1:
        fact = f"`{marked[0]}` is marked non-differentiable but `forward` does not return it; torch silently ignores the mark."
        return f"{fact} {'Mark the returned tensor itself, or drop' if another else 'Drop'} the mark."
    names = quoted(marked) if len(marked) <= _MOST_NAMES else f"`{marked[0]}` and {len(marked) - 1} others"
    fact = (
        f"{names} are marked non-differentiable but `forward` does not return them; torch silently ignores the marks."
    )
    return f"{fact} {'Mark the returned tensors themselves, or drop' if another else 'Drop'} the marks."


_MOST_NAMES = 3


def _another_is_meant(fn: FunctionClass, argument: Slot) -> bool:
    """Whether an output may be meant: one that is computed from the marked tensor or has its name, or one of several.

    And any output, if ``backward`` gives no gradient.
    """
    if all(each.known and all(slot.value == NONE for slot in each.slots) for each in fn.gradients):
        return True
    marked = argument.value
    names = {code_of(slot.node) for each in fn.outputs for slot in each.slots if slot.node is not None}
    if argument.node is not None and code_of(argument.node) in names:
        return True
    outputs = [option for value in fn.outputs_values() for option in value.options()]
    made_of_it = any(before_views(output) == before_views(marked) for output in outputs)
    whole = marked.of if isinstance(marked, Item) else marked
    is_input = isinstance(whole, (Parameter, Variadic))
    return made_of_it or (not is_input and all(len(each.slots) > 1 for each in fn.outputs))
