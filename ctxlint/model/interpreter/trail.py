"""A walk that is kept statement by statement, so that the next one begins at the first statement that has changed.

An editor analyses a method again for every key. What the statements before the key do, they did in the last walk.
"""

from __future__ import annotations

from collections import Counter
from copy import copy
from enum import Enum
from operator import is_
from typing import TYPE_CHECKING, Any

import libcst as cst

from ctxlint.effort import spend, steps
from ctxlint.model.index.project import Definition
from ctxlint.model.interpreter.local_names import times_bound
from ctxlint.model.syntax import parents_below
from ctxlint.named_tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ctxlint.model.index.module_unit import Unit
    from ctxlint.model.interpreter.events import Event
    from ctxlint.model.interpreter.state import State
    from ctxlint.model.interpreter.walk import Walk


class _Point(NamedTuple):
    """A walk before one of the statements, and the steps that it took until there."""

    state: State
    events: tuple[Event, ...]
    read: frozenset[str]
    borrowed: frozenset[str]
    rebound: frozenset[str]
    walrus_names: frozenset[str]
    asks_about_all: bool
    is_generator: bool
    complete: bool
    taken: int

    def restore(self, walk: Walk) -> None:
        """Continue from here."""
        spend(self.taken)
        walk.state = self.state.copy()
        walk.recorder.continue_after(self.events)
        walk.names.read = set(self.read)
        walk.names.borrowed, walk.names.rebound = set(self.borrowed), set(self.rebound)
        walk.walrus_names = set(self.walrus_names)
        walk.is_generator, walk.complete = self.is_generator, self.complete

    def moved_to(self, unit: Unit, unmoved: _Unmoved) -> _Point:
        """The same point, where values mean the functions and classes of a later version of the file.

        Raises:
            KeyError: It lacks one of them.
        """

        def there(old: Definition) -> Definition:
            if old.unit.path != unit.path:
                return old
            if old.qualname not in unit.index.functions and old.qualname not in unit.index.classes:
                raise KeyError(old.qualname)
            return Definition(unit, old.qualname)

        move = Move(there, unmoved).move
        state = self.state.copy()
        state.names = {name: move(value) for name, value in state.names.items()}
        state.attributes = {name: move(value) for name, value in state.attributes.items()}
        return self._replace(state=state, events=move(self.events))


_Unmoved = dict[int, object]
"""Values and events that refer to no definition of the file, by their identity."""


class Move:
    """Replaces the definitions that values and events refer to."""

    def __init__(self, definition: Callable[[Definition], Definition], unmoved: _Unmoved) -> None:
        """``definition`` is what replaces one; itself if nothing does."""
        self._definition = definition
        self._unmoved = unmoved
        self._moved: dict[int, tuple[object, Any]] = {}
        """What was moved so far, by identity: aliases stay aliases."""

    def move(self, old: Any) -> Any:
        """The same with other definitions; the object itself if it refers to none that is replaced."""
        kind = type(old)
        if kind in _PLAIN or isinstance(old, (cst.CSTNode, Enum)):
            return old
        if id(old) in self._unmoved:
            return old
        if id(old) not in self._moved:
            new = self._move(old, kind)
            if new is old:
                self._unmoved[id(old)] = old
            self._moved[id(old)] = (old, new)
        return self._moved[id(old)][1]

    def _move(self, old: Any, kind: type) -> Any:
        if kind is Definition:
            return self._definition(old)
        if kind is tuple or kind is frozenset:
            unmoved = self._unmoved
            parts = [each if id(each) in unmoved else self.move(each) for each in old]
            return old if all(map(is_, parts, old)) else kind(parts)
        own = getattr(old, "__dict__", {})
        fields = {name: value if type(value) in _PLAIN else self.move(value) for name, value in own.items()}
        if all(map(is_, fields.values(), own.values())):
            return old
        new = copy(old)
        vars(new).update(fields)
        return new


_MOST_UNMOVED = 20_000
_PLAIN = frozenset({str, int, bool, float, bytes, complex, type(None)})


