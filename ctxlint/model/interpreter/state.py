"""The abstract state at one point of a path; forks, joins and widening."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING

from ctxlint.effort import spend
from ctxlint.model.interpreter.events import Guard, Orders
from ctxlint.model.interpreter.sequences import is_mutable, mutable_parts, substitute, unknown_content
from ctxlint.model.interpreter.values import (
    UNBOUND,
    UNKNOWN,
    Choice,
    Kind,
    Mapping,
    ProjectObject,
    Sequence,
    Slot,
    SomeTensor,
    Tri,
    Value,
    is_tensor,
    join,
    join_all,
    kind_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


@dataclass
class State:
    """The abstract state on one path: what each name is bound to, the tests passed, the events that happened.

    ``attributes`` are the ctx attributes that this method itself certainly wrote. A state that is not ``live`` has left
    the method (or the loop) already. ``paths`` are the ways that lead here, each with all its tests; ways that meet
    again before any of them has left count as one. ``thinned``: some way since the last fork has left.

    Invariants: ``done`` is a subset of ``maybe``; both only grow along a path, and a join intersects ``done`` and
    unites ``maybe``. The value of a name or attribute covers all values that it may have on the path (see ``covers``).
    A fork shares no dict with the state that it was created from, so that arms can be walked in any order.
    """

    names: dict[str, Value] = field(default_factory=dict)
    attributes: dict[str, Value] = field(default_factory=dict)
    guards: tuple[Guard, ...] = ()
    done: Orders = 0
    maybe: Orders = 0
    live: bool = True
    paths: tuple[tuple[Guard, ...], ...] = ((),)
    thinned: bool = False
    absent: frozenset[Value] = frozenset()
    """The parameters that are certainly None: those of which a test or a call has let nothing else pass."""
    changes: int = 0
    """How often a list, set or dict was modified in this state."""

    def fork(self, *guards: Guard) -> State:
        """A copy to walk another arm with."""
        spend(2 + (len(self.names) + len(self.attributes) + len(self.guards) >> 4))
        return State(
            dict(self.names),
            dict(self.attributes),
            (*self.guards, *guards),
            self.done,
            self.maybe,
            self.live,
            _longer(self.paths, *guards) if guards else self.paths,
            absent=self.absent,
        )

    def copy(self) -> State:
        """The same state, to continue from later."""
        return replace(self, names=dict(self.names), attributes=dict(self.attributes))

    def doubt(self, guard: Guard) -> None:
        """What follows happens only if ``guard`` allows it: after a call that may not return, or a loop that may."""
        self.paths = _longer(self.paths, guard)

    def change(self, holder: Value, after: Callable[[Value], Value]) -> None:
        """A list, set or dict, or one of several, is modified: every alias sees it as it is ``after``."""
        replacements: dict[int, Value] = {}
        for option in holder.options():
            if is_mutable(option):
                replacements[id(option)] = after(option)
        if isinstance(holder, Choice):
            whole = join_all(replacements.get(id(option), option) for option in holder.alternatives)
            for option in holder.alternatives:  # a name bound to this very one may or may not see the change
                if id(option) in replacements:
                    replacements[id(option)] = join(option, replacements[id(option)])
            replacements[id(holder)] = whole
        if not replacements:
            return
        self.changes += 1
        for holders in (self.names, self.attributes):
            for name, value in holders.items():
                holders[name] = substitute(value, replacements)

    def escape(self, value: Value) -> None:
        """A value escapes: forget what is known of its mutable contents."""
        if isinstance(value, (Choice, Sequence, Mapping, ProjectObject)):
            for part in mutable_parts(value):
                self.change(part, unknown_content)


def _longer(paths: tuple[tuple[Guard, ...], ...], *guards: Guard) -> tuple[tuple[Guard, ...], ...]:
    spend(sum(map(len, paths)) >> 4)
    return tuple((*path, *guards) for path in paths)


_MAX_PATHS = 32
"""Paths that are kept apart; beyond, they count as one path about which nothing is known."""


def join_states(before: State, arms: list[State]) -> State:
    """The join of the arms' states. If only one is live, its guards stay: the rest of the method is under them."""
    alive = [arm for arm in arms if arm.live]
    maybe = reduce(or_, (arm.maybe for arm in alive), before.maybe)
    if not alive:
        dead = before.fork()
        dead.live = False
        dead.maybe = maybe
        return dead
    thinned = len(alive) < len(arms) or any(arm.thinned for arm in alive)
    if len(alive) == 1:
        alive[0].maybe = maybe
        alive[0].thinned = before.thinned or thinned
        return alive[0]
    first = alive[0]
    names = first.names
    for other in alive[1:]:
        names = join_environments(names, other.names, join)
    attributes = {
        name: value
        for name, value in first.attributes.items()
        if all(other.attributes.get(name) == value for other in alive[1:])
    }
    done = reduce(and_, (arm.done for arm in alive))
    absent = reduce(and_, (arm.absent for arm in alive))
    paths = before.paths
    if thinned:
        paths = tuple(path for arm in alive for path in arm.paths)[: _MAX_PATHS + 1]
        if len(paths) > _MAX_PATHS:
            paths = ((Guard(0, "unknown"),),)
    thinned = before.thinned or thinned
    return State(names, attributes, before.guards, done, maybe, paths=paths, thinned=thinned, absent=absent)


