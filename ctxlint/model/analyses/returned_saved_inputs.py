"""Saved inputs that backward returns as their own gradients, as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.deliberate_gradients import only_keeps, states_it
from ctxlint.model.analyses.gradient_values import is_checked, reads_values
from ctxlint.model.analyses.integral_inputs import holds_integers
from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.analyses.unwritten_gradients import writes_elsewhere
from ctxlint.model.interpreter.events import ExtraAttribute, GenericCall, Mutation
from ctxlint.model.interpreter.values import Item, SavedTensor, Variadic, before_views, is_input
from ctxlint.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass, Returned
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Value


def returned_saved_inputs(fn: FunctionClass, backward: Method) -> Iterator[tuple[int, cst.BaseExpression]]:
    """The gradients that certainly are the input itself, by input, although backward reads the incoming gradient.

    Not if backward may write to the tensor: with a kernel, a function that is not in view, or an attribute of it. Nor
    if the input may hold integers: torch ignores what is returned for it.
    """
    candidates = [each for returned in fn.gradients for each in operands_returned(fn, returned)]
    if not candidates or not any(reads_values(backward, each) for each in backward.own_params):
        return
    if any(each.name.startswith("_") or is_checked(backward, each) for each in backward.own_params):
        return
    if fn.escapes or writes_elsewhere(backward) or states_it(fn, backward):
        return
    for index, node, value in candidates:
        entry = fn.inputs[index] if is_input(kept_value(fn, value)) else None
        integral = entry is not None and (holds_integers(fn, entry) or _INTEGERS.search(entry.name) is not None)
        if not integral and not _may_be_changed(backward, value):
            yield index, node


_INTEGERS = pattern(r"(?:^|_)(?:idx|ids?|ind(?:s|ex|exes|ices)|offsets?|len(?:gth)?s?|labels?|counts?|ptr|perm)$")
"""Names of inputs that often hold integers."""


def operands_returned(fn: FunctionClass, returned: Returned) -> Iterator[tuple[int, cst.BaseExpression, SavedTensor]]:
    """The saved inputs, with which forward computes, that a return of backward gives as their own gradients."""
    for index, slot in enumerate(returned.slots if returned.known and returned.exact else ()):
        if slot.node is not None and isinstance(slot.value, SavedTensor) and _is_operand(fn, slot.value, index):
            yield index, slot.node, slot.value


def _is_operand(fn: FunctionClass, value: SavedTensor, index: int) -> bool:
    """Whether a saved tensor is the input with a number, also in ``*args``, and forward computes with it."""
    kept = kept_value(fn, value)
    node = fn.saves[0].arguments[value.index].node if kept is not None else None
    if not isinstance(node, cst.Name) or fn.forward is None or only_keeps(fn.forward, node.value):
        return False
    if isinstance(kept, Item) and isinstance(kept.of, Variadic):
        return kept.of.role == "input" and isinstance(kept.key, int) and kept.of.start + kept.key == index
    return is_input(kept) and kept.index == index and not fn.inputs[index].refused


def _may_be_changed(backward: Method, value: Value) -> bool:
    """Whether backward may change a saved tensor, or sets an attribute of it."""
    written = [each.target for each in backward.facts.of(Mutation)]
    if any(each is None or any(before_views(option) == value for option in each.options()) for each in written):
        return True
    if any(before_views(each.value) == value for each in backward.facts.of(ExtraAttribute)):
        return True
    calls = (each for each in backward.facts.of(GenericCall) if not (each.callee or "").startswith("torch."))
    given = (slot.value for each in calls for slot in (*each.arguments, *dict(each.keywords).values()))
    return any(before_views(option) == value for each in given for option in each.options())
