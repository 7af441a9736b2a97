"""Inputs that the result depends on, for which backward always returns None."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.effort import spend
from ctxlint.model.analyses.double_backward import differentiated_in
from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.interpreter.events import Assigned
from ctxlint.model.interpreter.values import Kind, Tri, is_input, is_none, kind_of
from ctxlint.model.syntax import words_of
from ctxlint.records import record
from ctxlint.torch_api import types

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass, Input
    from ctxlint.model.index.apply_calls import ApplyCall
    from ctxlint.model.interpreter.method import Method


@record
class MissingGradient:
    """An input without a gradient; ``call`` passes a leaf for it, or else it is in a formula of the result."""

    input: Input
    call: ApplyCall | None = None


def missing_gradients(fn: FunctionClass) -> Iterator[MissingGradient]:
    """The inputs that get no gradient on any path, next to others that get one."""
    backward, forward = fn.counted_backward, fn.forward
    if backward is None or forward is None or forward.inherited or fn.escapes or fn.variadic_inputs is not None:
        return
    if any(each.gradient is Tri.YES for each in fn.inputs) and not _gives_otherwise(backward):
        for entry in fn.inputs:
            integral = entry.param.annotation in types.INTEGRAL_ANNOTATIONS
            if integral or entry.against_a_gradient or not _always_none(fn, entry.index):
                continue
            calls = [each for each in fn.calls if each.applies and not each.expects_error]
            given = next((each for each in calls if entry.index in each.leaves and not each.gradients_off), None)
            if given is not None and (_is_computed_with(forward, entry.name) or _is_operand(fn, backward, entry)):
                yield MissingGradient(entry, given)
            elif entry.is_tensor is Tri.YES and not _is_constant(entry, calls) and entry.name in _reached(fn, forward):
                yield MissingGradient(entry)


def _always_none(fn: FunctionClass, index: int) -> bool:
    """Whether each return of backward certainly has None at a position."""
    for returned in fn.gradients:
        slots = returned.slots[: index + 1]
        if not returned.known or len(slots) <= index or any(slot.starred for slot in slots):
            return False
        if not all(is_none(option) is Tri.YES for option in slots[index].value.options()):
            return False
    return bool(fn.gradients)


def _gives_otherwise(backward: Method) -> bool:
    """Whether backward may leave gradients where an optimizer finds them: ``weight.main_grad``, ``store.put(...)``."""
    return any(each.attr.value in _ELSEWHERE for each in backward.nodes_of(cst.Attribute))


_ELSEWHERE = frozenset(str.split("grad main_grad weight_grad wgrad grad_sample accumulate_grad accumulate_wgrad put"))


def _is_computed_with(forward: Method, name: str) -> bool:
    """Whether forward computes with an input: an operand, or an argument of anything but a method of ctx."""
    for use in forward.named.get(name, ()):
        around = forward.parents[use]
        if isinstance(around, cst.BinaryOperation):
            return True
        call = forward.parents[around] if isinstance(around, cst.Arg) else None
        called = call.func if isinstance(call, cst.Call) else None
        if called and not forward.is_on_ctx(called) and getattr(called, "value", "") not in ("len", "isinstance"):
            return True
    return False


def _is_operand(fn: FunctionClass, backward: Method, entry: Input) -> bool:
    """Whether backward computes with an input: it is an operand, as the slope of a surrogate gradient is."""
    for name, uses in backward.named.items():
        stored = kept_value(fn, backward.value_of(name))
        if is_input(stored) and stored.index == entry.index:
            if any(isinstance(backward.parents[each], cst.BinaryOperation) for each in uses):
                return True
    return False


def _is_constant(entry: Input, calls: list[ApplyCall]) -> bool:
    """Whether all calls in view pass what never requires a gradient."""
    return bool(calls) and all(entry.index in each.detached or entry.index in each.frozen for each in calls)


def _reached(fn: FunctionClass, forward: Method) -> set[str]:
    """The inputs that are, on some path, in a formula of a floating output by differentiable operations.

    Not one that is an output itself, as a buffer for it, nor one that another value may replace.
    """
    bound: dict[str, list[cst.BaseExpression]] = {}
    for each in forward.facts.of(Assigned):
        if each.value_node is not None:
            bound.setdefault(each.name, []).append(each.value_node)
    todo: list[cst.BaseExpression] = []
    for returned in fn.outputs:
        floating = [slot.node for slot in returned.slots if kind_of(slot.value) is not Kind.INTEGRAL]
        whole = returned.node.value if isinstance(returned.node, cst.Return) and len(returned.slots) == 1 else None
        todo += [node for each in floating if (node := each or whole) is not None]
    outputs = {node.value for node in todo if isinstance(node, cst.Name)}
    found: set[str] = set()
    while todo:
        spend()
        node = todo.pop()
        if not isinstance(node, cst.Name):
            todo.extend(differentiated_in(node))
        elif node.value not in found:
            found.add(node.value)
            todo.extend(bound.get(node.value, ()))
    return {
        name
        for name in found
        if (name in bound or name not in outputs) and all(name in words_of(value) for value in bound.get(name, ()))
    }
