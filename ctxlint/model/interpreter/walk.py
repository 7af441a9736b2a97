"""What the transfer functions of one walk share: the abstract state, the recorder of events, and each other."""

from __future__ import annotations

from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import libcst as cst

from ctxlint.effort import spend
from ctxlint.model.interpreter.events import Escape
from ctxlint.model.interpreter.local_names import borrowed_names, has_computed_default, only_called, yields
from ctxlint.model.interpreter.repeated_calls import RepeatedCalls
from ctxlint.model.interpreter.values import Context, Opaque, ProjectFunction, ProjectObject, Value
from ctxlint.model.syntax import children

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ctxlint.model.index.scopes import Scope
    from ctxlint.model.interpreter.events import Event
    from ctxlint.model.interpreter.local_names import Definition
    from ctxlint.model.interpreter.recorder import Recorder
    from ctxlint.model.interpreter.state import State, Turn
    from ctxlint.model.interpreter.summary import Resolver

    Evaluators = Mapping[type[cst.CSTNode], Callable[["Walk", Any], Value]]
    """The transfer functions of expressions, by node type."""
    Executors = Mapping[type[cst.CSTNode], Callable[["Walk", Any], None]]
    """The transfer functions of statements, by node type."""


External = ProjectObject | ProjectFunction
"""What a value from outside certainly is."""

NO_OBJECTS: Mapping[Value, External] = MappingProxyType({})


class MethodNames:
    """The names of a walk, apart from their values."""

    def __init__(self, function: cst.FunctionDef, scope: Scope, local: frozenset[str], star_may_bind_ctx: bool) -> None:
        self._function = function
        self.scope = scope
        """The scope that resolves the method's free names."""
        self.local = local
        """Every name that the method binds anywhere: such a name is never a global."""
        self.star_may_bind_ctx = star_may_bind_ctx
        """Whether a star import may bind the ``ctx`` that the method uses: not if it uses it as autograd's."""
        self.constants: dict[str, Value | None] = {}
        """The values of module names that are bound once, to a literal."""
        self.read: set[str] = set()
        """Every name that was read so far."""
        self.borrowed: set[str] = set()
        """The names that nested definitions capture. They may modify the lists that these names refer to."""
        self.rebound: set[str] = set()
        """The names that nested definitions bind (``nonlocal``)."""
        self.asks_about_all = False
        """Whether the walk has depended on what the whole method does with a name, and not only on what is above."""
        self._borrowed_by: dict[int, frozenset[str]] = {}

    def whole_function(self) -> cst.FunctionDef:
        """The method itself, for those who ask about more than what is above."""
        self.asks_about_all = True
        return self._function

    @cached_property
    def _called(self) -> frozenset[str]:
        """The names that the method binds once, and otherwise only calls."""
        return only_called(self._function.body)

    def is_only_called(self, nested: cst.FunctionDef) -> bool:
        """Whether the method only calls a function that it defines: nobody else gets it."""
        self.asks_about_all = True
        return not nested.decorators and nested.name.value in self._called and not has_computed_default(nested)

    def borrowed_by(self, nested: Definition) -> frozenset[str]:
        """The names that a nested definition captures, if the method binds them."""
        if id(nested) not in self._borrowed_by:
            self._borrowed_by[id(nested)] = borrowed_names(nested)
        return self._borrowed_by[id(nested)]


