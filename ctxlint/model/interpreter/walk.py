"""One walk over a method's body: statement by statement, with an environment that joins where branches meet.

The walk follows every path once. At a branch the state is copied and joined afterwards; a loop body is walked twice,
first silently to see what it changes, then with those names widened. Nested functions are not walked.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.events import (
    ContextWrite,
    Escape,
    Guard,
    Return,
)
from ctxlint.model.interpreter.local_names import bound_names, yields
from ctxlint.model.interpreter.loops import Loops
from ctxlint.model.interpreter.method import MethodFacts
from ctxlint.model.interpreter.sequences import unknown_content
from ctxlint.model.interpreter.state import State
from ctxlint.model.interpreter.values import (
    NEVER,
    NONE,
    UNBOUND,
    Context,
    Imported,
    Opaque,
    Scalar,
    Tri,
    Value,
)
from ctxlint.model.syntax import dotted
from ctxlint.torch_api import python

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctxlint.model.index.scopes import Scope
    from ctxlint.model.interpreter.calls import Followed
    from ctxlint.model.interpreter.events import Event


def interpret(
    function: cst.FunctionDef,
    bindings: dict[str, Value],
    scope: Scope,
    follow: Followed | None = None,
    walrus: bool = True,
    kinds: frozenset[type[Event]] | None = None,
) -> MethodFacts:
    """Walk a method or function whose parameters hold ``bindings``; free names are looked up in ``scope``.

    ``follow`` gives the summaries of other functions; ``walrus`` is as for ``bound_names``, and ``kinds`` as for
    ``Recorder``. Raises RecursionError on absurdly deep expressions.
    """
    walk = Interpreter(scope, bound_names(function, walrus))
    walk.follow = follow
    walk.kinds = kinds
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


class Interpreter(Loops):
    """Walks statements."""

    def __init__(self, scope: Scope, method_names: frozenset[str]) -> None:
        super().__init__(scope, method_names)
        self.turns = []

    # Blocks

    def block(self, body: cst.BaseSuite) -> None:
        """Walk statements, up to the one that leaves."""
        for statement in body.body:
            if isinstance(statement, cst.SimpleStatementLine):
                for small in statement.body:
                    self.small(small, statement)
            elif isinstance(statement, cst.BaseSmallStatement):
                self.small(statement, body)
            else:
                self.compound(statement)

    def skip(self, node: cst.CSTNode | None) -> None:
        """Pass over code that never runs. Where it holds a ``yield``, it still makes the function a generator."""
        if node is not None and not self.is_generator:
            self.is_generator = yields(node)

    def small(self, node: cst.BaseSmallStatement, line: cst.CSTNode) -> None:
        """A simple statement; several can share one line."""
        if not self.state.live:
            self.skip(node)
            return
        self.statement = line
        handler = _SMALL.get(type(node))
        if handler is not None:
            handler(self, node)
        else:
            self.walk_children(node)

    def compound(self, node: cst.CSTNode) -> None:
        """A statement with blocks of its own."""
        if not self.state.live:
            self.skip(node)
            return
        self.statement = node
        handler = _COMPOUND.get(type(node))
        if handler is not None:
            handler(self, node)
        else:
            self.complete = False

    # Simple statements

    def nothing(self, node: cst.BaseSmallStatement) -> None:
        """A statement that does nothing where it stands."""

    def expression_statement(self, node: cst.Expr) -> None:
        value = node.value
        result = self.evaluate(value)
        if not isinstance(value, cst.Call):
            return
        if result is NEVER or self.canonical(value.func) in python.NEVER_RETURNING:
            self.state.live = False
        elif sounds_final(value.func):
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
        """``assert``: what follows runs under its test."""
        self.evaluate(node.test)
        if node.msg is not None:
            before = self.state
            self.enter(before, node, node.test, holds=False)
            self.evaluate(node.msg)
            self.state = before
        if self.decided(node.test) is False:
            self.state.live = False
            return
        self.narrow(node.test, holds=True)

    def delete(self, node: cst.Del) -> None:
        for target in _delete_targets(node.target):
            if isinstance(target, cst.Name):
                self.state.names[target.value] = UNBOUND
            elif isinstance(target, cst.Attribute) and isinstance(self.evaluate(target.value), Context):
                self.state.attributes.pop(target.attr.value, None)
                self.record(ContextWrite, target, attribute=target.attr.value, statement=self.statement, deletes=True)
            elif isinstance(target, cst.Subscript):
                self.change(self.evaluate(target.value), unknown_content)
                self.indices(target)
            else:
                self.walk_children(target)

    def import_(self, node: cst.Import | cst.ImportFrom) -> None:
        """An import inside a method binds names that the file's index knows nothing of."""
        if isinstance(node, cst.Import):
            for alias in node.names:
                path = dotted(alias.name)
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


def _delete_targets(target: cst.CSTNode) -> list[cst.BaseExpression]:
    if isinstance(target, (cst.Tuple, cst.List)):
        return [each for element in target.elements for each in _delete_targets(element.value)]
    return [target] if isinstance(target, cst.BaseExpression) else []


def sounds_final(func: cst.BaseExpression) -> bool:
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
    cst.Pass: Interpreter.nothing,
    cst.Global: Interpreter.nothing,
    cst.Nonlocal: Interpreter.nothing,
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
