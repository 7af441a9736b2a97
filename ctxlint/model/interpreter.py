"""One walk over a method's body: statement by statement, with an environment that joins where branches meet.

The walk follows every path once. At a branch the state is copied and joined afterwards; a loop body is walked twice, first
silently to see what it changes, then with those names widened. Nested functions are not walked.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Callable

import libcst as cst

from ctxlint.model import tables
from ctxlint.model.assignments import Assignments
from ctxlint.model.code import dotted
from ctxlint.model.events import (
    ContextWrite,
    Escape,
    Guard,
    Return,
)
from ctxlint.model.local_names import assigned_in, bound_names
from ctxlint.model.method import MethodFacts
from ctxlint.model.sequences import iterated_item
from ctxlint.model.state import State, merge, widen
from ctxlint.model.values import (
    NEVER,
    NONE,
    UNBOUND,
    UNKNOWN,
    Context,
    Imported,
    Opaque,
    Scalar,
    Tri,
    Value,
)

if TYPE_CHECKING:
    from ctxlint.model.calls import Followed
    from ctxlint.model.scopes import Scope


def interpret(
    function: cst.FunctionDef, bindings: dict[str, Value], scope: Scope, follow: Followed | None = None
) -> MethodFacts:
    """Walk a method or function whose parameters hold ``bindings``; free names are looked up in ``scope``.

    ``follow`` gives what a function of the same file returns. Raises RecursionError on absurdly deep expressions.
    """
    walk = Interpreter(scope, bound_names(function))
    walk.follow = follow
    walk.state = State(dict(bindings))
    walk.block(function.body)
    end = walk.state
    falls = Tri.NO if not end.live else Tri.YES
    return MethodFacts(
        events=tuple(walk.events),
        falls_through=falls,
        fall_guards=end.guards if end.live else (),
        fall_paths=end.paths if end.live else (),
        names_read=frozenset(walk.names_read),
        is_generator=walk.is_generator,
        is_async=function.asynchronous is not None,
        complete=walk.complete,
        end_done=end.done,
    )


class _Loop:
    """The states in which a loop is left or begun again."""

    def __init__(self) -> None:
        self.breaks: list[State] = []
        self.continues: list[State] = []


class Interpreter(Assignments):
    """Walks statements."""

    def __init__(self, scope: Scope, method_names: frozenset[str]) -> None:
        super().__init__(scope, method_names)
        self.is_generator = False
        self.complete = True
        self.loop_stack: list[_Loop] = []

    # Blocks

    def block(self, body: cst.BaseSuite) -> None:
        for statement in body.body:
            if not self.state.live:
                return
            if isinstance(statement, cst.SimpleStatementLine):
                for small in statement.body:
                    if self.state.live:
                        self.small(small, statement)
            elif isinstance(statement, cst.BaseSmallStatement):
                self.small(statement, body)
            else:
                self.compound(statement)

    def small(self, node: cst.BaseSmallStatement, line: cst.CSTNode) -> None:
        self.statement = line
        handler = _SMALL.get(type(node))
        if handler is not None:
            handler(self, node)
        else:
            self.walk_children(node)

    def compound(self, node: cst.CSTNode) -> None:
        self.statement = node
        handler = _COMPOUND.get(type(node))
        if handler is not None:
            handler(self, node)
        else:
            self.complete = False

    # Simple statements

    def expression_statement(self, node: cst.Expr) -> None:
        value = node.value
        if isinstance(value, (cst.Yield, cst.Await)):
            self.is_generator |= isinstance(value, cst.Yield)
            self.walk_children(value)
            return
        result = self.evaluate(value)
        if not isinstance(value, cst.Call):
            return
        if result is NEVER or self.canonical(value.func) in tables.NEVER_RETURNING:
            self.state.live = False
        elif _sounds_final(value.func):
            self.state.doubt(Guard(id(node), "returns"))

    def return_(self, node: cst.Return) -> None:
        value = self.evaluate(node.value) if node.value is not None else NONE
        if isinstance(value, Context):
            self.record(Escape, node, how="returned")
        if value is NEVER:
            self.state.live = False
            return
        self.record(Return, node, value=value, bare=node.value is None, attributes=frozenset(self.state.attributes))
        self.state.live = False

    def raise_(self, node: cst.Raise) -> None:
        if node.exc is not None:
            self.evaluate(node.exc)
        self.state.live = False

    def assert_(self, node: cst.Assert) -> None:
        self.evaluate(node.test)
        if isinstance(node.test, (cst.Name, cst.Integer)) and node.test.value in ("False", "0"):
            self.state.live = False
            return
        self.narrow(node.test, True)

    def leave_loop(self, node: cst.BaseSmallStatement) -> None:
        if self.loop_stack:
            loop = self.loop_stack[-1]
            (loop.breaks if isinstance(node, cst.Break) else loop.continues).append(self.state.fork())
        self.state.live = False

    def delete(self, node: cst.Del) -> None:
        for target in _delete_targets(node.target):
            if isinstance(target, cst.Name):
                self.state.names.pop(target.value, None)
                self.state.names[target.value] = UNBOUND
            elif isinstance(target, cst.Attribute) and isinstance(self.evaluate(target.value), Context):
                self.state.attributes.pop(target.attr.value, None)
                self.record(ContextWrite, target, attribute=target.attr.value, statement=self.statement, deletes=True)
            else:
                self.walk_children(target)

    def import_(self, node: cst.Import | cst.ImportFrom) -> None:
        """An import inside a method binds names that the file's index knows nothing of."""
        if isinstance(node, cst.Import):
            for alias in node.names:
                path = dotted(alias.name)  # type: ignore[arg-type]
                bound = alias.evaluated_alias
                if path is not None:
                    name = bound or path.partition(".")[0]
                    self.state.names[name] = Imported(path if bound else name)
            return
        origin = "." * len(node.relative) + ((dotted(node.module) or "") if node.module is not None else "")
        if isinstance(node.names, cst.ImportStar):
            self.complete = False
            return
        for alias in node.names:
            name = alias.evaluated_name
            target = f"{origin}.{name}" if node.module is not None else f"{origin}{name}"
            self.state.names[alias.evaluated_alias or name] = Imported(target)

    # Branches

    def if_(self, node: cst.If) -> None:
        self.evaluate(node.test)
        before = self.state
        constant = self.constant_test(node.test)
        arms: list[State] = []
        if constant is not False:
            arms.append(self.arm(before, node, node.test, True, node.body))
        if constant is not True:
            orelse = node.orelse
            if isinstance(orelse, cst.If):
                self.enter(before, node, node.test, False)
                self.if_(orelse)
                arms.append(self.state)
            else:
                arms.append(self.arm(before, node, node.test, False, orelse.body if orelse is not None else None))
        self.state = merge(before, arms)

    def constant_test(self, test: cst.BaseExpression) -> bool | None:
        """Whether a test is a literal (``if True``); ``TYPE_CHECKING`` counts as False."""
        if isinstance(test, cst.Name) and test.value in ("True", "False"):
            return test.value == "True"
        if isinstance(test, cst.Integer):
            return test.value != "0"
        return None

    def enter(self, before: State, node: cst.CSTNode, test: cst.BaseExpression, holds: bool) -> None:
        self.state = before
        guards = self.guards_of(test, holds, node)
        self.state = before.fork(*guards)
        self.narrow(test, holds)

    def arm(
        self, before: State, node: cst.CSTNode, test: cst.BaseExpression, holds: bool, body: cst.BaseSuite | None
    ) -> State:
        self.enter(before, node, test, holds)
        if body is not None:
            self.block(body)
        return self.state

    def with_(self, node: cst.With) -> None:
        for item in node.items:
            value = self.evaluate(item.item)
            if item.asname is not None:
                self.assign_target(item.asname.name, value if isinstance(value, Context) else Opaque(item), None)
        self.block(node.body)

    def try_(self, node: cst.Try | cst.TryStar) -> None:
        before = self.state
        handlers = tuple(node.handlers)
        self.state = before.fork(*((Guard(id(node), "try"),) if handlers else ()))
        self.block(node.body)
        after_body = self.state
        if node.orelse is not None and self.state.live:
            self.block(node.orelse.body)
        results = [self.state]
        for handler in handlers:
            interrupted = merge(before, [before.fork(), _revived(after_body)])
            interrupted.guards = (*before.guards, Guard(id(handler), "except"))
            interrupted.paths = tuple((*path, Guard(id(handler), "except")) for path in before.paths)
            interrupted.done = before.done
            self.state = interrupted
            if handler.name is not None and isinstance(handler.name.name, cst.Name):
                self.state.names[handler.name.name.value] = Opaque(handler)
            self.block(handler.body)
            results.append(self.state)
        self.state = merge(before, results)
        if not handlers and self.state.live:
            self.state.guards = before.guards if self.state.guards[: len(before.guards)] == before.guards else ()
        if node.finalbody is not None:
            alive = self.state.live
            self.state.live = True
            self.block(node.finalbody.body)
            self.state.live = self.state.live and alive

    def match(self, node: cst.Match) -> None:
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
            self.block(case.body)
            arms.append(self.state)
            wildcard = isinstance(case.pattern, cst.MatchAs) and case.pattern.pattern is None
            irrefutable = irrefutable or (wildcard and case.guard is None)
        if not irrefutable:
            arms.append(before.fork(Guard(id(node), "no case")))
        self.state = merge(before, arms)

    # Loops

    def for_(self, node: cst.For) -> None:
        iterated = self.evaluate(node.iter)
        item = iterated_item(iterated, node.iter)
        self.loop(node, lambda: self.assign_target(node.target, item, None), node.body, endless=False)
        self.loop_else(node.orelse)

    def while_(self, node: cst.While) -> None:
        endless = self.constant_test(node.test) is True
        self.loop(node, lambda: self.while_test(node), node.body, endless)
        self.loop_else(node.orelse)

    def while_test(self, node: cst.While) -> None:
        self.evaluate(node.test)
        self.narrow(node.test, True)

    def loop_else(self, orelse: cst.Else | None) -> None:
        if orelse is not None and self.state.live:
            self.block(orelse.body)

    def loop(self, node: cst.CSTNode, begin: Callable[[], None], body: cst.BaseSuite, endless: bool) -> None:
        before = self.state
        self.loops += 1
        if self.loops <= 3:  # the first, silent turn: what does the body change?
            self.muted += 1
            after = self.turn(node, before, begin, body)
            self.muted -= 1
            names = {name: widen(value, after.names.get(name, UNBOUND)) for name, value in before.names.items()}
            attributes = {
                name: value for name, value in before.attributes.items() if after.attributes.get(name) == value
            }
        else:
            changed = assigned_in(body)
            names = {name: UNKNOWN if name in changed else value for name, value in before.names.items()}
            attributes = {}
        start = before.fork()
        start.names, start.attributes = names, attributes
        first = len(self.events)
        loop = _Loop()
        self.loop_stack.append(loop)
        after = self.run_body(node, start, begin, body)
        self.loop_stack.pop()
        self.loops -= 1
        skipped = [] if endless else [start.fork()]
        ends = [] if endless else [after, *loop.continues]
        self.state = merge(start, [*skipped, *ends, *loop.breaks])
        self.state.guards, self.state.paths = before.guards, before.paths
        if any(isinstance(event, Return) for event in self.events[first:]):
            self.state.doubt(Guard(id(node), "exhausted"))

    def turn(self, node: cst.CSTNode, before: State, begin: Callable[[], None], body: cst.BaseSuite) -> State:
        """One silent turn of a loop: the state after it, joined over its ends."""
        loop = _Loop()
        self.loop_stack.append(loop)
        after = self.run_body(node, before.fork(), begin, body)
        self.loop_stack.pop()
        joined = merge(before, [after, *loop.continues, *loop.breaks])
        return joined if joined.live else before

    def run_body(self, node: cst.CSTNode, start: State, begin: Callable[[], None], body: cst.BaseSuite) -> State:
        self.state = start.fork(Guard(id(node), "loop"))
        begin()
        self.block(body)
        return self.state

    # Nested definitions

    def nested(self, node: cst.FunctionDef | cst.ClassDef) -> None:
        for decorator in node.decorators:
            self.evaluate(decorator.decorator)
        self.captured(node)
        self.state.names[node.name.value] = (
            Scalar("callable", node) if isinstance(node, cst.FunctionDef) else Opaque(node)
        )


