"""Events that happen more than once on one path through a method."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.gradient_values import reads_values
from ctxlint.model.analyses.outputs import never_wants_gradients, output_values
from ctxlint.model.interpreter.values import NONE, Kind, Tri, is_tensor, kind_of, same_object
from ctxlint.model.syntax import children, last_name, names_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.events import ContextCall, Event
    from ctxlint.model.interpreter.method import EventType, Method
    from ctxlint.model.interpreter.values import Slot, Value


def happens_after(later: Event, earlier: Event) -> bool:
    """Whether some path certainly has both events, ``earlier`` first."""
    if later.implies(earlier):
        return True
    return later.may_follow(earlier) and later.certainly_with(earlier)


def repeated(events: Sequence[EventType]) -> Iterator[tuple[EventType, EventType]]:
    """Each event that certainly follows another of ``events`` on some path, with the nearest such one."""
    for at, later in enumerate(events):
        earlier = next((each for each in reversed(events[:at]) if happens_after(later, each)), None)
        if earlier is not None:
            yield later, earlier


def repeats_arguments(earlier: ContextCall, later: ContextCall) -> bool:
    """Whether the later call certainly has all arguments of the earlier one: replacing that one loses nothing."""
    known = [argument.value for argument in later.arguments if not argument.starred]
    return earlier.exact and all(
        argument.value == NONE or any(same_object(argument.value, value) is Tri.YES for value in known)
        for argument in earlier.arguments
    )


def marks_integers(earlier: ContextCall, later: ContextCall) -> bool:
    """Whether what the earlier call marks and the later one does not are tensors of integers, or are named so."""
    kept = [argument.value for argument in later.arguments]
    return earlier.exact and all(_holds_integers(each) for each in earlier.arguments if each.value not in kept)


def _holds_integers(slot: Slot) -> bool:
    """Whether a value is a tensor of integers; the name decides where nothing is known of it: ``node_ids``."""
    if all(is_tensor(option) is Tri.YES and kind_of(option) is Kind.INTEGRAL for option in slot.value.options()):
        return True
    words = last_name(slot.node).lower().split("_") if slot.node is not None else []
    return not _INDICES.isdisjoint(words) and kind_of(slot.value) is Kind.UNKNOWN


_INDICES = frozenset({"id", "ids", "idx", "idxs", "ind", "index", "indexes", "indices", "inds"})
"""Words in the names of tensors of integers."""


def leaves_differentiable(fn: FunctionClass, marks: Sequence[ContextCall]) -> bool:
    """Whether every return of forward certainly has an output with a gradient that these calls do not mark.

    Or whether no output ever has one.
    """
    if never_wants_gradients(fn):
        return True
    marked = [option for call in marks for argument in call.arguments for option in argument.value.options()]
    return all(call.exact for call in marks) and all(
        returned.known and any(_is_unmarked(slot, marked) for slot in returned.slots) for returned in fn.outputs
    )


def _is_unmarked(slot: Slot, marked: Sequence[Value]) -> bool:
    """Whether an output can have a gradient, and is certainly none of the marked tensors."""
    differentiable = is_tensor(slot.value) is not Tri.NO and kind_of(slot.value) is not Kind.INTEGRAL
    return differentiable and not slot.starred and all(same_object(slot.value, each) is Tri.NO for each in marked)


def gradient_stopped(fn: FunctionClass, mark: ContextCall) -> str | None:
    """The incoming gradient that backward reads although a call always marks its output as non-differentiable."""
    backward = fn.backward
    if backward is None or mark.guards or all(each.gradient is not Tri.YES for each in fn.inputs):
        return None
    for index, param in enumerate(backward.positional):
        outputs = (output_values(fn, index) or ()) if reads_values(backward, param) else ()
        options = {option for each in outputs for option in each.options()}
        known = bool(options) and all(same_object(each, each) is Tri.YES for each in options)
        if known and any(options <= {*each.value.options()} for each in mark.arguments if not each.starred):
            return param.name
    return None


def always_follows(method: Method, later: Event, earlier: Event) -> bool:
    """Whether ``later`` follows ``earlier`` on every path: the guards are the same, and no return is in between."""
    return earlier.guards == later.guards and later.implies(earlier) and not returns_between(method, later, earlier)


def returns_between(method: Method, later: Event, earlier: Event) -> bool:
    """Whether a return on a path with ``earlier`` comes before ``later``."""
    return any(each.may_follow(earlier) and each.order < later.order for each in method.returns)


def loop_around(method: Method, event: Event) -> cst.CSTNode | None:
    """The innermost loop or comprehension that runs the event in each iteration.

    None if there is none, or if its body may exit early: then the loop may be meant for one iteration.
    """
    if not event.in_loop:
        return None
    around = (event.node, *method.above(event.node))
    found = next((each for each in around if isinstance(each, (cst.For, cst.While, cst.CompFor, cst.BaseComp))), None)
    if isinstance(found, (cst.For, cst.While)) and _leaves_early(found.body):
        return None
    return found


def is_chosen(method: Method, loop: cst.CSTNode, event: Event) -> bool:
    """Whether a test in a loop, or in a function called there, decides: the event may be meant for one iteration."""
    tests = (guard.test for guard in event.guards if guard.test is not None)
    return any(test not in method.parents or loop in method.above(test) for test in tests)


def rebound_names(loop: cst.CSTNode) -> frozenset[str]:
    """The names that a loop rebinds in each iteration."""
    targets: list[cst.CSTNode] = []
    if isinstance(loop, cst.For):
        targets.append(loop.target)
    clause = getattr(loop, "for_in", loop)
    while isinstance(clause, cst.CompFor):
        targets.append(clause.target)
        clause = clause.inner_for_in
    return frozenset[str]().union(*map(names_in, targets))


def _leaves_early(node: cst.CSTNode) -> bool:
    if isinstance(node, (cst.Break, cst.Return, cst.Raise)):
        return True
    if isinstance(node, (cst.FunctionDef, cst.ClassDef, cst.Lambda)):
        return False
    return any(_leaves_early(child) for child in children(node))
