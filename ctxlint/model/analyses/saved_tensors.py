"""How many tensors ``ctx.saved_tensors`` has in a method, and how many the method reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.repeats import repeated
from ctxlint.model.interpreter.events import SavedItem, SavedRead
from ctxlint.model.interpreter.local_names import times_bound
from ctxlint.model.interpreter.values import Tri
from ctxlint.model.syntax import dotted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.events import ContextCall, Guard, Unpacking
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Slot


def saving_call(method: Method) -> str:
    """The method of ctx that fills ``saved_tensors`` for this reader: jvp reads what was saved for forward mode."""
    return "save_for_forward" if method.name == "jvp" else "save_for_backward"


def unpacked_alone(fn: FunctionClass, call: ContextCall) -> Tri:
    """Whether backward certainly unpacks as many tensors as this call saves. No if it reads none, or unpacks others."""
    readers = [each for each in fn.reading_methods if saving_call(each) == call.method]
    reads = [read for method in readers for read in method.facts.of(SavedRead)]
    unpackings = [each for read in reads for each in read.unpackings]
    if not reads:
        return Tri.NO
    if not unpackings or not call.exact or any(each.starred for each in unpackings):
        return Tri.UNKNOWN
    alike = all(each.minimum == len(call.arguments) for each in unpackings)
    return Tri.YES if alike else Tri.NO


def saved_counts(fn: FunctionClass, call: str) -> frozenset[int] | None:
    """The numbers of tensors that forward may have saved, by path; None if that is not certain.

    ``{0}`` if nothing is saved at all.
    """
    calls = _all_saves(fn, call)
    if calls is None or any(True for _ in repeated(calls)):
        return None
    return frozenset(len(each.arguments) for each in calls) or frozenset({0})


def count_of_last(fn: FunctionClass, call: str) -> frozenset[int] | None:
    """The number of tensors that the last of several calls certainly leaves, which replaces what the others saved."""
    calls = _all_saves(fn, call)
    if calls is None or len(calls) < 2 or any(each.guards for each in calls) or len(fn.context_methods) > 1:
        return None
    return frozenset({len(calls[-1].arguments)})


def _all_saves(fn: FunctionClass, call: str) -> tuple[ContextCall, ...] | None:
    """The calls that save tensors before backward, each with all its arguments; None if that is not certain."""
    forward = fn.forward
    if forward is None or forward.raises_only or not fn.signature_judgeable or fn.escapes:
        return None
    by_hand = not fn.called_directly.isdisjoint(("backward", "vjp", "jvp", "setup_context"))  # perhaps with another ctx
    if fn.has_subclass or by_hand or "to_save" in fn.stored_attributes:
        return None
    writers = fn.context_methods
    if not writers or not all(method.facts.complete and method.context_known for method in writers):
        return None
    calls: tuple[ContextCall, ...] = fn.context_calls(call)
    return calls if all(each.exact for each in calls) else None


def mismatched(method: Method, saved: frozenset[int]) -> Iterator[Unpacking | SavedItem]:
    """Where the method reads a number of saved tensors that is not in ``saved``."""
    reads = (read for read in method.facts.of(SavedRead) if read.via != "saved_for_forward")
    unpackings = [each for read in reads for each in read.unpackings]
    wrong = [each for each in unpackings if not any(_fits(each, count) for count in saved)]
    for unpacking in wrong:
        if not _tests_length(unpacking.guards) and (not unpacking.guards or len(wrong) == len(unpackings)):
            yield unpacking
    for item in method.facts.of(SavedItem):
        beyond = all(item.index >= count or item.index < -count for count in saved)
        if beyond and not item.guards and item.via != "saved_for_forward":
            yield item


def _fits(unpacking: Unpacking, count: int) -> bool:
    return unpacking.minimum <= count if unpacking.starred else unpacking.minimum == count


def _tests_length(guards: tuple[Guard, ...]) -> bool:
    return any(guard.arm == "try" or "len(" in guard.text or "saved" in guard.text for guard in guards)


def hides_an_input(fn: FunctionClass, method: Method, argument: Slot) -> bool:
    """Whether an argument has the name of an input with a gradient, to which it is bound: ``b, n = x.shape``."""
    name = dotted(argument.node) if argument.node is not None else None
    entry = next((each for each in fn.inputs if each.name == name), None)
    return entry is not None and entry.gradient is Tri.YES and times_bound(method.node.body)[entry.name] > 0
