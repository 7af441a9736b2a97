"""Scopes inside a method: comprehensions, which are walked, and nested functions and lambdas, which are not."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.conditions import Conditions
from ctxlint.model.interpreter.events import Escape, Guard
from ctxlint.model.interpreter.local_names import borrowed_names, rebound_from_inside, target_names
from ctxlint.model.interpreter.sequences import element_of, iterated_item, rest_of, unknown_many
from ctxlint.model.interpreter.state import State, join_environments, widen
from ctxlint.model.interpreter.values import UNKNOWN, Context, Mapping, Opaque, Scalar, Sequence, Slot, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctxlint.model.interpreter.local_names import Definition

_MAX_ELEMENTS = 16
"""Over more elements than this, those of a comprehension are not told apart."""


class NestedScopes(Conditions):
    """Evaluates comprehensions and definitions inside a method."""

    def __init__(self) -> None:
        """Begin with nothing borrowed."""
        super().__init__()
        self.is_generator = False
        self.complete = True
        """Whether everything that the method does can be followed."""
        self.borrowed: set[str] = set()
        """The names that definitions inside the method see. They may change the lists that these names hold."""
        self.rebound: set[str] = set()
        """The names that definitions inside the method bind (``nonlocal``)."""
        self.walrus_names: set[str] = set()
        """The names bound by ``:=`` in the comprehension that is being walked."""

    @abstractmethod
    def use(self, node: cst.BaseExpression) -> Value:
        """The value of an operand; see ``expressions``."""

    @abstractmethod
    def share(self, value: Value) -> None:
        """Others hold a value from now on; see ``calls``."""

    # Definitions

    def lambda_(self, node: cst.Lambda) -> Value:
        """``lambda``."""
        self.captured(node)
        return Scalar("callable", node)

    def captured(self, node: Definition) -> None:
        """A nested definition: it is not walked, but what it borrows is noted, and whether it holds the ctx.

        It may run at any time: what it binds, and the content of the lists that it sees, is unknown from here on.
        """
        names = borrowed_names(node)
        self.names_read.update(names)
        self.borrowed.update(names)
        self.rebound.update(rebound_from_inside(node))
        values = [self.state.names[name] for name in sorted(names & self.state.names.keys())]
        if any(isinstance(value, Context) for value in values):
            self.record(Escape, node, how="captured")
        for value in values:
            self.share(value)
        for name in self.rebound & self.state.names.keys():
            self.state.names[name] = UNKNOWN

    def yield_(self, node: cst.Yield) -> Value:
        """``yield``: what it gives back is the caller's choice."""
        self.is_generator = True
        if isinstance(node.value, cst.From):
            self.use(node.value.item)
        elif node.value is not None:
            self.use(node.value)
        return Opaque(node)

    # Comprehensions

    def comprehension(self, node: cst.ListComp | cst.SetComp | cst.GeneratorExp) -> Value:
        """A list, set or generator, with its elements where they are known one by one."""
        kind = "list" if isinstance(node, cst.ListComp) else "set" if isinstance(node, cst.SetComp) else "generator"
        values = self.comprehend(node.for_in, lambda: self.use(node.elt))
        return unknown_many(kind, node) if values is None else Sequence(kind, tuple(map(Slot, values)), node)

    def dict_comprehension(self, node: cst.DictComp) -> Value:
        """A dict of unknown content."""
        self.comprehend(node.for_in, lambda: (self.evaluate(node.key), self.use(node.value))[1])
        return Mapping((Slot(UNKNOWN, starred=True),), node)

    def comprehend(self, clause: cst.CompFor, element: Callable[[], Value]) -> list[Value] | None:
        """Walk a comprehension; the values of its elements where they are known one by one."""
        iterated = self.evaluate(clause.iter)
        outside, around, self.walrus_names = self.state, self.walrus_names, set()
        self.loops += 1
        values: list[Value] | None = None
        if clause.inner_for_in is None and not clause.ifs and _is_short(iterated):
            self.state = outside.fork()
            values = self.one_by_one(clause, iterated, element)
        else:
            self.state = outside.fork(Guard(id(clause), "loop"))
            self.any_element(clause, iterated, element)
        self.loops -= 1
        self.leave(clause, outside, certain=values is not None)
        self.walrus_names |= around
        return values

    def one_by_one(self, clause: cst.CompFor, iterated: Value, element: Callable[[], Value]) -> list[Value]:
        """The elements of a comprehension over a short tuple or list; only the first leaves events."""
        values: list[Value] = []
        for position, slot in enumerate(iterated.slots if isinstance(iterated, Sequence) else ()):
            self.muted += position > 0
            self.bind(clause.target, slot.value)
            values.append(element())
            self.muted -= position > 0
        return values

    def any_element(self, clause: cst.CompFor, iterated: Value, element: Callable[[], Value]) -> None:
        """One element that stands for all."""
        self.bind(clause.target, iterated_item(iterated, clause.iter))
        for test in clause.ifs:
            self.evaluate(test.test)
            self.state = self.state.fork(*self.guards_of(test.test, True, test))
            self.narrow(test.test, holds=True)
        if clause.inner_for_in is not None:
            self.comprehend(clause.inner_for_in, element)
        else:
            element()

    def leave(self, clause: cst.CompFor, outside: State, certain: bool) -> None:
        """Go back to the method's own names. What ``:=`` bound is among them, and lists may have changed."""
        inside = self.state
        own = set(target_names(clause.target))
        kept = {name: inside.names[name] for name in outside.names if name not in own and name in inside.names}
        changed = {**outside.names, **kept}
        outside.names = changed if certain else join_environments(outside.names, changed, widen)
        outside.names.update((name, Opaque(clause)) for name in sorted(self.walrus_names))
        outside.maybe |= inside.maybe
        if certain:
            outside.done |= inside.done
        self.state = outside

    def bind(self, target: cst.BaseExpression, value: Value) -> None:
        """Bind the target of a comprehension, which is none of the method's own names."""
        if isinstance(target, cst.Name):
            self.state.names[target.value] = value
        elif isinstance(target, (cst.Tuple, cst.List)):
            star = next((at for at, each in enumerate(target.elements) if isinstance(each, cst.StarredElement)), None)
            count = len(target.elements)
            for at, each in enumerate(target.elements):
                starred = isinstance(each, cst.StarredElement)
                part = rest_of(value, at, count, each) if starred else element_of(value, at, count, star, each)
                self.bind(each.value, part)


def _is_short(value: Value) -> bool:
    """Whether it is a tuple or list of which every element is known, and at least one is there."""
    return isinstance(value, Sequence) and value.exact and 0 < len(value.slots) <= _MAX_ELEMENTS
