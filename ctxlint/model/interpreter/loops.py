"""``for`` and ``while``: what holds however often the body runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.branches import Branches
from ctxlint.model.interpreter.events import Guard, Return
from ctxlint.model.interpreter.local_names import target_names, times_bound
from ctxlint.model.interpreter.sequences import iterated_item, unknown_many
from ctxlint.model.interpreter.state import State, covers, join_environments, join_states, widen
from ctxlint.model.interpreter.values import UNBOUND, UNKNOWN, Sequence, SomeTensor, Tri, Value, is_tensor

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_DEPTH = 3
"""Loops inside more loops than this are not tried out; what they bind is unknown."""

_MAX_TURNS = 8


@dataclass
class Turn:
    """The states in which one turn of a loop ends."""

    end: State
    breaks: list[State] = field(default_factory=list)
    continues: list[State] = field(default_factory=list)

    def goes_on(self) -> list[State]:
        """The states from which the next turn begins, or the loop is exhausted."""
        return [state for state in (self.end, *self.continues) if state.live]

    def forget_special_cases(self, start: State) -> None:
        """Let what ``start`` says stand for what a turn that begins there leaves."""
        for state in self.goes_on():
            state.names.update(start.names)
        for state in self.breaks:
            for name, value in start.names.items():
                if isinstance(value, Sequence) and not value.exact and covers(value, state.names.get(name, UNBOUND)):
                    state.names[name] = value


class Loops(Branches):
    """Walks loops.

    A first, silent turn shows what the body changes. Then the body is walked from a state in which those names hold
    whatever any turn may leave in them; where that turns out to be too narrow, once more from a wider one.
    """

    turns: list[Turn]
    """The turns of the loops around, the innermost last."""

    def for_(self, node: cst.For) -> None:
        """A ``for`` loop."""
        item = iterated_item(self.evaluate(node.iter), node.iter)
        self.loop(node, lambda: self.assign_target(node.target, item, None), endless=False)

    def while_(self, node: cst.While) -> None:
        """A ``while`` loop."""
        endless = isinstance(node.test, (cst.Name, cst.Integer)) and self.decided(node.test) is True
        self.loop(node, lambda: self.while_test(node), endless=endless)

    def while_test(self, node: cst.While) -> None:
        """The test before each turn."""
        self.evaluate(node.test)
        self.narrow(node.test, holds=True)

    def leave_loop(self, node: cst.Break | cst.Continue) -> None:
        """``break`` and ``continue``."""
        if self.turns:
            turn = self.turns[-1]
            (turn.breaks if isinstance(node, cst.Break) else turn.continues).append(self.state.fork())
        self.state.live = False

    def loop(self, node: cst.For | cst.While, begin: Callable[[], None], endless: bool) -> None:
        """A loop that does ``begin`` before each turn, with its ``else``."""
        before = self.state
        recorded = tuple(self.events)
        self.loops += 1
        start = self.first_guess(node, before, begin)
        turn = self.turn(node, start, begin)
        for attempt in range(_MAX_TURNS):
            if settled(start, turn):
                break
            self.rewind(recorded)
            start = widened(start, turn, generalised) if attempt + 1 < _MAX_TURNS else self.anything(node, before)
            turn = self.turn(node, start, begin)
        self.loops -= 1
        turn.forget_special_cases(start)
        self.state = join_states(start, [] if endless else [start.fork(), turn.end, *turn.continues])
        self.state.guards = before.guards
        if node.orelse is not None and self.state.live:
            if turn.breaks:
                self.state = self.state.fork(Guard(id(node), "not broken"))
            self.block(node.orelse.body)
        self.state = join_states(start, [self.state, *turn.breaks])
        self.state.guards, self.state.paths = before.guards, before.paths
        if any(isinstance(event, Return) for event in self.events[len(recorded) :]):
            self.state.doubt(Guard(id(node), "exhausted"))

    def first_guess(self, node: cst.For | cst.While, before: State, begin: Callable[[], None]) -> State:
        """The state before any turn, as one silent turn lets expect it."""
        if self.loops > _MAX_DEPTH:
            return self.anything(node, before)
        self.muted += 1
        turn = self.turn(node, before, begin)
        self.muted -= 1
        return widened(before, turn, widen)

    def turn(self, node: cst.For | cst.While, start: State, begin: Callable[[], None]) -> Turn:
        """Walk the body once."""
        turn = Turn(start)
        self.turns.append(turn)
        self.state = start.fork(Guard(id(node), "loop"))
        begin()
        self.block(node.body)
        turn.end = self.state
        self.turns.pop()
        return turn

    def anything(self, node: cst.For | cst.While, before: State) -> State:
        """``before`` with everything unknown that the loop may change."""
        self.state = before.fork()
        changed = set(times_bound(node.body))
        if isinstance(node, cst.For):
            changed.update(target_names(node.target))
        for name in changed & self.state.names.keys():
            self.state.names[name] = UNKNOWN
        for value in tuple(self.state.names.values()):
            self.share(value)
        self.state.attributes = {}
        return self.state


def settled(start: State, turn: Turn) -> bool:
    """Whether a turn that begins at ``start`` ends in states that are special cases of it."""
    if any(start.attributes.items() - state.attributes.items() for state in turn.goes_on()):
        return False
    return all(
        covers(value, state.names.get(name, UNBOUND)) for state in turn.goes_on() for name, value in start.names.items()
    )


def widened(start: State, turn: Turn, combine: Callable[[Value, Value], Value]) -> State:
    """``start`` as it is where any number of turns may have come before, without names that only the body binds."""
    wide = start.fork()
    for state in turn.goes_on():
        ends = {name: state.names.get(name, UNBOUND) for name in start.names}
        wide.names = join_environments(wide.names, ends, combine)
        wide.attributes = {
            name: value for name, value in wide.attributes.items() if state.attributes.get(name) == value
        }
    return wide


def generalised(first: Value, second: Value) -> Value:
    """As little as has to be said for both to be special cases."""
    if covers(first, second):
        return first
    if is_tensor(first) is Tri.YES and is_tensor(second) is Tri.YES:
        return SomeTensor()
    if isinstance(first, Sequence) and isinstance(second, Sequence) and first.kind == second.kind:
        return unknown_many(first.kind, first.node)
    return UNKNOWN
