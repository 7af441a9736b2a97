"""Gradients that backward computes under the name of an input, for which it returns None all the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.filled_by_extension import calls_that_may_fill
from ctxlint.model.analyses.gradient_names import has_name_of
from ctxlint.model.analyses.gradient_values import reads_values
from ctxlint.model.analyses.missing_gradients import always_none, gives_otherwise, never_differentiated
from ctxlint.model.analyses.unwritten_gradients import allocates, is_harmless, writes_elsewhere
from ctxlint.model.analyses.upstream import is_call_for_zeros
from ctxlint.model.analyses.zero_gradients import may_hold_integers
from ctxlint.model.index.file_index import reached
from ctxlint.model.interpreter.events import GenericCall, MethodCall, Question
from ctxlint.model.interpreter.values import Fresh, Kind, Tri
from ctxlint.model.syntax import names_in
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass, Input
    from ctxlint.model.interpreter.events import Assigned
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Value


@record
class Dropped:
    """The gradient ``name`` for the input ``entry``, computed at ``node``, which nothing uses."""

    name: str
    entry: Input
    node: cst.CSTNode


def dropped_gradients(fn: FunctionClass) -> Iterator[Dropped]:
    """Such gradients, next to others that backward returns.

    Not where all calls in view pass what requires no gradient, nor where backward may leave gradients elsewhere.
    """
    backward, forward = fn.counted_backward, fn.forward
    if backward is None or forward is None or forward.inherited or fn.escapes or fn.variadic_inputs is not None:
        return
    named = {each: at for each in backward.assignments if (at := _input_of(fn, each)) is not None}
    named = {each: at for each, at in named.items() if always_none(fn, at)}
    if not named or not _returns_others(fn) or gives_otherwise(backward) or writes_elsewhere(backward):
        return
    incoming = _from_incoming(backward)
    calls = [each for each in fn.calls if each.applies and not each.expects_error]
    for name, at in named.items():
        entry = fn.inputs[at]
        if entry.against_a_gradient or entry.is_tensor is Tri.NO or may_hold_integers(fn, entry):
            continue
        if not never_differentiated(at, calls) and reads_values(forward, entry.param):
            node = _computed(backward, name, incoming)
            if node is not None and any(each.event.may_follow(backward.assignments[name][0]) for each in fn.gradients):
                yield Dropped(name, entry, node)


def _input_of(fn: FunctionClass, name: str) -> int | None:
    """The input whose gradient a variable certainly is by name; not one that is called as an input is."""
    return None if any(each.name == name for each in fn.inputs) else has_name_of(cst.Name(name), fn.inputs)


def _returns_others(fn: FunctionClass) -> bool:
    """Whether another input gets a gradient, and no return is too short, so that it raises."""
    counts = [each.count for each in fn.gradients]
    complete = all(each is not None and each >= len(fn.inputs) for each in counts)
    return complete and any(each.gradient is Tri.YES for each in fn.inputs)


def _from_incoming(backward: Method) -> frozenset[str]:
    """The names of the incoming gradients, and of what is computed from them."""
    bound = ((name, each.value_node) for name, values in backward.assignments.items() for each in values)
    used = ((read, name) for name, node in bound if node is not None for read in names_in(node))
    return reached((each.name for each in backward.own_params), used)


def _computed(backward: Method, name: str, incoming: frozenset[str]) -> cst.CSTNode | None:
    """Where a name is bound to a new gradient that nothing uses, or where memory that it is bound to is filled."""
    assigned = backward.only_assignment(name)
    if assigned is None or assigned.augmented or len(backward.binders[name]) > 1 or not _is_certain(assigned):
        return None
    value, node = assigned.value, assigned.value_node
    if not isinstance(value, Fresh) or value.node is not node or value.kind is Kind.INTEGRAL:
        return None
    used = [each for each in backward.named[name] if not is_harmless(backward, each) or _is_returned(backward, each)]
    if allocates(node) or is_call_for_zeros(node):
        return next(_filling(backward, value, used, incoming), None)
    return assigned.node if not used and _is_formula(backward, node, incoming) else None


def _is_returned(backward: Method, use: cst.Name) -> bool:
    """Whether a name is in a ``return``: for another input than the one that it is named after."""
    return isinstance(backward.statement_around(use), cst.Return)


def _is_certain(assigned: Assigned) -> bool:
    """Whether only ``needs_input_grad`` decides whether it is computed."""
    asked = (each.asks.question if each.asks is not None else None for each in assigned.guards)
    return not assigned.in_loop and all(each is Question.NEEDS_INPUT_GRAD for each in asked)


def _is_formula(backward: Method, node: cst.CSTNode, incoming: frozenset[str]) -> bool:
    """Whether a new tensor is computed from the incoming gradient, by no function that may keep it."""
    ours = [each.node for each in backward.facts.of(GenericCall) if each.definition is not None]
    ours += [each.node for each in backward.facts.of(MethodCall) if each.definition is not None]
    return not incoming.isdisjoint(names_in(node)) and not any(node in (each, *backward.above(each)) for each in ours)


def _filling(backward: Method, value: Value, used: list[cst.Name], incoming: frozenset[str]) -> Iterator[cst.Call]:
    """The one call that may fill memory with a gradient: compiled code, which also gets the incoming gradient."""
    around = {call for each in used for call in [backward.around(each, cst.Call)]}
    for call in calls_that_may_fill(backward, value):
        given = [each.value for each in call.args if isinstance(each.value, cst.Name)]
        if around == {call} and len(used) == 1 and used[0] in given and not incoming.isdisjoint(names_in(call)):
            yield call