class Trail:
    """One walk over a method: the state before each statement of its body."""

    def __init__(self, unit: Unit, earlier: Trail | None = None) -> None:
        """``earlier`` is a walk over the method in another version of the file, with the same bindings and code around.

        ``unit`` is the present version.
        """
        self._unit: Unit | None = unit
        self._earlier = earlier
        self._statements: tuple[cst.CSTNode, ...] = ()
        self._points: list[_Point] = []
        self._unmoved: _Unmoved = {}
        self._bound: dict[cst.CSTNode, Counter[str]] = {}
        self._names: dict[cst.CSTNode, frozenset[str]] = {}
        self._ctx_is_free = False

    @property
    def events(self) -> tuple[Event, ...]:
        """Those before the last statement."""
        return self._points[-1].events if self._points else ()

    def begins_like(self, function: cst.FunctionDef) -> bool:
        """Whether the first statement is that of a method."""
        return self._statements[:1] == tuple(function.body.body[:1])

    def walk(self, walk: Walk, body: cst.IndentedBlock) -> None:
        """Walk a body, from the first statement on that may be different."""
        unit, self._unit = self._unit, None  # it is large
        self._statements, self._ctx_is_free = tuple(body.body), walk.names.star_may_bind_ctx
        earlier, begun = self._earlier, steps.left
        self._earlier = None
        start = self._continue(earlier, walk, unit) if earlier is not None and unit is not None else 0
        for statement in self._statements[start:]:
            self._points.append(_point(walk, begun - steps.left))
            walk.execute_statement(statement, body)
        known = frozenset(self._statements)
        self._bound = {each: found for each, found in self._bound.items() if each in known}
        self._names = {each: found for each, found in self._names.items() if each in known}

    def _continue(self, earlier: Trail, walk: Walk, unit: Unit) -> int:
        """Restore the walk before the first statement that may be different; returns the number of that one."""
        self._bound, self._names = earlier._bound, earlier._names
        start = _without_charge(lambda: self._first_changed(earlier))
        if start > 0:
            try:
                self._unmoved = earlier._unmoved if len(earlier._unmoved) < _MOST_UNMOVED else {}
                point = earlier._points[start].moved_to(unit, self._unmoved)
            except KeyError:
                return 0
            self._points = earlier._points[:start]
            point.restore(walk)
        return start

    def _first_changed(self, earlier: Trail) -> int:
        """The number of the statement at which a walk that continues an ``earlier`` one has to begin."""
        before, now = earlier._statements, self._statements
        most = min(len(now), len(earlier._points) - 1)
        start = next((at for at in range(most) if now[at] is not before[at]), most)
        if start <= 0 or earlier._ctx_is_free != self._ctx_is_free:
            return 0
        changed = self._differently_bound(before[start:], now[start:])
        if changed:
            names = enumerate(map(self._names_in, now[:start]))
            start = next((at for at, each in names if not changed.isdisjoint(each)), start)
        points = earlier._points
        return next((at for at in range(start, 0, -1) if not points[at].asks_about_all), 0)

    def _differently_bound(self, before: Iterable[cst.CSTNode], now: Iterable[cst.CSTNode]) -> frozenset[str]:
        """The names that some statements bind in another number of places than others do."""
        counts = [sum((self._bound_by(each) for each in statements), Counter[str]()) for statements in (before, now)]
        names = counts[0].keys() | counts[1].keys()
        return frozenset(name for name in names if counts[0][name] != counts[1][name])

    def _bound_by(self, statement: cst.CSTNode) -> Counter[str]:
        if statement not in self._bound:
            found = times_bound(cst.Module([statement]))  # type: ignore[list-item]
            self._bound[statement] = Counter({name: times or _DECLARED for name, times in found.items()})
        return self._bound[statement]

    def _names_in(self, statement: cst.CSTNode) -> frozenset[str]:
        if statement not in self._names:
            nodes = parents_below(statement)
            self._names[statement] = frozenset(each.value for each in nodes if isinstance(each, cst.Name))
        return self._names[statement]


_DECLARED = 1 << 20
"""The count of a name that a statement declares ``global`` or ``nonlocal``."""


def _without_charge(work: Callable[[], int]) -> int:
    """The result of ``work``, whose steps are not counted: a walk from the start does not take them."""
    left, steps.left = steps.left, 1 << 62
    try:
        return work()
    finally:
        steps.left = left


def _point(walk: Walk, taken: int) -> _Point:
    names = walk.names
    return _Point(
        walk.state.copy(),
        tuple(walk.recorder.events),
        frozenset(names.read),
        frozenset(names.borrowed),
        frozenset(names.rebound),
        frozenset(walk.walrus_names),
        names.asks_about_all,
        walk.is_generator,
        walk.complete,
        taken,
    )
