"""Gradients that are zeros which backward allocates, and nothing writes to, next to others that it computes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.gradient_values import reads_values
from ctxlint.model.analyses.integral_inputs import holds_integers
from ctxlint.model.analyses.missing_gradients import depends_on, never_differentiated
from ctxlint.model.analyses.unwritten_gradients import is_harmless, writes_elsewhere
from ctxlint.model.analyses.upstream import is_call_for_zeros
from ctxlint.model.interpreter.events import Assigned, GenericCall, Mutation
from ctxlint.model.interpreter.values import NONE, Fresh, Kind, before_views
from ctxlint.patterns import pattern
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass, Input
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Slot, Value


@record
class ZeroGradient:
    """The zeros at ``node`` for the input number ``index``; ``certain``: an output depends on that, else it may."""

    index: int
    node: cst.BaseExpression
    certain: bool


def zero_gradients(fn: FunctionClass, backward: Method) -> list[ZeroGradient]:
    """The inputs for which each return has such zeros, and whose values forward uses.

    Not what holds integers, or is called as if it did, nor what all calls in view pass without a graph. None of them if
    backward may leave gradients elsewhere.
    """
    forward = fn.forward
    if forward is None or forward.inherited or fn.escapes or not _has_zeros(fn) or writes_elsewhere(backward):
        return []
    zeros = {each.index: node for each in fn.inputs if (node := _zeros_for(fn, backward, each.index)) is not None}
    if not zeros or not _computes_another(fn, frozenset(zeros)) or any(map(_is_zero, _factors(forward))):
        return []
    calls = [each for each in fn.calls if each.applies and not each.expects_error]
    found: list[ZeroGradient] = []
    for index, node in zeros.items():
        entry = fn.inputs[index]
        if entry.against_a_gradient or may_hold_integers(fn, entry) or never_differentiated(index, calls):
            continue
        if reads_values(forward, entry.param):
            certain = depends_on(fn, forward, entry)
            if certain or _is_given_away(forward, entry.name):
                found.append(ZeroGradient(index, node, certain))
    return found


def _factors(method: Method) -> Iterator[cst.BaseExpression]:
    """The operands of multiplications: of ``0 * token``, which only orders calls, the gradient is zero."""
    for each in method.nodes_of(cst.BinaryOperation):
        if isinstance(each.operator, cst.Multiply):
            yield from (each.left, each.right)


def _is_zero(node: cst.BaseExpression) -> bool:
    return isinstance(node, (cst.Integer, cst.Float)) and node.evaluated_value == 0


def _has_zeros(fn: FunctionClass) -> bool:
    slots = (slot for each in fn.gradients for slot in each.slots)
    return any(_made_of_zeros(option) is not None for slot in slots for option in slot.value.options())


def _computes_another(fn: FunctionClass, zeros: frozenset[int]) -> bool:
    """Whether backward returns something for another input than those for which it returns such zeros, or None."""
    return any(
        slot.value != NONE and index not in zeros for each in fn.gradients for index, slot in enumerate(each.slots)
    )


def _made_of_zeros(value: Value) -> Fresh | None:
    """The zeros that a value is, perhaps converted or moved."""
    made = before_views(value)
    zeros = isinstance(made, Fresh) and made.kind is not Kind.INTEGRAL and is_call_for_zeros(made.node)
    return made if isinstance(made, Fresh) and zeros else None


def _zeros_for(fn: FunctionClass, backward: Method, index: int) -> cst.BaseExpression | None:
    """Where zeros that nothing writes are returned, if each return has such, or None for a flag of torch."""
    nodes: list[cst.BaseExpression] = []
    for returned in fn.gradients:
        slots = returned.slots[: index + 1]
        if not returned.known or len(slots) <= index or any(each.starred for each in slots):
            return None
        slot = slots[index]
        if slot.value == NONE and any(guard.mentions("needs_input_grad") for guard in returned.event.guards):
            continue
        if slot.node is None or slot.value == NONE or not _is_left_alone(backward, slot, slot.node):
            return None
        nodes.append(slot.node)
    return nodes[0] if nodes else None


def _is_left_alone(backward: Method, slot: Slot, node: cst.BaseExpression) -> bool:
    """Whether an element of a return is zeros, or None, that are only bound to this name, or written out here."""
    zeros = [_made_of_zeros(each) for each in slot.value.options() if each != NONE]
    made = [each for each in zeros if each is not None and each.node in backward.parents]
    if not made or len(made) < len(zeros):
        return False
    written = (each.target for each in backward.facts.of(Mutation) if each.target is not None)
    if any(before_views(option) in made for target in written for option in target.options()):
        return False
    if not isinstance(node, cst.Name):
        return all(node in (each.node, *backward.above(each.node)) for each in made)
    for each in backward.facts.of(Assigned):
        options = each.value.options() if each.value is not None else ()
        if each.name != node.value and any(before_views(option) in made for option in options):
            return False
    return all(is_harmless(backward, use) for use in backward.named.get(node.value, ()))


def may_hold_integers(fn: FunctionClass, entry: Input) -> bool:
    """Whether an input holds integers or flags, or is called like what often does."""
    return holds_integers(fn, entry) or _INTEGERS.search(entry.name) is not None


_INTEGERS = pattern(
    r"(?:^|_)(?:i?d?x|ids?|ind(?:s|ex|exes|ices)?|\w*idx|n|num|len|lens?|lengths?|sizes?|shapes?|counts?|offsets?|masks?|labels?"
    r"|targets?|batch|faces?|edges?|rows?|cols?|ptr|rowptr|perm|order|group|flags?|seeds?|state|knn|neighbou?rs?)(?:\d|_|$)",
    re.IGNORECASE,
)
"""Names of inputs that often hold integers or flags, of which a kernel says nothing."""


def _is_given_away(forward: Method, name: str) -> bool:
    """Whether a function that is not in view, none of torch or Python, gets values of an input."""
    unknown = {
        each.node for each in forward.facts.of(GenericCall) if each.definition is None and not _is_known(each.callee)
    }
    uses = (use for use in forward.named.get(name, ()) if not forward.is_measured(use)) if unknown else ()
    return any(above in unknown for use in uses for above in forward.above(use))


def _is_known(callee: str | None) -> bool:
    return (callee or "").partition(".")[0] in ("torch", "builtins", "math", "numpy", "warnings", "logging")
