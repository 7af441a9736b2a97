"""Gradients in memory that backward allocates, of which it writes one part: ``grad[:, 1:] = grad_output``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.analyses.unwritten_gradients import allocates, is_harmless, writes_elsewhere
from ctxlint.model.index.scopes import Scope, resolve
from ctxlint.model.interpreter.values import ContextAttribute, Fresh, Tri, before_star, is_input
from ctxlint.model.syntax import dotted, last_name, signed_integer, words_of
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method


@record
class SlicedWrite:
    """A gradient, returned as the name ``node``, of which the statement around ``part`` writes that part.

    ``certain``: the part certainly leaves elements, if there are any.
    """

    node: cst.Name
    part: cst.Subscript
    certain: bool


def sliced_writes(fn: FunctionClass, backward: Method) -> Iterator[SlicedWrite]:
    """The gradients in new memory that nothing uses but one assignment to a part, the first return of each."""
    seen: set[cst.CSTNode] = set()
    for returned in fn.gradients if not writes_elsewhere(backward) else ():
        for at, slot in enumerate(before_star(returned.slots)):
            made = slot.value.node if isinstance(slot.value, Fresh) else None
            unwanted = at < len(fn.inputs) and fn.inputs[at].gradient is Tri.NO
            if unwanted or not isinstance(slot.node, cst.Name) or not isinstance(made, cst.Call):
                continue
            part = _only_part(backward, slot.node, made) if returned.known and _is_of_torch(backward, made) else None
            leaves = _leaves(fn, backward, part, made) if part is not None else None
            if part is not None and leaves is not None and part not in seen:
                seen.add(part)
                yield SlicedWrite(slot.node, part, leaves)


def _is_of_torch(backward: Method, made: cst.Call) -> bool:
    """Whether torch certainly allocates memory: ``torch.empty_like(x)``, ``x.new_empty(n)``."""
    name, home = dotted(made.func), backward.home.record if backward.home is not None else None
    if name is None or home is None or not allocates(made):
        return False
    meant = resolve(name, Scope("function", "", home.body))
    return (meant or "").startswith("torch.") or last_name(made.func).startswith("new_")


def _only_part(backward: Method, gradient: cst.Name, made: cst.Call) -> cst.Subscript | None:
    """The target of the only assignment to a part of new memory; None if anything else may write to it."""
    name = gradient.value
    if len(backward.binders.get(name, ())) != 1 or backward.bound_to(name) is not made:
        return None
    used = [use for use in backward.named[name] if not is_harmless(backward, use)]
    part = backward.parents[used[0]] if len(used) == 1 else None
    is_target = isinstance(part, cst.Subscript) and part.value is used[0] and _is_only_target(backward, part)
    return part if isinstance(part, cst.Subscript) and is_target else None


def _is_only_target(backward: Method, part: cst.Subscript) -> bool:
    target = backward.parents[part]
    assignment = backward.parents[target] if isinstance(target, cst.AssignTarget) else None
    return isinstance(assignment, cst.Assign) and len(assignment.targets) == 1


def _leaves(fn: FunctionClass, backward: Method, part: cst.Subscript, made: cst.Call) -> bool | None:
    """Whether a part certainly leaves elements, if there are any; None if it may be meant to be all."""
    found = [_left_by(fn, backward, each.slice, made) for each in part.slice]
    if None in found or not any(found):
        return None
    return "certainly" in found


def _left_by(fn: FunctionClass, backward: Method, index: cst.BaseSlice, made: cst.Call) -> str | None:
    """Whether an index ``certainly`` or ``perhaps`` leaves elements of its dimension; None if nothing tells."""
    if isinstance(index, cst.Index):
        return "" if isinstance(index.value, cst.Ellipsis) else None
    if not isinstance(index, cst.Slice) or (index.step is not None and signed_integer(index.step) != 1):
        return None
    first, last = signed_integer(index.lower), signed_integer(index.upper)
    bounds = [each for each in (index.lower, index.upper) if each is not None and signed_integer(each) is None]
    if bounds:
        chosen = all(_is_chosen(fn, backward, each, made) for each in bounds)
        return "perhaps" if chosen else None
    if (first or 0) > 0 or (last or 0) < 0:
        return "certainly"
    return "perhaps" if first or last else ""


def _is_chosen(fn: FunctionClass, backward: Method, bound: cst.BaseExpression, made: cst.Call) -> bool:
    """Whether the bound of a slice is a number that the caller passes, and the size of the memory is another one."""
    node = bound.expression if isinstance(bound, cst.UnaryOperation) else bound
    value = backward.value_of(node.value) if isinstance(node, cst.Name) else None
    if isinstance(node, cst.Attribute) and backward.is_on_ctx(node):
        value = ContextAttribute(node.attr.value)
    kept = kept_value(fn, value) if isinstance(value, ContextAttribute) else None
    if kept is None or not is_input(kept) or kept.index >= len(fn.inputs):
        return False
    is_number = fn.inputs[kept.index].is_tensor is Tri.NO
    return is_number and {kept.name, *words_of(node)}.isdisjoint({*words_of(made)} - {backward.ctx_name})
