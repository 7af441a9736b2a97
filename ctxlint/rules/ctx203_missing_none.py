"""CTX203: exactly the inputs that are not tensors got no None."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.fixes.missing_none import put_none_in
from ctxlint.model.analyses.gradient_placements import one_for_each_place, shortfalls
from ctxlint.model.analyses.outputs import has_other_outputs_by
from ctxlint.model.function import FunctionClass
from ctxlint.model.syntax import code_of
from ctxlint.rules.base import Finding, FixAvailability, Rule
from ctxlint.rules.releases import at_backward, defaults_are_bound, refusing_torch
from ctxlint.rules.wording import counted, length_of, place_of_gradients, quoted, them, wanted_inputs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.analyses.gradient_placements import Placement
    from ctxlint.model.interpreter.values import Slot

_LONGEST_MESSAGE = 215


class MissingNone(Rule[FunctionClass]):
    """
    ## What it does
    Reports each return of `backward` (or `vjp`) with too few gradients because `None` is missing for inputs that are
    not tensors. It is reported instead of too-few-gradients (CTX201).

    ## Why is this bad?
    Autograd expects one gradient for each input of `apply`, and `None` for a number, a flag or a shape. With fewer,
    `loss.backward()` raises `RuntimeError: function FBackward returned an incorrect number of gradients (expected 2,
    got 1)`, and not earlier. Under `torch.compile`, no error is raised since torch 2.11, and gradients may reach the
    wrong input.

    ## Example
    ```python
    import torch


    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, tensor, constant):
            ctx.constant = constant
            return tensor * constant

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * ctx.constant
    ```

    ## Use instead
    ```python
    import torch


    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, tensor, constant):
            ctx.constant = constant
            return tensor * constant

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * ctx.constant, None
    ```

    ## Fix safety
    Safe if every way to assign `None` to the inputs that are not tensors gives the same tuple; the existing code
    raises. Unsafe if the result is only likely: each gradient is at the position of its input and only trailing `None`s
    are missing, or the names of the gradients show which input each belongs to. `None` is added where the tuple is
    written: at the `return`, or in the variable that is returned. A return annotation is updated.

    ## Known limits
    An input counts as not a tensor by its annotation, its default, its uses and the calls in the linted files; or if it
    is stored as a plain attribute of ctx, not saved, and not used as only a tensor can be. If it is a tensor after all,
    its gradient is missing instead of `None`.

    ## References
    - [torch.autograd.Function.backward](https://pytorch.org/docs/stable/generated/torch.autograd.Function.backward.html)
    """

    code = "CTX203"
    name = "missing-none"
    subject = FunctionClass
    holds_unreached = True
    about_gradients = True
    fix = FixAvailability.SOMETIMES
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        every = tuple(shortfalls(fn, defaults_are_bound=defaults_are_bound(fn, settings)))
        for shortfall in one_for_each_place(every):
            placement = shortfall.placement
            if placement is None or fn.backward is None:
                continue
            expected, actual = shortfall.expected, shortfall.returned.count or 0
            names = [fn.inputs[index].name for index in placement.missing]
            wanted = [fn.inputs[index].name for index in placement.missing if index < expected.count]
            extra = f", and for {quoted(names[len(wanted) :])} if a call passes {them(names[len(wanted) :])}"
            missing = f"{quoted(wanted)}{extra}" if 0 < len(wanted) < len(names) else quoted(names)
            varies = any(has_other_outputs_by(fn, name) for name in names)
            message = (
                f"`{fn.backward.name}` of `{fn.name}` returns {counted(actual, 'gradient')} but "
                f"{wanted_inputs(fn, expected)}; {refusing_torch(fn, settings)} raises RuntimeError{' or TypeError' * varies} "
                f"{at_backward(fn, shortfall, settings)}. Return `None` for {missing}"
            )
            example = _example(placement, _LONGEST_MESSAGE - length_of(message))
            yield Finding(
                place_of_gradients(fn, shortfall.returned),
                message + (", and take a gradient for each output." if varies else example),
                fix=put_none_in(fn, shortfall, every),
                rests_on=(shortfall.returned,),
            )


def _example(placement: Placement, room: int) -> str:
    """The end of the message: the corrected code, if it is short enough."""
    written = [_code(slot) for slot in placement.slots]
    example = ", ".join(written)
    code = f": `return {example}`."
    return code if placement.unique and all(written) and "\n" not in code and len(code) <= room else "."


def _code(slot: Slot | None) -> str:
    if slot is None:
        return "None"
    return code_of(slot.node) if slot.node is not None else ""
