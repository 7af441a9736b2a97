"""CTX213: backward returns neither a gradient nor a tuple of gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fix import Applicability
from ctxlint.fixes.tuples import return_a_tuple
from ctxlint.model.analyses.reachability import judged_gradients
from ctxlint.model.analyses.refused_gradients import is_chosen_by_number, is_refused_gradient, refused_gradient
from ctxlint.model.analyses.tensor_containers import container_inputs_with_gradient
from ctxlint.model.analyses.variadic_gradients import before_variadic
from ctxlint.model.function import FunctionClass
from ctxlint.model.interpreter.values import Constant, Mapping, Scalar, Sequence, Tri
from ctxlint.rules.base import Finding, FixAvailability, Rule
from ctxlint.rules.releases import refusing_torch
from ctxlint.rules.wording import if_it_runs, own_place, place_of_gradients

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.fix import Fix
    from ctxlint.model.analyses.refused_gradients import RefusedGradient
    from ctxlint.model.function import Input, Returned
    from ctxlint.model.interpreter.values import Value


class GradientContainer(Rule[FunctionClass]):
    """
    ## What it does
    Reports a `backward` (or `vjp`) that returns a list, a set, a dict, a number, an array of numpy, a string or a
    generator, that returns one of these or a tuple as one of the gradients, or that is itself a generator or `async`.

    ## Why is this bad?
    Autograd unpacks a tuple and treats anything else as one gradient, which must be a tensor or `None`. A list raises
    `RuntimeError: function FBackward returned an incorrect number of gradients (expected 2, got 1)`, or, for one input,
    `RuntimeError: expected Variable or None (got list)`; a number raises `expected Variable or None (got float)`. Under
    `torch.compile`, a list works, and a generator or a number silently gives no gradient.

    ## Example
    ```python
    import torch


    class Add(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a + b

        @staticmethod
        def backward(ctx, grad_output):
            return [grad_output, grad_output]
    ```

    ## Use instead
    ```python
    import torch


    class Add(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a + b

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output, grad_output
    ```

    ## Fix safety
    Safe: a list display becomes a tuple, and any other list or generator is wrapped in `tuple(...)`; the existing code
    raises. There is no fix if the tuple would not have one gradient for each input, nor for sets, dicts and numbers.

    ## Known limits
    Not reported if the result of a call is unknown, or if no output of `forward` can have a gradient.

    ## References
    - [torch.autograd.Function.backward](https://pytorch.org/docs/stable/generated/torch.autograd.Function.backward.html)
    """

    code = "CTX213"
    name = "gradient-container"
    subject = FunctionClass
    holds_unreached = True
    about_gradients = True
    fix = FixAvailability.SOMETIMES
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        backward = fn.backward
        if backward is None or not fn.count_judgeable:
            return
        if backward.facts.is_generator or backward.facts.is_async:
            torch = refusing_torch(fn, settings)
            kind = "a generator" if backward.facts.is_generator else "a coroutine"
            yield Finding(
                own_place(fn, backward),
                f"`{backward.name}` of `{fn.name}` is {kind}; {torch} raises RuntimeError at backward. Return the gradients.",
            )
            return
        containers = container_inputs_with_gradient(fn)  # CTX216
        for returned in judged_gradients(fn):
            refused = refused_gradient(fn, returned)
            whole = refused is not None and refused.position is None
            if whole and not (is_refused_gradient(returned.event.value) or is_chosen_by_number(returned)):
                continue  # what else is returned here shows that a condition decides, which may always hold
            if refused is not None and not (_is_plain(refused) is False and _faces(fn, refused) in containers):
                yield Finding(
                    place_of_gradients(fn, returned),
                    f"`{backward.name}` of `{fn.name}` returns {_complaint(fn, settings, returned, refused)}",
                    fix=_fix(fn, returned) if refused.position is None else None,
                    rests_on=(returned, refused.value),
                )


def _fix(fn: FunctionClass, returned: Returned) -> Fix | None:
    """A tuple instead of a list, if it has a valid number of gradients."""
    if fn.backward is None or not _fits(fn, returned):
        return None
    return return_a_tuple(fn, fn.backward, returned, fn.gradients, Applicability.SAFE)


def _fits(fn: FunctionClass, returned: Returned) -> bool:
    """Whether a tuple of these gradients may have the length that autograd expects."""
    value, before = returned.value, before_variadic(fn, returned)
    if not isinstance(value, Sequence) or before is not None:
        return before is None or before == len(fn.inputs)
    too_many = fn.variadic_inputs is None and value.minimum > len(fn.inputs)
    return not too_many and (not value.exact or value.minimum >= fn.required_inputs)


def _complaint(fn: FunctionClass, settings: Settings, returned: Returned, refused: RefusedGradient) -> str:
    """The rejected value, the consequence in torch, and what to write instead."""
    value = refused.value.options()[0]
    if refused.position is None:
        torch = refusing_torch(fn, settings)
        if isinstance(value, Sequence):
            of_all = "" if _fits(fn, returned) else " of one gradient for each input"
            moment = f"at backward{if_it_runs(fn, fn.backward, returned.node) if fn.backward is not None else ''}"
            return f"{_kind(value)}, which {torch} treats as one gradient; it raises RuntimeError {moment}. Return a tuple{of_all}."
        remedy = "Return a tensor, or `None`" if len(fn.inputs) == 1 else "Return one gradient for each input"
        return f"{_kind(value)} instead of a gradient; {torch} raises RuntimeError at backward. {remedy}."
    entry = _faces(fn, refused)
    name = f"`{entry.name}`" if entry is not None else f"input {refused.position + 1}"
    raises = "torch raises RuntimeError at backward"
    if refused.if_needed:
        kind = _kind(value)
        return f"{kind} as the gradient for {name} if that needs one; {raises} then. Return a tensor."
    if _is_plain(refused):
        advice = "Return a tensor, or `None`."
    elif _starred_fits(fn, returned, value):
        advice = "Put a star before it."
    elif entry is not None and entry.is_tensor is not Tri.YES:
        alone = _is_alone(fn, entry)
        advice = f"Return a tensor, or pass the tensors of {name} to `apply` one by one."
        if alone:
            raises = f"{raises}, or silently never runs it if {name} is a container"
        if alone and _is_only_indexed(fn, entry) and not any(each.tensor for each in entry.evidence):
            advice = f"Pass the tensors of {name} to `apply` one by one."
    else:
        advice = "Return a tensor."
    return f"{_kind(value)} as the gradient for {name}; {raises}. {advice}"


def _is_alone(fn: FunctionClass, entry: Input) -> bool:
    """Whether no input but one, which may be a container, may be a tensor: then none may need a gradient."""
    return fn.variadic_inputs is None and all(_needs_none(each) for each in fn.inputs if each is not entry)


def _needs_none(entry: Input) -> bool:
    """Whether an input is not a tensor, or shows no sign of one and gets no gradient."""
    shown = any(each.tensor for each in entry.evidence)
    return bool(entry.against_a_gradient) or (entry.gradient is Tri.NO and not shown)


def _is_only_indexed(fn: FunctionClass, entry: Input) -> bool:
    """Whether forward uses an input for nothing but its elements: ``pair[0]``."""
    forward = fn.forward
    if forward is None:
        return False
    around = [forward.parents[each] for each in forward.named.get(entry.name, ())]
    uses = [each for each in around if not isinstance(each, cst.Param)]
    return bool(uses) and all(isinstance(each, cst.Subscript) for each in uses)


def _faces(fn: FunctionClass, refused: RefusedGradient) -> Input | None:
    """The input that a rejected gradient is for."""
    at = refused.position
    return fn.inputs[at] if at is not None and at < len(fn.inputs) else None


def _is_plain(refused: RefusedGradient) -> bool:
    """Whether it is a number, a string or the like, without elements to return instead."""
    return isinstance(refused.value.options()[0], (Constant, Scalar, Mapping))


def _starred_fits(fn: FunctionClass, returned: Returned, value: Value) -> bool:
    """Whether the elements of a container, unpacked in place, may be one gradient for each input."""
    if fn.variadic_inputs is not None:
        return True
    others = sum(not slot.starred for slot in returned.slots) - 1
    if isinstance(value, Sequence) and value.exact:
        return fn.required_inputs <= others + value.minimum <= len(fn.inputs)
    return others + 1 < fn.required_inputs


def _kind(value: Value) -> str:
    if isinstance(value, Sequence):
        return f"a {value.kind}"
    if isinstance(value, Mapping):
        return "a dict"
    sort = value.type_name if isinstance(value, Constant) else value.sort if isinstance(value, Scalar) else "tuple"
    return _KINDS.get(sort, "a number")


_KINDS = {
    "array": "an array",
    "bool": "a bool",
    "bytes": "bytes",
    "callable": "a function",
    "ellipsis": "`...`",
    "generator": "a generator",
    "str": "a string",
    "tuple": "a tuple",
}
