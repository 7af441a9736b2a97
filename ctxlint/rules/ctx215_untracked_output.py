"""CTX215: forward returns its tensors in a container that autograd does not search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fix import Applicability
from ctxlint.fixes.tuples import return_a_tuple
from ctxlint.model.analyses.helper_places import helpers_behind
from ctxlint.model.analyses.outputs import hides_tensors, is_proven_list, untracked_numbers
from ctxlint.model.function import Assigned, FunctionClass
from ctxlint.model.interpreter.values import (
    Kind,
    Mapping,
    ProjectObject,
    Sequence,
    TensorTuple,
    Tri,
    is_array,
    is_tensor,
    kind_of,
    leaves,
)
from ctxlint.model.syntax import dotted, signed_integer, single_index
from ctxlint.rules.base import Finding, FixAvailability, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.fix import Fix
    from ctxlint.model.function import Method, Returned
    from ctxlint.model.interpreter.values import Value


class UntrackedOutput(Rule[FunctionClass]):
    """
    ## What it does
    Reports a `forward` that returns a list, a dict or a generator, or a tuple that holds another container of tensors
    whose gradient `backward` reads. Also one that returns nothing but numbers or arrays of numpy, as `loss.item()`,
    although `backward` computes a gradient.

    ## Why is this bad?
    Autograd tracks the tensors in the tuple that `forward` returns, and nothing else. Tensors in a list, in a dict or
    one level deeper have no `grad_fn`: nothing raises, `backward` never gets their gradients, and nothing is learned
    through them. This holds on every torch from 1.13 to 2.15. Under `torch.compile`, a list becomes a tuple of tracked
    outputs since torch 2.11, and a dict does not compile.

    ## Example
    ```python
    import torch


    class Halves(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            middle = x.shape[0] // 2
            return [x[:middle].clone(), x[middle:].clone()]

        @staticmethod
        def backward(ctx, *grads):
            return torch.cat(grads)
    ```

    ## Use instead
    ```python
    import torch


    class Halves(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            middle = x.shape[0] // 2
            return x[:middle].clone(), x[middle:].clone()

        @staticmethod
        def backward(ctx, *grads):
            return torch.cat(grads)
    ```

    ## Fix safety
    Unsafe: a flat list becomes a tuple. Callers then get a tuple, and `backward` one gradient for each element; there
    is no fix if it cannot take that many, or returns gradients for another number of inputs.

    ## Known limits
    Not reported for containers that certainly hold no tensors, for a Function without `backward`, for an inner
    container whose gradient `backward` never reads, for results of unknown calls, or for those of a helper that returns
    a list or something else depending on its arguments, unless the arguments decide it, nor for a list that is returned for
    a list.

    ## References
    - [Extending torch.autograd](https://pytorch.org/docs/stable/notes/extending.html)
    """

    code = "CTX215"
    name = "untracked-output"
    subject = FunctionClass
    about_results = True
    fix = FixAvailability.SOMETIMES

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        if not fn.count_judgeable or fn.backward is None or fn.forward is None:
            return
        if untracked_numbers(fn):
            yield from self.numbers(fn)
            return
        told: set[int] = set()
        for returned in fn.outputs:
            what = "a list" if is_proven_list(fn, returned) else _untracked(fn, returned)
            if what is None or returned.event.order in told:
                continue
            if _may_be_another(fn, returned) or _is_for_containers(fn, returned):
                continue
            told.add(returned.event.order)
            where, fix = _where(fn, returned), _fix(fn, returned) if _gradients_fit(fn) else None
            also = _and_inputs(fn, returned.value) or _AND_GRADIENTS * (bool(where) or fix is None)
            yield Finding(
                fn.span(returned.node),
                f"`forward` of `{fn.name}` returns {what}{where}; torch does not look inside, and its tensors silently get no "
                f"gradient. Return one flat tuple{also}.",
                fix=fix,
                rests_on=(returned, *(slot.value for slot in returned.slots if _is_container(slot.value))),
            )

    def numbers(self, fn: FunctionClass) -> Iterator[Finding]:
        """One finding, where forward returns numbers only."""
        returned = fn.outputs[0]
        what = "an array" if is_array(returned.slots[0].value) else "a number"
        yield Finding(
            fn.span(returned.node),
            f"`forward` of `{fn.name}` returns {what}; torch tracks tensors only, so `backward` silently never runs, and no input "
            "gets a gradient. Return a tensor.",
            rests_on=fn.outputs,
        )


_AND_GRADIENTS = ", and handle the gradient of each of its tensors in `backward`"
"""What else to do if backward does not take a gradient for each tensor, or was written for what other paths return."""


def _where(fn: FunctionClass, returned: Returned) -> str:
    """The condition under which a returned variable is the container, if it is something else otherwise."""
    if fn.forward is None or len(returned.event.value.options()) == 1:
        return ""
    made = [each for each in fn.forward.facts.of(Assigned) if each.value == returned.value]
    before = {guard.block for guard in returned.event.guards}
    guards = [guard for guard in made[0].guards if guard.block not in before] if len(made) == 1 else []
    text = guards[0].text if len(guards) == 1 else ""
    if not text or len(text) > _LONGEST_CONDITION or "\n" in text or "`" in text:
        return " on one path"
    return f" {'if' if guards[0].holds else 'unless'} `{text}`"


_LONGEST_CONDITION = 40


def _and_inputs(fn: FunctionClass, value: Value) -> str:
    """What else to do if the elements come from those of the only input that may be a tensor: it may be a list, too."""
    node = value.node if isinstance(value, Sequence) else None
    iterated = dotted(node.for_in.iter) if isinstance(node, cst.ListComp) else None
    entry = next((each for each in fn.inputs if each.name == iterated), None)
    others = [each for each in fn.inputs if each is not entry]
    if entry is None or entry.is_tensor is Tri.YES or any(each.is_tensor is Tri.YES for each in others):
        return ""
    return f", and pass the tensors in `{entry.name}` one by one if it is a list"


def _is_for_containers(fn: FunctionClass, returned: Returned) -> bool:
    """Whether an input has to be a list or tuple for this: torch does not look inside that either (CTX216)."""
    made = fn.forward.facts.of(Assigned) if fn.forward is not None else ()
    guards = (
        *returned.event.guards,
        *(guard for each in made if each.value == returned.value for guard in each.guards),
    )
    names = {each.name for each in fn.inputs}
    return any(
        guard.holds and not names.isdisjoint(guard.words) and not _CONTAINERS.isdisjoint(guard.words)
        for guard in guards
    )


_CONTAINERS = frozenset({"list", "tuple", "List", "Tuple", "Sequence"})


def _may_be_another(fn: FunctionClass, returned: Returned) -> bool:
    """Whether a helper returned this container, and returns something else for other arguments."""
    hidden = [hides_tensors(option) for option in returned.event.value.options()]
    return not all(hidden) and bool(helpers_behind(fn, (returned.value,)))


def _gradients_fit(fn: FunctionClass) -> bool:
    """Whether backward, which torch does not call at present, would return one gradient for each input."""
    counts = {each.count for each in fn.gradients} - {None}
    return fn.variadic_inputs is not None or counts <= {len(fn.inputs)}


def _fix(fn: FunctionClass, returned: Returned) -> Fix | None:
    """A tuple instead of a flat list, if `backward` takes as many gradients."""
    value = returned.value
    if fn.forward is None or fn.backward is None or not isinstance(value, Sequence) or value.kind != "list":
        return None
    if any(_is_container(slot.value) and not slot.starred for slot in value.slots):
        return None
    if not _takes_each(fn.backward, value):
        return None
    return return_a_tuple(fn, fn.forward, returned, fn.outputs, Applicability.UNSAFE)


def _takes_each(backward: Method, value: Sequence) -> bool:
    """Whether backward takes one gradient for each element of a list that forward returns, in place of one for it."""
    least = sum(param.required for param in backward.positional)
    if value.exact and value.minimum < least:
        return False
    if backward.variadic is None:
        return value.exact and value.minimum <= len(backward.positional)
    around = [backward.parents[each] for each in backward.named.get(backward.variadic.name, ())]
    uses = [each for each in around if not isinstance(each, cst.Param)]
    first = [isinstance(each, cst.Subscript) and signed_integer(single_index(each)) in (0, -1) for each in uses]
    return not any(map(_unpacks_one, uses)) and not (uses and all(first))


def _unpacks_one(use: cst.CSTNode) -> bool:
    """Whether ``*grads`` has to hold one gradient: ``(grad,) = grads``."""
    target = use.targets[0].target if isinstance(use, cst.Assign) else None
    elements = target.elements if isinstance(target, (cst.Tuple, cst.List)) else ()
    return len(elements) == 1 and not isinstance(elements[0], cst.StarredElement)


def _untracked(fn: FunctionClass, returned: Returned) -> str | None:
    """The container that hides tensors from autograd, in words; None if there is none."""
    value = returned.value
    if isinstance(value, ProjectObject):
        return _name(value) if _holds_tensors(value) else None
    if hides_tensors(value):
        return _name(value) if _may_hold_tensors(value) else None
    if not isinstance(value, Sequence):
        return None
    for position, slot in enumerate(returned.slots):
        if slot.starred:
            return None
        held = _is_container(slot.value) or isinstance(slot.value, ProjectObject)
        if held and _holds_tensors(slot.value) and _gradient_is_read(fn, position):
            return f"{_name(slot.value)} inside its tuple"
    return None


def _is_container(value: Value) -> bool:
    return isinstance(value, (Sequence, Mapping, TensorTuple))


def _may_hold_tensors(value: Value) -> bool:
    return any(isinstance(each, TensorTuple) or is_tensor(each) is not Tri.NO for each in leaves(value))


def _holds_tensors(value: Value) -> bool:
    """Whether a container certainly holds a tensor that may have a gradient."""
    return any(
        isinstance(each, TensorTuple) or (is_tensor(each) is Tri.YES and kind_of(each) is not Kind.INTEGRAL)
        for each in leaves(value)
    )


def _gradient_is_read(fn: FunctionClass, position: int) -> bool:
    """Whether backward reads the gradient of an output by name."""
    backward = fn.backward
    if backward is None or position >= len(backward.positional):
        return False
    return backward.positional[position].name in backward.facts.names_read


def _name(value: Value) -> str:
    if isinstance(value, ProjectObject):
        return f"a `{value.definition.name}` object"
    if isinstance(value, Sequence):
        return f"a {value.kind}"
    return "a dict" if isinstance(value, Mapping) else "a tuple"
