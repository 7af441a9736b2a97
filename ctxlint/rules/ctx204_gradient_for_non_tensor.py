"""CTX204: a gradient for an input that is not a tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fixes.missing_none import write_none
from ctxlint.model.analyses.absent_inputs import (
    absent_reason,
    bound_only_if_given,
    computes_with,
    has_gradient_if_absent,
    reads_attribute,
    unbound_gradient,
)
from ctxlint.model.analyses.gradient_placements import exact_calls, shortfalls
from ctxlint.model.analyses.misplaced_gradients import early_gradients, is_for_another
from ctxlint.model.analyses.outputs import may_be_differentiable, never_arrives
from ctxlint.model.analyses.reachability import judged_gradients
from ctxlint.model.analyses.refused_gradients import is_refused_gradient
from ctxlint.model.analyses.shifted import is_shifted
from ctxlint.model.analyses.tensor_containers import container_inputs_with_gradient, holds_tensors
from ctxlint.model.function import FunctionClass
from ctxlint.model.interpreter.values import NONE, Tri, View, before_views, is_gradient, is_none
from ctxlint.model.syntax import dotted
from ctxlint.rules.base import Finding, FixAvailability, Rule
from ctxlint.rules.releases import defaults_are_bound, refusing_torch
from ctxlint.rules.wording import counted, place_of_gradients, quoted, them

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.model.function import Input, Method, Returned
    from ctxlint.model.interpreter.values import Value


class GradientForNonTensor(Rule[FunctionClass]):
    """
    ## What it does
    Reports each return of `backward` (or `vjp`) that has something other than `None` for an input that is certainly not
    a tensor; and a `backward` that always has a gradient for an input that may be `None`.

    ## Why is this bad?
    Only tensors have gradients. For a number, a flag, a string or a list, `loss.backward()` raises `RuntimeError:
    function FBackward returned a gradient different than None at position 2, but the corresponding forward input was
    not a Variable`, even for `0`. The same holds for `None`, which callers pass, or leave as the default, where a bias
    is optional. Under `torch.compile`, no error is raised since torch 2.11, and if the gradients are
    in the wrong order, all of them are lost.

    ## Example
    ```python
    import torch


    class Power(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, exponent: int):
            ctx.save_for_backward(x)
            ctx.exponent = exponent
            return x**exponent

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * ctx.exponent * x ** (ctx.exponent - 1), grad_output
    ```

    ## Use instead
    ```python
    import torch


    class Power(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, exponent: int):
            ctx.save_for_backward(x)
            ctx.exponent = exponent
            return x**exponent

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * ctx.exponent * x ** (ctx.exponent - 1), None
    ```

    ## Fix safety
    Unsafe: the gradient is replaced with `None` if it is an element of the returned tuple. If the input is a tensor
    after all, the annotation is wrong, not the gradient. There is no fix if there are more gradients than inputs,
    because the gradient may belong to another input.

    ## Known limits
    An input is not a tensor if its annotation, its default, a use or a call in the linted files shows it, such as one
    that passes its own parameter `flip=False` on, and nothing contradicts it. If there are more gradients than inputs, too-many-gradients (CTX202) is reported instead, because
    the positions are unreliable. The annotation `float` alone is not enough, because callers may pass a tensor, and
    neither is a number as the default; both together are. An input may be `None` if a call passes that, or if it is the
    default and `forward` tests for it; but not if `backward` raises for some inputs, or if all calls in view test it, or
    replace it, first. A container of tensors is reported by tensor-list-input (CTX216), and
    gradients that are all returned one place too early by misplaced-gradient (CTX235).

    ## References
    - [torch.autograd.Function.backward](https://pytorch.org/docs/stable/generated/torch.autograd.Function.backward.html)
    """

    code = "CTX204"
    name = "gradient-for-non-tensor"
    subject = FunctionClass
    holds_unreached = True
    about_gradients = True
    fix = FixAvailability.SOMETIMES
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        if fn.legacy_state is not None:
            return  # a call of an instance takes tensors only
        bound = defaults_are_bound(fn, settings)
        short = {id(each.returned) for each in shortfalls(fn, defaults_are_bound=bound) if not each.expected.if_passed}
        for returned in judged_gradients(fn):
            refused = _refused(fn, returned) if id(returned) not in short else []
            if not refused or fn.backward is None or early_gradients(fn, returned) is not None:  # CTX235
                continue
            first = refused[0]
            against = first.against_a_gradient[0]
            reason = against.reason.replace("it is annotated", "annotated")
            names = quoted(each.name for each in refused)
            what = (
                f"is not a tensor{' by default' * against.by_default} ({reason})"
                if len(refused) == 1
                else f"are not tensors (`{first.name}`: {reason})"
            )
            if fn.variadic_inputs is None and len(returned.slots) > len(fn.inputs):
                # The gradient there may be meant for another input: an earlier one may hold several tensors.
                surplus = f" ({counted(len(returned.slots), 'gradient')} for {counted(len(fn.inputs), 'input')})"
                advice, fix = "Return one gradient for each input, `None` if there is none.", None
            elif any(is_for_another(fn, returned, each.index) for each in refused):
                surplus, advice, fix = "", "Return each gradient for the input that it is of.", None
            elif any(_is_of_another_output(fn, fn.backward, returned, each.index) for each in refused):
                surplus, fix = "", None
                advice = f"Add it to the gradients of that output's inputs, and return `None` for {names}."
            else:
                surplus, advice = "", f"Return `None` for {them(refused)}."
                fix = write_none(fn, returned, tuple(each.index for each in refused))
            values = [before_views(returned.slots[each.index].value) for each in refused]
            passed_on = len(fn.backward.own_params) > 1 and all(map(is_gradient, values))
            unless = " unless it is `None`" if passed_on and fn.materializes_grads is not Tri.YES else ""
            yield Finding(
                place_of_gradients(fn, returned),
                f"`{fn.backward.name}` of `{fn.name}` returns a gradient for {names}{surplus}, which {what}; {refusing_torch(fn, settings)} raises "
                f"RuntimeError at backward{unless}. {advice}",
                fix=fix,
                rests_on=(returned, *(returned.slots[each.index].value for each in refused)),
            )
        yield from _for_none(fn)


def _refused(fn: FunctionClass, returned: Returned) -> list[Input]:
    """The inputs that get a gradient and certainly are not tensors."""
    if is_refused_gradient(returned.value):
        return []  # CTX213: it is one gradient, whatever it holds
    if not returned.known or (fn.variadic_inputs is None and is_shifted(returned, len(fn.inputs))):
        return []
    found: list[Input] = []
    containers = container_inputs_with_gradient(fn)
    for entry, slot in zip(fn.inputs, returned.slots):
        if slot.starred or entry in containers:
            break  # further gradients may be for the contents of the container: CTX216
        came = before_views(slot.value)
        if is_gradient(came) and never_arrives(fn, came.index):
            continue
        if is_none(slot.value) is Tri.NO and entry.against_a_gradient and not holds_tensors(entry):
            found.append(entry)
    return found


def _is_of_another_output(fn: FunctionClass, backward: Method, returned: Returned, index: int) -> bool:
    """Whether what an input gets is one of several incoming gradients, as it came, that backward uses for nothing else."""
    value = before_views(returned.slots[index].value)
    if not is_gradient(value) or len(backward.own_params) < 2 or not may_be_differentiable(fn, value.index):
        return False
    return len(backward.named.get(value.name, ())) == 2


def _for_none(fn: FunctionClass) -> Iterator[Finding]:
    """Inputs that may be None, for which every return has a gradient."""
    returns = judged_gradients(fn)
    if fn.backward is None or not returns or fn.variadic_inputs is not None:
        return
    fewest = min((passed for _call, passed in exact_calls(fn)), default=len(fn.inputs))
    early = early_gradients(fn, returns[0])
    judged = fn.inputs[: fewest if early is None else min(fewest, early.gets.index)]  # others are surplus: CTX202
    for entry in judged:
        reason = absent_reason(fn, entry)
        if reason is None or not has_gradient_if_absent(fn, entry):
            continue
        value = returns[0].slots[entry.index].value
        raises = "it raises at backward" if computes_with(fn, entry) else "torch raises RuntimeError at backward"
        remedy = "Return `None` for it then"
        unbound = unbound_gradient(fn, returns[0], entry.index)
        if unbound is not None:
            if not bound_only_if_given(fn, unbound, entry):
                continue
            raises, remedy = (
                f"`{unbound}` is not bound then and raises UnboundLocalError",
                f"Write `{unbound} = None` first",
            )
        rests_on: tuple[Returned | Value, ...] = (returns[0], value)
        absent = _read_of_none(value)
        if absent is not None:
            name, attribute = absent
            raises = f"`{name}.{attribute}` raises AttributeError if that is `None` too, else torch raises RuntimeError"
            if reads_attribute(fn, entry, returns[0].slots[entry.index].node):
                raises = "it raises AttributeError at backward"
            rests_on = (returns[0],)
        yield Finding(
            place_of_gradients(fn, returns[0]),
            f"`{fn.backward.name}` of `{fn.name}` returns a gradient for `{entry.name}` even if it is `None` ({reason}); {raises}. "
            f"{remedy}.",
            rests_on=rests_on,
        )


def _read_of_none(value: Value) -> tuple[str, str] | None:
    """What a gradient is a method's result of, if that may be None, and the method: ``dh.to(h)``."""
    while isinstance(value, View):
        function = value.node.func if isinstance(value.node, cst.Call) else value.node
        name = dotted(function.value) if isinstance(function, cst.Attribute) else None
        value = value.of
        if NONE in value.options():
            return (name, function.attr.value) if name is not None and isinstance(function, cst.Attribute) else None
    return None