class Walk:
    """One walk over a method, the first argument of every transfer function.

    A transfer function changes ``state`` and records events. It evaluates or executes the children of its node through
    the walk, which dispatches to their transfer functions.
    """

    def __init__(
        self,
        evaluators: Evaluators,
        executors: Executors,
        names: MethodNames,
        state: State,
        recorder: Recorder,
        resolver: Resolver | None,
        objects: Mapping[Value, External],
    ) -> None:
        self._evaluators = evaluators
        self._executors = executors
        self.names = names
        self.state = state
        self.recorder = recorder
        self.resolver = resolver
        """Resolves the project functions that are called; None if calls are not resolved."""
        self.objects = objects
        """The values from outside of which it is known that they are objects of project classes, or functions."""
        self.statement: cst.CSTNode | None = None
        """The statement that is being walked."""
        self.loops = 0
        """The number of enclosing loops, comprehensions included."""
        self.each: dict[int, Value] = {}
        """The values, by their identity, that stand for each element of a tuple or list in turn."""
        self.turns: list[Turn] = []
        """The iterations of the enclosing loops, the innermost last."""
        self.fixed_points: dict[int, State] = {}
        """The last state that held before any iteration of a loop within another, by the identity of its node."""
        self.repeated = RepeatedCalls()
        """The evaluations of the calls in loops."""
        self.protected = 0
        """The number of enclosing ``try`` statements that handle a missing attribute."""
        self.walrus_names: set[str] = set()
        """The names bound by ``:=`` in the comprehension that is being walked."""
        self.is_generator = False
        self.complete = True
        """Whether everything that the method does can be modelled."""

    def record(self, make: Callable[..., Event], node: cst.CSTNode, **facts: Any) -> None:
        """Record an event at ``node``, on the current path."""
        if self.loops and not self.recorder.muted:
            self.repeated.recorded.append((make, node, facts))
        self.recorder.record(make, node, self.state, self.loops > 0, facts)

    def bound(self, name: str) -> Value | None:
        """The value of a name that the method binds; None for any other name."""
        if self.loops:
            self.repeated.read.append(name)
        return self.state.names.get(name)

    # Expressions

    def evaluate(self, node: cst.BaseExpression) -> Value:
        """The value of an expression; records events on the way."""
        spend(8)
        evaluator = self._evaluators.get(type(node))
        return self.evaluate_children(node) if evaluator is None else evaluator(self, node)

    def evaluate_children(self, node: cst.CSTNode) -> Value:
        """Evaluate the children of an expression of an unknown kind."""
        for child in children(node):
            if isinstance(child, cst.BaseExpression):
                self.evaluate(child)
            else:
                self.evaluate_children(child)
        return Opaque(node)

    def use(self, node: cst.BaseExpression) -> Value:
        """Evaluate an operand: a position that requires a tensor, a number or the like."""
        value = self.evaluate(node)
        if isinstance(value, Context):
            self.record(Escape, node, how="stored")
        return value

    def peek(self, node: cst.BaseExpression) -> Value:
        """The value of an expression without recording anything."""
        if type(node) in _SIMPLE:  # evaluated for their value, without side effects
            return self._silently(node)
        names, attributes = self.state.names, self.state.attributes
        self.state.names, self.state.attributes = dict(names), dict(attributes)
        try:
            return self._silently(node)
        finally:
            self.state.names, self.state.attributes = names, attributes

    def _silently(self, node: cst.BaseExpression) -> Value:
        """Evaluate an expression without recording events, or reads of names."""
        read, self.names.read = self.names.read, set()
        self.recorder.muted += 1
        try:
            return self.evaluate(node)
        finally:
            self.recorder.muted -= 1
            self.names.read = read

    # Statements

    def execute(self, body: cst.BaseSuite) -> None:
        """Walk the statements of a block, up to the one that leaves it."""
        for statement in body.body:
            self.execute_statement(statement, body)

    def execute_statement(self, statement: cst.CSTNode, body: cst.BaseSuite) -> None:
        """Walk one statement, or one line of simple statements, of a block."""
        if isinstance(statement, cst.SimpleStatementLine):
            for small in statement.body:
                self._execute_one(small, statement)
        else:
            self._execute_one(statement, body if isinstance(statement, cst.BaseSmallStatement) else statement)

    def _execute_one(self, node: cst.CSTNode, statement: cst.CSTNode) -> None:
        """Walk one of the simple statements on the line, or in the block, ``statement``."""
        if not self.state.live:
            self.skip(node)
            return
        self.statement = statement
        executor = self._executors.get(type(node))
        if executor is not None:
            executor(self, node)
        elif isinstance(node, cst.BaseSmallStatement):
            self.evaluate_children(node)
        else:
            self.complete = False

    def skip(self, node: cst.CSTNode | None) -> None:
        """Skip code that never runs. A ``yield`` in it still makes the function a generator."""
        if node is not None and not self.is_generator:
            self.is_generator = yields(node)


_SIMPLE = frozenset({cst.Name, cst.Integer, cst.SimpleString})
