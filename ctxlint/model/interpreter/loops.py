"""``for`` and ``while``: a state that holds for any number of iterations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.assignments import assign_target
from ctxlint.model.interpreter.conditions import decided, narrow
from ctxlint.model.interpreter.effects import may_stop
from ctxlint.model.interpreter.events import Guard, Return
from ctxlint.model.interpreter.iteration import elements_of, item_of
from ctxlint.model.interpreter.local_names import target_names, times_bound
from ctxlint.model.interpreter.sequences import unknown_many
from ctxlint.model.interpreter.state import State, Turn, covers, join_environments, join_states, some_tensor, widen
from ctxlint.model.interpreter.values import (
    UNBOUND,
    UNKNOWN,
    Choice,
    Constant,
    Scalar,
    Sequence,
    Single,
    Slot,
    Tri,
    Value,
    is_tensor,
    join,
    join_all,
)
from ctxlint.model.syntax import children, last_name, words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ctxlint.model.interpreter.walk import Walk

_MAX_DEPTH = 3
"""Loops nested deeper than this are not iterated; what they bind is unknown."""

_MAX_TURNS = 8

_MAX_ELEMENTS = 16
"""The body of a loop over more elements is not walked for each of them."""

_MAX_ARGUMENTS = 64
"""The same for the arguments of a function that takes any."""


def execute_for(walk: Walk, node: cst.For) -> None:
    """A ``for`` loop."""
    iterated = walk.evaluate(node.iter)
    if _run_for_each(walk, node, iterated):
        return
    item = _pairs(node, iterated) or item_of(walk, node.iter, iterated)
    known = _each_of(walk, node, iterated, item)
    if known is not None and not may_stop(node.body):
        walk.each[id(known)] = known
    _execute_loop(walk, node, lambda: assign_target(walk, node.target, item, None), endless=False)
    walk.each.pop(id(known), None)


def _pairs(node: cst.For, iterated: Value) -> Sequence | None:
    """A pair of what the two variables of a loop are, if it runs over known pairs, such as ``kwargs.items()``."""
    if not isinstance(node.target, cst.Tuple) or not isinstance(iterated, Sequence) or not iterated.exact:
        return None
    pairs = [slot.value.slots for slot in iterated.slots if isinstance(slot.value, Sequence) and slot.value.exact]
    if not pairs or len(pairs) < len(iterated.slots) or any(len(each) != 2 for each in pairs):
        return None
    return Sequence("tuple", tuple(Slot(join_all(each[at].value for each in pairs)) for at in range(2)), node)


def _each_of(walk: Walk, node: cst.For, iterated: Value, item: Value) -> Value | None:
    """The elements of which a loop takes each, perhaps with its number or name; None if one is not a known object.

    Nor if the loop tests the number or name: what it does then, it does to some of them.
    """
    if not isinstance(item, Sequence) or not isinstance(node.target, cst.Tuple):
        return item if _has_plain_elements(iterated) else None
    enumerated = isinstance(node.iter, cst.Call) and last_name(node.iter.func) == "enumerate"
    if len(item.slots) != 2 or len(node.target.elements) != 2:
        return None
    keys = [at for at, slot in enumerate(item.slots) if all(map(_is_key, slot.value.options()))]
    if len(keys) != 1:
        return None
    key = node.target.elements[keys[0]].value
    if not isinstance(key, cst.Name) or _is_tested(node.body, key.value):
        return None
    source = walk.peek(node.iter.args[0].value) if enumerated and isinstance(node.iter, cst.Call) else iterated
    known = item.slots[1 - keys[0]].value
    return known if _has_plain_elements(source) else None


def _is_key(value: Value) -> bool:
    """Whether it is a number or a name next to an element: ``for name, x in pairs``."""
    return isinstance(value, (Constant, Scalar))


def _is_tested(node: cst.CSTNode, name: str) -> bool:
    """Whether some code compares a name, or decides anything by it."""
    tests = isinstance(node, (cst.Comparison, cst.BooleanOperation))
    test = node if tests else getattr(node, "test", None)
    if isinstance(test, cst.CSTNode) and name in words_of(test):
        return True
    return any(_is_tested(each, name) for each in children(node))


def _by_name(node: cst.CSTNode) -> bool:
    """Whether simple statements of a loop access attributes by name: ``setattr(ctx, name, value)``."""
    if isinstance(node, cst.Call):
        if isinstance(node.func, cst.Name) and node.func.value in ("getattr", "setattr"):
            return True
    elif isinstance(node, (cst.For, cst.While, cst.With, cst.Try, cst.FunctionDef)):
        return False
    return any(map(_by_name, children(node)))


def _run_for_each(walk: Walk, node: cst.For, iterated: Value) -> bool:
    """Run a body for each element, if all are known: one that accesses attributes by name, or that converts arguments.

    False if that is not possible.
    """
    elements = elements_of(walk, node.iter, iterated)
    if elements is None or node.orelse is not None:
        return False
    by_name = len(elements) <= _MAX_ELEMENTS and _by_name(node.body)
    if not by_name and not (len(elements) <= _MAX_ARGUMENTS and _collects(node.body) and _is_of_rest(walk, node.iter)):
        return False
    if may_stop(node.body):
        return False
    for element in elements:
        assign_target(walk, node.target, element, None)
        walk.execute(node.body)
    return True


def _collects(node: cst.CSTNode) -> bool:
    """Whether a loop body collects what it computes: ``converted.append(...)``, ``converted[name] = ...``."""
    if isinstance(node, cst.Call):
        return isinstance(node.func, cst.Attribute) and node.func.attr.value == "append"
    if isinstance(node, cst.Assign) and any(isinstance(each.target, cst.Subscript) for each in node.targets):
        return True
    return not isinstance(node, cst.FunctionDef) and any(map(_collects, children(node)))


def _is_of_rest(walk: Walk, iterable: cst.BaseExpression) -> bool:
    """Whether a loop runs over ``args`` or ``kwargs`` of a function that takes any arguments, perhaps enumerated."""
    while isinstance(iterable, cst.Call):
        func, *given = iterable.func, *(each.value for each in iterable.args)
        iterable = func.value if isinstance(func, cst.Attribute) else next(iter(given), func)
    if not isinstance(iterable, cst.Name):
        return False
    params = walk.names.whole_function().params
    rest = (each for each in (params.star_arg, params.star_kwarg) if isinstance(each, cst.Param))
    return any(each.name.value == iterable.value for each in rest)


def _has_plain_elements(value: Value) -> bool:
    """Whether it is a tuple or list of which each element is one known object, or a pair with one."""
    if not isinstance(value, Sequence) or not value.exact or not value.slots:
        return False
    elements = [slot.value for slot in value.slots]
    parts = (part.value for each in elements if isinstance(each, Sequence) for part in each.slots)
    return not any(isinstance(each, Choice) for each in (*elements, *parts))


def execute_while(walk: Walk, node: cst.While) -> None:
    """A ``while`` loop."""
    endless = isinstance(node.test, (cst.Name, cst.Integer)) and decided(walk, node.test) is True
    _execute_loop(walk, node, lambda: _while_test(walk, node), endless=endless)


def _while_test(walk: Walk, node: cst.While) -> None:
    """The test before each iteration."""
    walk.evaluate(node.test)
    narrow(walk, node.test, holds=True)


def execute_leave(walk: Walk, node: cst.Break | cst.Continue) -> None:
    """``break`` and ``continue``."""
    if walk.turns:
        turn = walk.turns[-1]
        (turn.breaks if isinstance(node, cst.Break) else turn.continues).append(walk.state.fork())
    walk.state.live = False


def _execute_loop(walk: Walk, node: cst.For | cst.While, begin: Callable[[], None], endless: bool) -> None:
    """A loop that calls ``begin`` before each iteration, with its ``else``."""
    before = walk.state
    recorded = tuple(walk.recorder.events)
    walk.loops += 1
    start, turn = _begun(walk, node, before, begin)
    if start is before:
        start = _joined(before, turn.goes_on(), widen)
        if (start.names, start.attributes) != (before.names, before.attributes):
            walk.recorder.rewind(recorded)
            turn = _walk_turn(walk, node, start, begin)
    for attempt in range(_MAX_TURNS):
        if _settled(start, turn):
            break
        walk.recorder.rewind(recorded)
        start = _joined(start, turn.goes_on(), _generalised) if attempt + 1 < _MAX_TURNS else _anything(node, before)
        turn = _walk_turn(walk, node, start, begin)
    walk.loops -= 1
    if 0 < walk.loops < _MAX_DEPTH:
        walk.fixed_points[id(node)] = start
    turn.forget_special_cases(start)
    walk.state = join_states(start, [] if endless else [start.fork(), turn.end, *turn.continues])
    walk.state.guards = before.guards
    if node.orelse is not None and walk.state.live:
        if turn.breaks:
            walk.state = walk.state.fork(Guard(id(node), "not broken"))
        walk.execute(node.orelse.body)
    walk.state = join_states(start, [walk.state, *turn.breaks])
    walk.state.guards, walk.state.paths = before.guards, before.paths
    _doubt_no_iteration(node, before, walk.state)
    if any(isinstance(event, Return) for event in walk.recorder.events[len(recorded) :]):
        walk.state.doubt(Guard(id(node), "exhausted"))


def _begun(walk: Walk, node: cst.For | cst.While, before: State, begin: Callable[[], None]) -> tuple[State, Turn]:
    """A first turn, and the state that it began with: ``before`` if it only shows what the body changes.

    A loop within another is walked again in each turn of that. What its body changes is known from the last time.
    """
    known = walk.fixed_points.get(id(node))
    if known is None:
        start = before if walk.loops <= _MAX_DEPTH else _anything(node, before)
        return start, _walk_turn(walk, node, start, begin)
    recorded = tuple(walk.recorder.events)
    start = _joined(before, [known], join)
    turn = _walk_turn(walk, node, start, begin)
    if _settled(start, turn):
        return start, turn
    walk.recorder.rewind(recorded)
    return before, _walk_turn(walk, node, before, begin)


def _doubt_no_iteration(node: cst.For | cst.While, before: State, after: State) -> None:
    """Forget the number that a sum of tensors starts from: a loop that never runs its body is not what is meant."""
    for name, value in after.names.items():
        start = before.names.get(name)
        if isinstance(value, Choice) and isinstance(start, Constant) and isinstance(start.value, (int, float)):
            if any(is_tensor(option) is not Tri.NO for option in value.alternatives):
                options = (Single(node) if option == start else option for option in value.alternatives)
                after.names[name] = join_all(options)


def _walk_turn(walk: Walk, node: cst.For | cst.While, start: State, begin: Callable[[], None]) -> Turn:
    """Walk the body once."""
    turn = Turn(start)
    walk.turns.append(turn)
    walk.state = start.fork(Guard(id(node), "loop"))
    begin()
    walk.execute(node.body)
    turn.end = walk.state
    walk.turns.pop()
    return turn


def _anything(node: cst.For | cst.While, before: State) -> State:
    """``before``, with everything unknown that the loop may change."""
    state = before.fork()
    changed = set(times_bound(node.body))
    if isinstance(node, cst.For):
        changed.update(target_names(node.target))
    for name in changed & state.names.keys():
        state.names[name] = UNKNOWN
    for value in tuple(state.names.values()):
        state.escape(value)
    state.attributes = {}
    return state


def _settled(start: State, turn: Turn) -> bool:
    """Whether an iteration that starts with ``start`` ends in states that ``start`` covers: a fixed point."""
    if any(start.attributes.items() - state.attributes.items() for state in turn.goes_on()):
        return False
    return all(
        covers(value, state.names.get(name, UNBOUND)) for state in turn.goes_on() for name, value in start.names.items()
    )


def _joined(start: State, others: Iterable[State], combine: Callable[[Value, Value], Value]) -> State:
    """``start`` joined with ``others`` within or after an iteration, without names that only the body binds."""
    wide = start.fork()
    for state in others:
        ends = {name: state.names.get(name, UNBOUND) for name in start.names}
        wide.names = join_environments(wide.names, ends, combine)
        wide.attributes = {
            name: value for name, value in wide.attributes.items() if state.attributes.get(name) == value
        }
    return wide


def _generalised(first: Value, second: Value) -> Value:
    """The most specific value that covers both."""
    if covers(first, second):
        return first
    tensor = some_tensor((first, second))
    if tensor != UNKNOWN:
        return tensor
    if isinstance(first, Sequence) and isinstance(second, Sequence) and first.kind == second.kind:
        return unknown_many(first.kind, first.node)
    return UNKNOWN
