"""Gradients that are not the derivative of what forward computes of each element, by trying some numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.element_values import OnCtx, OneElement, UnknownValue, run
from ctxlint.model.analyses.layout_uses import keeps_arguments
from ctxlint.model.interpreter.values import Constant, Tri
from ctxlint.patterns import pattern
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ctxlint.model.analyses.element_values import Held
    from ctxlint.model.function import FunctionClass, Input
    from ctxlint.model.interpreter.method import Method


@record
class WrongDerivative:
    """The gradient for the input ``name``, where the inputs are ``at``: so much times the incoming one.

    ``right`` is the derivative there.
    """

    name: str
    at: tuple[tuple[str, float], ...]
    given: float
    right: float


_ON_PURPOSE = pattern(r"(?i:surrogate|straight|spik|guided|pseudo|proxy|approx)|STE")
"""Parts of the names of Functions with another gradient on purpose."""
_POINTS = (0.9, 1.7, 0.4, -0.6, -1.3)
_STEP, _EXACT, _FAR = 1e-4, 1e-3, 0.05


def wrong_derivatives(fn: FunctionClass) -> Iterator[WrongDerivative]:
    """The inputs whose gradient is wrong for some numbers, and not by a constant factor.

    A factor is how a gradient is scaled, or reversed, on purpose, also by an input, if the derivative is constant; and
    what passes a gradient on, or where the derivative is 0, is on purpose, too.
    """
    forward, backward = fn.forward, fn.counted_backward
    if forward is None or backward is None or forward.inherited or len(backward.own_params) != 1 or not fn.inputs:
        return
    methods = [each for each in (forward, backward, fn.setup_context) if each is not None]
    if any(each.inherited or not keeps_arguments(each) for each in methods) or _ON_PURPOSE.search(fn.name):
        return
    for index, entry in enumerate(fn.inputs):
        if entry.is_tensor is Tri.NO or entry.gradient is Tri.NO:
            continue
        tried = [
            each for shift in range(len(_POINTS)) for each in [_tried(fn, backward, index, shift)] if each is not None
        ]
        wrong = [
            each for each in tried if each.right and abs(each.given - each.right) > _FAR * max(1.0, abs(each.right))
        ]
        factors = [each.given / each.right for each in tried if each.right]
        constant = 1 in (len({each.given for each in tried}), len({round(each.right, 3) for each in tried}))
        if wrong and not constant and len(factors) > 1 and max(factors) - min(factors) > _FAR:
            yield wrong[0]


def are_right(fn: FunctionClass, indices: Iterable[int]) -> bool:
    """Whether backward gives the derivative by each of some inputs, for all numbers with which this is known."""
    backward = fn.counted_backward
    if fn.forward is None or backward is None or len(backward.own_params) != 1:
        return False
    tried = [[_tried(fn, backward, index, shift) for shift in range(len(_POINTS))] for index in indices]
    known = [[each for each in some if each is not None] for some in tried]
    return all(len(some) > 1 and all(_is_close(each) for each in some) for some in known)


def _is_close(tried: WrongDerivative) -> bool:
    return abs(tried.given - tried.right) <= _EXACT * max(1.0, abs(tried.right))


def _tried(fn: FunctionClass, backward: Method, index: int, shift: int) -> WrongDerivative | None:
    """What backward gives for an input with some numbers, and the derivative; None if either is unknown."""
    numbers = [_POINTS[(at * 2 + shift) % len(_POINTS)] for at in range(len(fn.inputs))]
    numbers = [_of_number(each) if each.is_tensor is Tri.NO else number for each, number in zip(fn.inputs, numbers)]
    try:
        context, low, high = OnCtx(), [*numbers], [*numbers]
        _output(fn, numbers, context)
        low[index], high[index] = numbers[index] - _STEP, numbers[index] + _STEP
        here, below, above = (_output(fn, each, OnCtx()) for each in (numbers, low, high))
        given = [_gradient(backward, _copy(context), index, incoming) for incoming in (1.0, 3.0)]
    except UnknownValue:
        return None
    right = (above - below) / (2 * _STEP)
    if abs(given[1] - 3 * given[0]) > _EXACT or abs(above + below - 2 * here) > _STEP * _FAR:
        return None  # it treats large gradients in another way, or there is no derivative
    at = tuple((each.name, number) for each, number in zip(fn.inputs, numbers))
    return WrongDerivative(fn.inputs[index].name, at, given[0], 0.0 if abs(right) < _EXACT else right)


def _of_number(entry: Input) -> float:
    """The default of a parameter for a number, or any."""
    default = entry.param.default
    value = default.value if isinstance(default, Constant) else None
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else _ANY


_ANY = 0.7


def _output(fn: FunctionClass, numbers: list[float], context: OnCtx) -> float:
    forward, setup = fn.forward, fn.setup_context
    if forward is None:
        raise UnknownValue
    given: dict[str, Held] = {
        each.name: number if each.is_tensor is Tri.NO else OneElement(number)
        for each, number in zip(fn.inputs, numbers)
    }
    result = run(forward, given, context)
    if setup is not None:
        names = [each.name for each in setup.own_params]
        if len(names) != _OF_SETUP:
            raise UnknownValue
        run(setup, dict(zip(names, (tuple(given.values()), result))), context)
    if not isinstance(result, OneElement):
        raise UnknownValue
    return result.number


_OF_SETUP = 2


def _copy(context: OnCtx) -> OnCtx:
    """The same state for another run, which may change tensors."""
    copied = OnCtx()
    copied.saved = tuple(map(_copied, context.saved)) if context.saved is not None else None
    copied.attributes = {name: _copied(each) for name, each in context.attributes.items()}
    return copied


def _copied(held: Held) -> Held:
    if isinstance(held, tuple):
        return tuple(map(_copied, held))
    return OneElement(held.number) if isinstance(held, OneElement) else held


def _gradient(backward: Method, context: OnCtx, index: int, incoming: float) -> float:
    returned = run(backward, {backward.own_params[0].name: OneElement(incoming)}, context)
    slots = returned if isinstance(returned, tuple) else (returned,)
    slot = slots[index] if index < len(slots) else None
    if not isinstance(slot, OneElement):
        raise UnknownValue
    return slot.number