def join_environments(
    first: dict[str, Value], second: dict[str, Value], combine: Callable[[Value, Value], Value]
) -> dict[str, Value]:
    """The join of the names of two paths. Names that alias one list on both paths alias it afterwards, too."""
    spend(len(first) >> 3)
    done: dict[tuple[int, int], Value] = {}
    names = dict(first)
    differing = [name for name, value in first.items() if second.get(name) is not value]
    differing += [name for name in second if name not in first]
    for name in differing:
        mine, its = first.get(name, UNBOUND), second.get(name, UNBOUND)
        if mine is its:
            continue
        pair = (id(mine), id(its))
        if pair not in done:
            done[pair] = combine(mine, its)
        names[name] = done[pair]
    return names


def widen(before: Value, after: Value) -> Value:
    """The value of a name that a loop body changes from ``before`` to ``after``, after any number of iterations.

    A tuple or list that grows at its end keeps its elements; one that changes its length otherwise is of unknown
    length.
    """
    if before == after:
        return before
    if not isinstance(before, Sequence) or not isinstance(after, Sequence) or before.kind != after.kind:
        return join(before, after)
    if before.exact and after.exact and len(before.slots) == len(after.slots):
        slots = tuple(
            mine if mine == its else Slot(join(mine.value, its.value)) for mine, its in zip(before.slots, after.slots)
        )
        return Sequence(before.kind, slots, before.node)
    fixed = before.slots if before.exact else before.slots[:-1]
    grows = all(not slot.starred for slot in fixed) and after.slots[: len(fixed)] == fixed
    if not grows:
        return Sequence(before.kind, (Slot(UNKNOWN, starred=True),), before.node)
    more = some_tensor(slot.value for slot in after.slots[len(fixed) :])
    return Sequence(before.kind, (*fixed, Slot(more, starred=True)), before.node)


def some_tensor(values: Iterable[Value]) -> Value:
    """A value that covers all of these if they are tensors."""
    each = tuple(values)
    if any(is_tensor(value) is not Tri.YES for value in each):
        return UNKNOWN
    kinds = {kind_of(value) for value in each}
    return SomeTensor(kinds.pop() if len(kinds) == 1 else Kind.UNKNOWN)


def covers(general: Value, special: Value) -> bool:
    """Whether whatever holds for ``general`` also holds for ``special``."""
    if general in (special, UNKNOWN):
        return True
    if isinstance(special, Choice):
        return all(covers(general, option) for option in special.alternatives)
    if isinstance(general, Choice):
        return any(covers(option, special) for option in general.alternatives)
    if isinstance(general, SomeTensor):
        return is_tensor(special) is Tri.YES and general.kind in (Kind.UNKNOWN, kind_of(special))
    if not isinstance(general, Sequence) or not isinstance(special, Sequence) or general.kind != special.kind:
        return False
    if general.exact:
        fixed = general.slots
        if not special.exact or len(special.slots) != len(fixed):
            return False
    else:
        fixed, more = general.slots[:-1], special.slots[len(general.slots) - 1 :]
        last = general.slots[-1].value
        alike = isinstance(last, SomeTensor) and all(covers(last, slot.value) for slot in more)
        if not (alike or last == UNKNOWN) or len(special.slots) < len(fixed):
            return False
    return all(
        not mine.starred and not its.starred and covers(mine.value, its.value)
        for mine, its in zip(fixed, special.slots)
    )


@dataclass
class Turn:
    """The states in which one iteration of a loop ends."""

    end: State
    breaks: list[State] = field(default_factory=list)
    continues: list[State] = field(default_factory=list)

    def goes_on(self) -> list[State]:
        """The states from which the next iteration begins, or the loop ends."""
        return [state for state in (self.end, *self.continues) if state.live]

    def forget_special_cases(self, start: State) -> None:
        """Replace what a turn that begins at ``start`` leaves by the values of ``start``, which cover it."""
        for state in self.goes_on():
            state.names.update(start.names)
        for state in self.breaks:
            for name, value in start.names.items():
                if isinstance(value, Sequence) and not value.exact and covers(value, state.names.get(name, UNBOUND)):
                    state.names[name] = value
