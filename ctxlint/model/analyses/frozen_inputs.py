"""Inputs with respect to which backward, or forward itself, differentiates: a frozen one needs no gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.differentiated_outputs import differentiates_output
from ctxlint.model.analyses.grad_mode import differentiated_untracked
from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.interpreter.events import GenericCall, GradientFlag, NeedsInputGradRead
from ctxlint.model.interpreter.values import (
    Parameter,
    Sequence,
    Tri,
    View,
    before_views,
    detaches,
    is_input,
)
from ctxlint.model.syntax import code_of, dotted
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Slot, Value

_GRAD = "torch.autograd.grad"


@record
class FrozenElement:
    """An element of the second argument of ``torch.autograd.grad`` that requires a gradient only if an input does.

    It is the input as it was saved, or as ``forward`` got it; or, if ``copied`` is not None, a detached copy with the
    flag of the input, of which it is the code.
    """

    node: cst.BaseExpression
    parameter: Parameter
    copied: str | None = None


def frozen_inputs(fn: FunctionClass, method: Method) -> Iterator[FrozenElement]:
    """Elements of the second argument of ``torch.autograd.grad`` that are an input as it was passed, or have its flag.

    Only if another input may be the one that needs a gradient, and if nothing asks which of them do, or sets the flag.
    """
    if sum(each.gradient is Tri.YES for each in fn.inputs) < 2 or fn.escapes:
        return
    if any(_may_concern_inputs(fn, method, each) for each in method.facts.of(GradientFlag)):
        return
    if method.facts.of(NeedsInputGradRead):
        return
    for call in method.facts.of(GenericCall):
        if call.callee != _GRAD or method.name in fn.called_directly or any(each.arm != "loop" for each in call.guards):
            continue
        if call.arguments and _always_raises(fn, method, call):
            continue
        by = call.arguments[1] if len(call.arguments) > 1 else dict(call.keywords).get("inputs")
        for slot in _targets(by.value) if by is not None else ():
            stored = slot.value if method is fn.forward else kept_value(fn, slot.value)
            origin = _input_of(fn, stored)
            copied = _copied_with_flag(fn, stored) if origin is None and method is not fn.forward else None
            parameter = origin or (
                _input_of(fn, before_views(stored)) if copied is not None and stored is not None else None
            )
            if parameter is not None and slot.node is not None and not slot.starred:
                yield FrozenElement(slot.node, parameter, copied)


def _targets(by: Value) -> tuple[Slot, ...]:
    """The elements of a list of two or more; if it is one of several, those that are in each of them."""
    lists = [each for each in by.options() if isinstance(each, Sequence) and len(each.slots) > 1]
    if len(lists) < len(by.options()):
        return ()
    every = [{slot.value for slot in each.slots} for each in lists]
    return tuple(slot for slot in lists[0].slots if all(slot.value in each for each in every))


def _may_concern_inputs(fn: FunctionClass, method: Method, flag: GradientFlag) -> bool:
    """Whether it may read or set the flag of an input: in forward, ``x.detach().requires_grad_()`` does not."""
    return method is not fn.forward or not flag.switched or not isinstance(flag.value, View) or not detaches(flag.value)


def _always_raises(fn: FunctionClass, method: Method, call: GenericCall) -> bool:
    """Whether what is differentiated has no graph, or that of the Function: CTX220."""
    untracked = differentiated_untracked(fn, method, call.arguments[0].value) is not None
    return untracked or differentiates_output(fn, method, call.node)


def _input_of(fn: FunctionClass, stored: Value | None) -> Parameter | None:
    """The input with a gradient that a stored tensor is."""
    if not is_input(stored):
        return None
    return stored if fn.inputs[stored.index].gradient is Tri.YES else None


def _copied_with_flag(fn: FunctionClass, stored: Value | None) -> str | None:
    """The code of ``x.detach()``, if ``requires_grad_(x.requires_grad)`` is all that sets the flag of this copy."""
    if not isinstance(stored, View) or not detaches(stored) or not isinstance(stored.of, Parameter):
        return None
    flags = [each for home in fn.context_methods for each in home.facts.of(GradientFlag) if each.switched]
    mine = [each for each in flags if each.value == stored]
    if len(mine) != 1 or not isinstance(mine[0].node, cst.Call) or len(mine[0].node.args) != 1 or mine[0].guards:
        return None
    asked = mine[0].node.args[0].value
    if not isinstance(asked, cst.Attribute) or asked.attr.value != "requires_grad" or stored.node is None:
        return None
    return code_of(stored.node) if dotted(asked.value) == stored.of.name else None