# ---------------------------------------------------------------------------------------------------------------------
# Pieces that need no state


def _captures(pattern: cst.CSTNode) -> list[str]:
    found: list[str] = []
    if isinstance(pattern, (cst.MatchAs, cst.MatchStar, cst.MatchMapping)):
        name = pattern.rest if isinstance(pattern, cst.MatchMapping) else pattern.name
        if name is not None:
            found.append(name.value)
    for child in pattern.children:
        found.extend(_captures(child))
    return found


def _delete_targets(target: cst.CSTNode) -> list[cst.BaseExpression]:
    if isinstance(target, (cst.Tuple, cst.List)):
        return [each for element in target.elements for each in _delete_targets(element.value)]
    return [target] if isinstance(target, cst.BaseExpression) else []


def _revived(state: State) -> State:
    copy = state.fork()
    copy.live = True
    return copy


def _sounds_final(func: cst.BaseExpression) -> bool:
    """Whether the name of a function says that it raises; its body may be in another file."""
    name = func.attr.value if isinstance(func, cst.Attribute) else func.value if isinstance(func, cst.Name) else ""
    return _FINAL.search(name) is not None


_FINAL = re.compile(
    r"raise|error|exception|fail|abort|unreach|unsupported|not_?impl|not_supported|exit|skip|fatal|assert",
    re.IGNORECASE,
)


_SMALL: dict[type, Callable[..., None]] = {
    cst.Expr: Interpreter.expression_statement,
    cst.Return: Interpreter.return_,
    cst.Raise: Interpreter.raise_,
    cst.Assert: Interpreter.assert_,
    cst.Break: Interpreter.leave_loop,
    cst.Continue: Interpreter.leave_loop,
    cst.Del: Interpreter.delete,
    cst.Import: Interpreter.import_,
    cst.ImportFrom: Interpreter.import_,
    cst.Assign: Interpreter.assign,
    cst.AnnAssign: Interpreter.annotated,
    cst.AugAssign: Interpreter.augmented,
    cst.Pass: lambda self, node: None,
    cst.Global: lambda self, node: None,
    cst.Nonlocal: lambda self, node: None,
}

_COMPOUND: dict[type, Callable[..., None]] = {
    cst.If: Interpreter.if_,
    cst.With: Interpreter.with_,
    cst.Try: Interpreter.try_,
    cst.TryStar: Interpreter.try_,
    cst.Match: Interpreter.match,
    cst.For: Interpreter.for_,
    cst.While: Interpreter.while_,
    cst.FunctionDef: Interpreter.nested,
    cst.ClassDef: Interpreter.nested,
}
