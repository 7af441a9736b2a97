"""CTX202: more gradients than inputs, and a surplus one is not None."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.flags import computed_under, flag_of_conditional
from ctxlint.model.analyses.gradient_placements import exact_calls
from ctxlint.model.analyses.outputs import may_be_differentiable, never_arrives
from ctxlint.model.analyses.reachability import judged_gradients
from ctxlint.model.analyses.tensor_containers import holds_tensors
from ctxlint.model.analyses.unsavable_values import saves_number
from ctxlint.model.analyses.variadic_gradients import ends_with_variadic, gradients_before_variadic
from ctxlint.model.function import FunctionClass, Style
from ctxlint.model.interpreter.values import NONE, Tri, before_views, is_gradient, is_none
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.releases import refusing_torch
from ctxlint.rules.wording import all_inputs, counted, place_of_gradients, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.function import Method, Returned
    from ctxlint.model.interpreter.method import Param
    from ctxlint.model.interpreter.values import Value


class TooManyGradients(Rule[FunctionClass]):
    """
    ## What it does
    Reports each return of `backward` (or `vjp`) that has more gradients than `forward` has inputs, if one of the
    surplus gradients is certainly not `None`. Also reports a gradient that is always returned for an input with a
    default, if a call in a linted file omits that input.

    ## Why is this bad?
    Autograd drops trailing `None`s and nothing else: `loss.backward()` raises `RuntimeError: function FBackward
    returned an incorrect number of gradients (expected 2, got 3)`. Under `torch.compile` the surplus is dropped
    silently, and the remaining gradients may belong to other inputs.

    ## Example
    ```python
    import torch


    class Linear(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.save_for_backward(x, weight)
            return x @ weight.t()

        @staticmethod
        def backward(ctx, grad_output):
            x, weight = ctx.saved_tensors
            return grad_output @ weight, grad_output.t() @ x, grad_output.sum(0)
    ```

    ## Use instead
    ```python
    import torch


    class Linear(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.save_for_backward(x, weight)
            return x @ weight.t()

        @staticmethod
        def backward(ctx, grad_output):
            x, weight = ctx.saved_tensors
            return grad_output @ weight, grad_output.t() @ x
    ```

    ## Fix safety
    There is no fix: only the author knows which gradient is surplus.

    ## Known limits
    Not reported if a surplus gradient may be `None`, which is legal, unless `backward` computes it whenever a certain input
    needs a gradient; if `forward` takes `*args`, unless the last gradients certainly are one for each of these; or if a
    subclass or a direct call uses the result. A surplus of only `None` is reported by surplus-none (CTX206), which is
    off by default.

    ## References
    - [torch.autograd.Function.backward](https://pytorch.org/docs/stable/generated/torch.autograd.Function.backward.html)
    """

    code = "CTX202"
    name = "too-many-gradients"
    subject = FunctionClass
    holds_unreached = True
    about_gradients = True
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        if fn.backward is None:
            return
        if fn.variadic_inputs is not None:
            yield from _before_variadic(fn, fn.backward, fn.variadic_inputs)
            return
        for returned in judged_gradients(fn):
            (surplus, remedy), when = _surplus(fn, returned), ""
            if surplus is None and (flag := _flag_of_surplus(fn, returned)) is not None:
                surplus, when = f"`forward` takes {all_inputs(fn)}", f" when `{fn.inputs[flag].name}` needs a gradient,"
            if surplus is None:
                continue
            reason = f"because the surplus is not `None`{' then' * bool(when)}"
            if _of_other_outputs(fn, returned):
                remedy = _sum(fn)
                if fn.materializes_grads is not Tri.YES and not when:
                    reason = "unless the surplus is `None`"
            actual = f"{'' if returned.exact else 'at least '}{counted(returned.minimum, 'gradient')}"
            yield Finding(
                place_of_gradients(fn, returned),
                f"`{fn.backward.name}` of `{fn.name}` returns {actual} but {surplus}; {refusing_torch(fn, settings)} raises RuntimeError at "
                f"backward{when} {reason}. {remedy}",
                rests_on=(returned,),
            )


def _before_variadic(fn: FunctionClass, backward: Method, variadic: Param) -> Iterator[Finding]:
    """Findings about gradients before those for ``*args`` that no input takes."""
    for returned, count in gradients_before_variadic(fn):
        surplus = count - len(fn.inputs)
        if surplus > 0 and ends_with_variadic(fn, returned):
            last = "the last is" if surplus == 1 else f"the last {surplus} are"
            yield Finding(
                place_of_gradients(fn, returned),
                f"`{backward.name}` of `{fn.name}` returns {counted(count, 'gradient')} before those for `*{variadic.name}` "
                f"but `forward` takes {all_inputs(fn)} there; those go to later inputs, and torch raises "
                f"RuntimeError unless {last} `None`. Remove the surplus.",
                rests_on=(returned,),
            )


def _advice(fn: FunctionClass, returned: Returned) -> str:
    """What to write: if an input holds several tensors, the surplus gradients are for these.

    If an input that is a tensor, or the first one, gets None, one of the other gradients may be meant for it.
    """
    for each in fn.inputs:
        if holds_tensors(each):
            return f"Pass the content of `{each.name}` as separate inputs."
    without = [entry for entry, slot in zip(fn.inputs, returned.slots) if slot.value == NONE]
    if any(each.is_tensor is Tri.YES or (each is fn.inputs[0] and each.is_tensor is not Tri.NO) for each in without):
        return "Return one gradient for each input, in their order."
    return "Remove the surplus."


def _of_other_outputs(fn: FunctionClass, returned: Returned) -> bool:
    """Whether all of the surplus is incoming gradients of outputs of which no input gets any."""
    count = len(fn.inputs)
    values = [before_views(slot.value) for slot in returned.slots]
    surplus = [value for value in values[count:] if value != NONE]
    return (
        count > 0
        and bool(surplus)
        and all(is_gradient(each) and may_be_differentiable(fn, each.index) for each in surplus)
        and all(values.count(each) == 1 for each in surplus)
    )


def _sum(fn: FunctionClass) -> str:
    """What to write instead of the gradients of the outputs one after the other."""
    if len(fn.inputs) > 1:
        return "Add it to the gradients of the inputs that its output depends on."
    return f"Return the sum{' of those that are not `None`' * (fn.materializes_grads is not Tri.YES)}."


def _surplus(fn: FunctionClass, returned: Returned) -> tuple[str | None, str]:
    """The number of inputs, in words, if a gradient beyond them is certainly not None; and what to write."""
    if _gradient_beyond(fn, returned, len(fn.inputs)):
        return f"`forward` takes {all_inputs(fn)}", _advice(fn, returned)
    if fn.style is Style.SETUP_CONTEXT or returned.event.guards:
        return None, _advice(fn, returned)
    for call, passed in exact_calls(fn):
        if passed < len(fn.inputs) and not saves_number(fn, passed) and _gradient_beyond(fn, returned, passed):
            beyond = zip(fn.inputs[passed:], returned.slots[passed:])
            omitted = quoted([entry.name for entry, slot in beyond if is_none(slot.value) is Tri.NO], "and")
            return f"the call on {call.place} passes {counted(passed, 'input')}", f"Return `None` for {omitted} then."
    return None, _advice(fn, returned)


def _flag_of_surplus(fn: FunctionClass, returned: Returned) -> int | None:
    """An input with whose flag, and only with that, a gradient beyond the inputs is computed: then it is not None."""
    count = len(fn.inputs)
    if fn.backward is None or not returned.known or any(slot.starred for slot in returned.slots[:count]):
        return None
    for slot in returned.slots[count:]:
        if slot.starred or slot.node is None or not any(is_none(option) is Tri.NO for option in slot.value.options()):
            continue
        flag = flag_of_conditional(slot.node)
        flags = computed_under(fn.backward, slot.node.value) if isinstance(slot.node, cst.Name) else None
        found = flags if flag is None else frozenset([flag])
        if found is not None and len(found) == 1 and max(found) < count and fn.inputs[max(found)].is_tensor is Tri.YES:
            return max(found)
    return None


def _gradient_beyond(fn: FunctionClass, returned: Returned, inputs: int) -> bool:
    """Whether one of the gradients behind the first ``inputs`` certainly is not None."""
    if not returned.known or any(slot.starred for slot in returned.slots[:inputs]):
        return False
    beyond = [slot.value for slot in returned.slots[inputs:] if not slot.starred]
    return any(is_none(each) is Tri.NO and not _is_of_no_tensor(fn, before_views(each)) for each in beyond)


def _is_of_no_tensor(fn: FunctionClass, value: Value) -> bool:
    """Whether a value is the gradient of an output that is not a tensor: torch passes None."""
    return is_gradient(value) and never_arrives(fn, value.index)
