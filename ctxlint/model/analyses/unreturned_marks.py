"""Tensors that are marked dirty and not returned: torch raises RuntimeError at ``apply``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.mutations import is_returned
from ctxlint.model.analyses.repeats import happens_after
from ctxlint.model.interpreter.events import ContextCall, DataReplaced, GenericCall, Mutation, Reshaped
from ctxlint.model.interpreter.values import (
    Constant,
    Fresh,
    Imported,
    Item,
    Opaque,
    Parameter,
    Scalar,
    Single,
    Tri,
    before_views,
    is_input,
    is_none,
    is_tensor,
    leaves,
    same_object,
)
from ctxlint.torch_api.operations import TORCH_NAMESPACES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass, Returned
    from ctxlint.model.interpreter.events import Event
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Slot, Value


def always_marks_unreturned(fn: FunctionClass) -> bool:
    """Whether each call of ``apply`` marks a tensor dirty that forward does not return."""
    forward = fn.forward
    if forward is None or not forward.signature_known or not forward.facts.complete:
        return False
    return any(
        not call.guards and any(_is_unreturned(fn, method, call, each) for each in call.arguments)
        for method in fn.context_methods
        for call in marks_of(method)
    )


def is_unmarkable(value: Value) -> bool:
    """Whether a value is certainly not a tensor: torch rejects a mark of it, of None as well."""
    return is_tensor(value) is Tri.NO and is_none(value) is not Tri.UNKNOWN and not isinstance(value, Parameter)


def marks_of(method: Method) -> Iterator[ContextCall]:
    """The calls of ``mark_dirty`` in a method of this class, except those that a later one overrides."""
    calls = [call for call in method.facts.of(ContextCall) if call.method == "mark_dirty"]
    for call in calls if not method.inherited else ():
        if not any(later is not call and happens_after(later, call) for later in calls):
            yield call


def _is_unreturned(fn: FunctionClass, method: Method, call: ContextCall, argument: Slot) -> bool:
    value = argument.value
    if argument.starred or argument.node is None or is_tensor(value) is Tri.NO:
        return False
    known = is_input(value) or is_tensor(value) is Tri.YES
    return known and any(none_returns(fn, returns, value) for returns in returns_with(fn, method, call))


def none_returns(fn: FunctionClass, returns: list[Returned], tensor: Value) -> bool:
    """Whether none of these alternatives certainly returns the tensor."""
    return all(is_returned([each], tensor) is Tri.NO or _made_without(fn, each.value, tensor) for each in returns)


def _made_without(fn: FunctionClass, value: Value, tensor: Value) -> bool:
    """Whether unknown functions computed the value from other tensors and numbers, and never received the tensor."""
    if not isinstance(value, Opaque) or value.node is None or not isinstance(tensor, Parameter):
        return False
    calls = [each for method in fn.context_methods for each in method.facts.of(GenericCall)]
    if any(
        same_object(before_views(leaf), tensor) is not Tri.NO and not _is_other(leaf, tensor, calls)
        for each in calls
        if each.callee is None or not each.callee.startswith(TORCH_NAMESPACES)
        for slot in passed_to(each)
        for leaf in leaves(slot.value)
        if not isinstance(leaf, Imported)
    ):
        return False
    return _is_other(value, tensor, calls)


def is_unmodified(fn: FunctionClass, mark: ContextCall, tensor: Value) -> bool:
    """Whether forward returns an input after a mark of it, and nothing on a path with the mark may write to it.

    Any code that is not torch's may do so: it may get the tensor with an object, or its address. Where a call in view
    drops the result, the mark is there to give the input itself another gradient.
    """
    if any(call.discarded for call in fn.calls):
        return False
    home = next((each for each in fn.earlier_methods if mark.node in each.parents), None)
    returns = [*returns_with(fn, home, mark)] if home is not None else []
    if not returns or any(is_returned(each, tensor) is not Tri.YES for each in returns):
        return False
    for method in fn.earlier_methods:
        if not method.facts.complete or any(each.attr.value in _MEMORY for each in method.nodes_of(cst.Attribute)):
            return False
        for each, target in _written_in(method):
            if not _is_apart(method, each, mark) and _may_be_in(target, tensor):
                return False
        if any(_runs_other_code(each) and not _is_apart(method, each, mark) for each in method.facts.of(GenericCall)):
            return False
    return True


def _written_in(method: Method) -> Iterator[tuple[Event, Value | None]]:
    """What a method writes to; None for something unknown."""
    yield from ((each, each.target) for each in method.facts.of(Mutation))
    yield from ((each, each.target) for each in method.facts.of(DataReplaced))
    yield from ((each, each.value) for each in method.facts.of(Reshaped))


_MEMORY = frozenset({"data_ptr", "numpy", "storage", "untyped_storage", "__cuda_array_interface__", "__array__"})
"""Attributes that give the address of a tensor, or its memory, to other code."""


def _is_apart(method: Method, event: Event, mark: ContextCall) -> bool:
    """Whether no path has both an event and a mark."""
    return mark.node in method.parents and event.excludes(mark)


def _runs_other_code(call: GenericCall) -> bool:
    callee = call.callee or ""
    return not callee.startswith((*TORCH_NAMESPACES, "math.")) or callee.startswith(_EXTENDED)


_EXTENDED = ("torch.ops.", "torch.utils.", "torch.distributed.", "torch.jit.", "torch._")
"""Parts of torch in which other code runs, or that write to what they get."""


def _may_be_in(value: Value | None, tensor: Value) -> bool:
    return value is None or same_object(before_views(value), tensor) is not Tri.NO


def passed_to(call: GenericCall) -> Iterator[Slot]:
    """All arguments of a call."""
    yield from call.arguments
    yield from (slot for _name, slot in call.keywords)


def _is_other(value: Value, tensor: Value, calls: list[GenericCall]) -> bool:
    """Whether a value is a number or another tensor, or what functions that got only such returned.

    ``calls`` are those that may have returned it: what a call in a loop gets from itself does not count.
    """
    base = before_views(value)
    while isinstance(base, Item):
        base = before_views(base.of)
    if isinstance(base, Parameter):
        return base != tensor and is_tensor(base) is Tri.YES
    if isinstance(base, Opaque):
        makers = [each for each in calls if each.node is base.node and each.callee is not None]
        others = [each for each in calls if each not in makers]
        slots = [slot for each in makers for slot in passed_to(each)]
        return bool(makers) and all(
            not slot.starred and _is_other(leaf, tensor, others) for slot in slots for leaf in leaves(slot.value)
        )
    return isinstance(base, (Constant, Fresh, Single)) or (isinstance(base, Scalar) and base.sort != "object")


def returns_with(fn: FunctionClass, method: Method, call: ContextCall) -> Iterator[list[Returned]]:
    """The returns of forward, each with its alternatives, that certainly come after the mark.

    If it is uncertain which of several does, all possible ones, taken together.
    """
    statements = {id(returned.event): returned.event for returned in fn.outputs}
    together = [[each for each in fn.outputs if each.event is event] for event in statements.values()]
    if method is not fn.forward:
        certain, possible = [], together
    else:
        certain = [each for each in together if happens_after(each[0].event, call)]
        possible = [each for each in together if each[0].event.may_follow(call) and not each[0].event.excludes(call)]
    if possible:
        yield [each for alternatives in possible for each in alternatives]
    yield from certain
