"""Where paths part and meet: ``if``, ``with``, ``try``, ``match``."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.assignments import Assignments
from ctxlint.model.interpreter.events import Guard
from ctxlint.model.interpreter.local_names import captured_by, times_bound
from ctxlint.model.interpreter.sequences import is_mutable, unknown_content
from ctxlint.model.interpreter.state import State, covers, join_environments, join_states
from ctxlint.model.interpreter.values import UNKNOWN, Context, Opaque, Value, join
from ctxlint.model.syntax import children

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


class Branches(Assignments):
    """Walks statements of which only some part may run."""

    @abstractmethod
    def block(self, body: cst.BaseSuite) -> None:
        """Walk the statements of a block; see ``interpreter``."""

    @abstractmethod
    def skip(self, node: cst.CSTNode | None) -> None:
        """Pass over code that never runs; see ``interpreter``."""

    # if

    def if_(self, node: cst.If) -> None:
        """Both arms, or the one that a test which is decided leads to."""
        self.evaluate(node.test)
        outcome = self.decided(node.test)
        if outcome is not None:
            self.skip(node.orelse if outcome else node.body)
            self.otherwise(node.body if outcome else node.orelse)
            return
        before = self.state
        arms: list[State] = []
        for holds, body in ((True, node.body), (False, node.orelse)):
            self.enter(before, node, node.test, holds)
            self.otherwise(body)
            arms.append(self.state)
        self.state = join_states(before, arms)

    def otherwise(self, body: cst.BaseSuite | cst.If | cst.Else | None) -> None:
        """The body of an ``if``, or what follows it: ``elif``, ``else`` or nothing."""
        if isinstance(body, cst.If):
            self.if_(body)
        elif isinstance(body, cst.Else):
            self.block(body.body)
        elif body is not None:
            self.block(body)

    def enter(self, before: State, node: cst.CSTNode, test: cst.BaseExpression, holds: bool) -> None:
        """Begin the arm of ``node`` on which ``test`` came out as ``holds``."""
        self.state = before
        guards = self.guards_of(test, holds, node)
        self.state = before.fork(*guards)
        self.narrow(test, holds)

    # with

    def with_(self, node: cst.With) -> None:
        """The body; after ``contextlib.suppress`` it may have stopped anywhere."""
        suppresses = False
        for item in node.items:
            value = self.evaluate(item.item)
            called = item.item.func if isinstance(item.item, cst.Call) else item.item
            suppresses |= self.canonical(called) == "contextlib.suppress"
            if item.asname is not None:
                self.assign_target(item.asname.name, value if isinstance(value, Context) else Opaque(item), None)
        before = self.state
        if suppresses:
            self.state = before.fork(Guard(id(node), "try"))
        self.block(node.body)
        if suppresses:
            ended = self.state
            stopped = self.interrupted(before, ended, [node.body]).fork(Guard(id(node.body), "except"))
            self.state = join_states(before, [ended, stopped])

    # try

    def try_(self, node: cst.Try | cst.TryStar) -> None:
        """The body, then each handler as if the body had stopped anywhere, then ``finally``."""
        before = self.state
        handlers: Sequence[cst.ExceptHandler | cst.ExceptStarHandler] = tuple(node.handlers)
        protected = any(self.catches_missing_attributes(handler) for handler in handlers)
        self.state = before.fork(*((Guard(id(node), "try"),) if handlers else ()))
        self.protected += protected
        self.block(node.body)
        self.protected -= protected
        after_body = self.state
        if node.orelse is not None and self.state.live:
            self.block(node.orelse.body)
        ends = [self.state]
        for handler in handlers:
            self.state = self.interrupted(before, after_body, [node.body]).fork(Guard(id(handler), "except"))
            if handler.name is not None and isinstance(handler.name.name, cst.Name):
                self.state.names[handler.name.name.value] = Opaque(handler)
            self.block(handler.body)
            ends.append(self.state)
        self.state = join_states(before, ends)
        # Where no handler comes back, whatever follows the statement follows the body, without a condition.
        self.state.guards = tuple(guard for guard in self.state.guards if guard.block != id(node))
        if node.finalbody is not None:
            self.finally_(before, node, node.finalbody.body)

    def interrupted(self, before: State, after: State, bodies: Iterable[cst.CSTNode]) -> State:
        """The state where ``bodies`` have raised: anything between ``before`` and ``after`` them."""
        revived = after.fork()
        revived.live = True
        state = join_states(before, [before.fork(), revived])
        state.names = join_environments(before.names, after.names, _either_or_between)
        straight = after.live and not after.thinned
        for name, times in sum((times_bound(body) for body in bodies), Counter[str]()).items():
            if not straight or (times > 1 and before.names.get(name) is not after.names.get(name)):
                state.names[name] = UNKNOWN
        state.guards, state.paths, state.done = before.guards, before.paths, before.done
        if not straight:
            self.state = state
            for value in tuple(state.names.values()):
                self.share(value)
        return state

    def catches_missing_attributes(self, handler: cst.ExceptHandler | cst.ExceptStarHandler) -> bool:
        """Whether a handler takes an AttributeError."""
        kinds = [handler.type] if handler.type is not None else []
        if len(kinds) == 1 and isinstance(kinds[0], cst.Tuple):
            kinds = [element.value for element in kinds[0].elements]
        names = {self.canonical(kind) for kind in kinds}
        return not kinds or bool(names & {"builtins.AttributeError", "builtins.Exception", "builtins.BaseException"})

    def finally_(self, before: State, node: cst.Try | cst.TryStar, body: cst.BaseSuite) -> None:
        """A ``finally`` block: it runs on every path out of the statement, also on those that return or raise.

        Its events are recorded for all of these; what it leaves behind counts for those that go on.
        """
        after = self.state
        parts = [node.body, *(handler.body for handler in node.handlers), *([node.orelse] if node.orelse else [])]
        self.state = self.interrupted(before, after, parts)
        self.block(body)
        always = self.state
        if not after.live or not always.live:
            self.state.live = False
            return
        self.muted += 1
        self.state = after
        self.block(body)
        self.muted -= 1
        self.state.done, self.state.maybe = after.done | always.done, after.maybe | always.maybe

    # match

    def match(self, node: cst.Match) -> None:
        """Each ``case``, and the path on which none fits."""
        self.evaluate(node.subject)
        before = self.state
        arms: list[State] = []
        irrefutable = False
        for number, case in enumerate(node.cases):
            self.state = before.fork(Guard(id(node), f"case {number}"))
            for name in _captures(case.pattern):
                self.state.names[name] = Opaque(case)
            if case.guard is not None:
                self.evaluate(case.guard)
                self.enter(self.state, case, case.guard, holds=True)
            self.block(case.body)
            arms.append(self.state)
            wildcard = isinstance(case.pattern, cst.MatchAs) and case.pattern.pattern is None
            irrefutable = irrefutable or (wildcard and case.guard is None)
        if not irrefutable:
            arms.append(before.fork(Guard(id(node), "no case")))
        self.state = join_states(before, arms)


def _either_or_between(before: Value, after: Value) -> Value:
    """What a name may hold while a block runs that changes it from one to the other."""
    if is_mutable(before) or is_mutable(after):
        return unknown_content(before) if covers(unknown_content(before), after) else UNKNOWN
    return join(before, after)


def _captures(pattern: cst.CSTNode) -> Iterator[str]:
    """Every name that a pattern binds."""
    yield from captured_by(pattern)
    for child in children(pattern):
        yield from _captures(child)
