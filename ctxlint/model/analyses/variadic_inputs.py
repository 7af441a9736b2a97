"""The elements of forward's ``*args``: which get a gradient, and which of them a method writes to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.inputs import gradient_of
from ctxlint.model.analyses.mutations import through_data
from ctxlint.model.interpreter.events import Question
from ctxlint.model.interpreter.values import NONE, Item, Sequence, Tri, Variadic, is_tensor, usual_storage
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.events import Guard, Mutation
    from ctxlint.model.interpreter.values import Slot


def element_written(fn: FunctionClass, mutation: Mutation) -> Item | None:
    """The element of ``*args`` that is modified, or every one of them, if it certainly gets a gradient; else None."""
    origin = usual_storage(mutation.target) if mutation.target is not None else None
    if not isinstance(origin, Item) or not isinstance(origin.of, Variadic) or origin.of.role != "input":
        return None
    if through_data(mutation.target):
        return None
    if isinstance(origin.key, int):
        return origin if origin.key >= 0 and _element_gets_gradient(fn, origin.key) else None
    certain = _is_of_tensors(mutation) and all(map(_is_of_any, mutation.guards))
    return origin if certain and some_get_gradients(fn) else None


def _element_gets_gradient(fn: FunctionClass, position: int) -> bool:
    """Whether backward returns a gradient for one of ``*args``."""
    index = len(fn.inputs) + position
    return gradient_of(index, index + 1, fn.gradients) is Tri.YES or all_get_gradients(fn)


def some_get_gradients(fn: FunctionClass) -> bool:
    """Whether backward returns more than None for ``*args``."""
    rest = (slot for each in fn.gradients for slot in each.slots[len(fn.inputs) :])
    return any(slot.value != NONE for slot in rest)


def all_get_gradients(fn: FunctionClass) -> bool:
    """Whether backward certainly returns a gradient for each of ``*args``."""
    rest = [slot for each in fn.gradients for slot in each.slots[len(fn.inputs) :]]
    known = all(each.known for each in fn.gradients)
    return known and bool(rest) and all(map(_are_tensors, rest))


def _are_tensors(slot: Slot) -> bool:
    """Whether what backward returns there is a tensor, or any number of them: ``*grads``, perhaps none on some path."""
    if not slot.starred or is_tensor(slot.value) is Tri.YES:
        return is_tensor(slot.value) is Tri.YES
    options = [option for option in slot.value.options() if not (isinstance(option, Sequence) and not option.slots)]
    return bool(options) and all(isinstance(each, Sequence) and all(map(_are_tensors, each.slots)) for each in options)


def _is_of_tensors(mutation: Mutation) -> bool:
    """Whether only a tensor can be modified like this: a number and a list are changed by ``+=``, too."""
    if mutation.how == "out=" or mutation.how.startswith("_foreach_"):
        return True
    return mutation.how in operations.INPLACE_METHODS | operations.IN_PLACE_COLLECTIVES


def _is_of_any(guard: Guard) -> bool:
    """Whether a condition does not select some of the elements."""
    return guard.test is None or (guard.asks is not None and guard.asks.question is Question.IS_NONE)


def elements_named(elements: Iterable[Item]) -> list[str]:
    """The code of each element: ``args[0]``, or ``*args`` for every one."""
    wholes = ((each.of.name if isinstance(each.of, Variadic) else "", each.key) for each in elements)
    return [f"{name}[{key}]" if isinstance(key, int) else f"*{name}" for name, key in wholes]
