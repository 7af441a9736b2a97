"""Where paths fork and join: ``if``, ``with``, ``try``, ``match``."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.index.expected_errors import EXPECT_ERRORS
from ctxlint.model.interpreter.assignments import assign_target
from ctxlint.model.interpreter.calls import call_method
from ctxlint.model.interpreter.conditions import (
    asks_unknown_type,
    by_type,
    decided,
    enter_arm,
    tensor_asked_for,
)
from ctxlint.model.interpreter.events import Guard
from ctxlint.model.interpreter.local_names import captured_by, times_bound
from ctxlint.model.interpreter.names import canonical
from ctxlint.model.interpreter.sequences import is_mutable, unknown_content
from ctxlint.model.interpreter.state import State, covers, join_environments, join_states
from ctxlint.model.interpreter.values import (
    UNBOUND,
    UNKNOWN,
    Argument,
    Context,
    Opaque,
    ProjectObject,
    Sequence,
    Slot,
    Tri,
    Value,
    is_container,
    join,
)
from ctxlint.model.interpreter.wanted_layouts import note_wanted
from ctxlint.model.syntax import children, last_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from collections.abc import Sequence as SequenceOf

    from ctxlint.model.interpreter.walk import Walk


# if


def execute_if(walk: Walk, node: cst.If) -> None:
    """Both arms, or only one if the test is decided."""
    walk.evaluate(node.test)
    first = node.body.body[0]
    if isinstance(first, cst.SimpleStatementLine) and isinstance(first.body[0], cst.Raise):
        note_wanted(walk, node.test, _raised_by(first.body[0]), holds=False)
    outcome = decided(walk, node.test)
    if outcome is not None:
        walk.skip(node.orelse if outcome else node.body)
        _execute_arm(walk, node.body if outcome else node.orelse)
        return
    before, asks_type = walk.state, asks_unknown_type(walk, node.test)
    tensor = tensor_asked_for(walk, node.test) if asks_type else None
    arms: list[State] = []
    for holds, body in ((True, node.body), (False, node.orelse)):
        enter_arm(walk, before, node, node.test, holds)
        _execute_arm(walk, body)
        arms.append(walk.state)
    walk.state = join_states(before, arms)
    if asks_type and all(arm.live for arm in arms):
        if tensor is not None:
            _keep_containers(walk, tensor, *arms)
        _forget_containers(walk, before)


def _raised_by(statement: cst.Raise) -> str:
    """The name of the exception that a statement raises."""
    error = statement.exc
    return last_name(error.func if isinstance(error, cst.Call) else error) if error is not None else "an error"


def _keep_containers(walk: Walk, tensor: Argument, held: State, other: State) -> None:
    """After ``if isinstance(x, torch.Tensor): x = [x]``, where x is a tensor: the list, and not x itself.

    The test stays undecided, because a gradient may be undefined: then there is nothing in what follows to write to.
    """
    for name, value in held.names.items():
        if is_container(value) is Tri.YES and other.names.get(name) == tensor:
            walk.state.names[name] = value


def _forget_containers(walk: Walk, before: State) -> None:
    """After an ``if`` about an unknown type: the names that its arms have bound to containers or other values."""
    for name in tuple(walk.state.names):
        options = walk.state.names[name].options()
        if len(options) > 1 and not set(options) <= set(before.names.get(name, UNBOUND).options()):
            walk.state.names[name] = by_type(walk, walk.state.names[name])


def _execute_arm(walk: Walk, body: cst.BaseSuite | cst.If | cst.Else | None) -> None:
    """The body of an ``if``, or what follows it: ``elif``, ``else`` or nothing."""
    if isinstance(body, cst.If):
        execute_if(walk, body)
    elif isinstance(body, cst.Else):
        walk.execute(body.body)
    elif body is not None:
        walk.execute(body)


# with


def execute_with(walk: Walk, node: cst.With) -> None:
    """The body; under ``contextlib.suppress`` or ``pytest.raises`` it may have stopped anywhere."""
    suppresses = False
    entered: list[tuple[cst.BaseExpression, ProjectObject]] = []
    for item in node.items:
        value = walk.evaluate(item.item)
        given: Value = value if isinstance(value, Context) else Opaque(item)
        if isinstance(value, ProjectObject):
            entered.append((item.item, value))
            given = call_method(walk, item.item, value, "__enter__") or given
        elif isinstance(value, Sequence) and value.kind == "generator" and value.exact and len(value.slots) == 1:
            given = value.slots[0].value  # what a generator function yields that is made a context manager
        called = item.item.func if isinstance(item.item, cst.Call) else item.item
        suppresses |= last_name(called) in EXPECT_ERRORS or canonical(walk, called) == "contextlib.suppress"
        if item.asname is not None:
            assign_target(walk, item.asname.name, given, None)
    before = walk.state
    if suppresses:
        walk.state = before.fork(Guard(id(node), "try"))
    walk.execute(node.body)
    for expression, manager in reversed(entered):
        if walk.state.live:
            call_method(walk, expression, manager, "__exit__", *(Slot(Opaque(node)) for _ in range(3)))
    if suppresses:
        ended = walk.state
        stopped = _interrupted(before, ended, [node.body]).fork(Guard(id(node.body), "except"))
        walk.state = join_states(before, [ended, stopped])


# try


def execute_try(walk: Walk, node: cst.Try | cst.TryStar) -> None:
    """The body, then each handler as if the body had stopped anywhere, then ``finally``."""
    before = walk.state
    handlers: SequenceOf[cst.ExceptHandler | cst.ExceptStarHandler] = tuple(node.handlers)
    protected = any(_catches_missing_attributes(walk, handler) for handler in handlers)
    walk.state = before.fork(*((Guard(id(node), "try"),) if handlers else ()))
    walk.protected += protected
    walk.execute(node.body)
    walk.protected -= protected
    after_body = walk.state
    if node.orelse is not None and walk.state.live:
        walk.execute(node.orelse.body)
    ends = [walk.state]
    for handler in handlers:
        walk.state = _interrupted(before, after_body, [node.body]).fork(Guard(id(handler), "except"))
        if handler.name is not None and isinstance(handler.name.name, cst.Name):
            walk.state.names[handler.name.name.value] = Opaque(handler)
        walk.execute(handler.body)
        ends.append(walk.state)
    walk.state = join_states(before, ends)
    # If no handler continues after the statement, whatever follows it follows the body, without a condition.
    walk.state.guards = tuple(guard for guard in walk.state.guards if guard.block != id(node))
    if node.finalbody is not None:
        _execute_finally(walk, before, node, node.finalbody.body)


def _interrupted(before: State, after: State, bodies: Iterable[cst.CSTNode]) -> State:
    """The state after ``bodies`` have raised: anything between ``before`` and ``after`` them."""
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
        for value in tuple(state.names.values()):
            state.escape(value)
    return state


def _catches_missing_attributes(walk: Walk, handler: cst.ExceptHandler | cst.ExceptStarHandler) -> bool:
    """Whether a handler catches AttributeError."""
    kinds = [handler.type] if handler.type is not None else []
    if len(kinds) == 1 and isinstance(kinds[0], cst.Tuple):
        kinds = [element.value for element in kinds[0].elements]
    names = {canonical(walk, kind) for kind in kinds}
    return not kinds or bool(names & {"builtins.AttributeError", "builtins.Exception", "builtins.BaseException"})


def _execute_finally(walk: Walk, before: State, node: cst.Try | cst.TryStar, body: cst.BaseSuite) -> None:
    """A ``finally`` block: it runs on every path out of the statement, also on those that return or raise.

    Its events are recorded for all of these; its effect on the state counts for those that continue.
    """
    after = walk.state
    parts = [node.body, *(handler.body for handler in node.handlers), *([node.orelse] if node.orelse else [])]
    walk.state = _interrupted(before, after, parts)
    walk.execute(body)
    always = walk.state
    if not after.live or not always.live:
        walk.state.live = False
        return
    walk.recorder.muted += 1
    walk.state = after
    walk.execute(body)
    walk.recorder.muted -= 1
    walk.state.done, walk.state.maybe = after.done | always.done, after.maybe | always.maybe


# match


def execute_match(walk: Walk, node: cst.Match) -> None:
    """Each ``case``, and the path on which none matches."""
    walk.evaluate(node.subject)
    before = walk.state
    arms: list[State] = []
    irrefutable = any(_always_matches(case) for case in node.cases)
    count = len(node.cases) + (not irrefutable)
    for number, case in enumerate(node.cases):
        walk.state = before.fork(Guard(id(node), f"case {number} of {count}"))
        for name in _captures(case.pattern):
            walk.state.names[name] = Opaque(case)
        if case.guard is not None:
            walk.evaluate(case.guard)
            enter_arm(walk, walk.state, case, case.guard, holds=True)
        walk.execute(case.body)
        arms.append(walk.state)
    if not irrefutable:
        arms.append(before.fork(Guard(id(node), "no case")))
    walk.state = join_states(before, arms)


def _always_matches(case: cst.MatchCase) -> bool:
    """``case _:``, ``case name:``."""
    return isinstance(case.pattern, cst.MatchAs) and case.pattern.pattern is None and case.guard is None


def _either_or_between(before: Value, after: Value) -> Value:
    """What a name may hold while a block runs that changes it from ``before`` to ``after``."""
    if is_mutable(before) or is_mutable(after):
        return unknown_content(before) if covers(unknown_content(before), after) else UNKNOWN
    return join(before, after)


def _captures(pattern: cst.CSTNode) -> Iterator[str]:
    """Every name that a pattern binds."""
    yield from captured_by(pattern)
    for child in children(pattern):
        yield from _captures(child)
