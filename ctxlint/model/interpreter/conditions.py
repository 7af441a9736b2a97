"""Tests: what a path through them says, and what they ask about."""

from __future__ import annotations

import operator as operators
from abc import abstractmethod
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.events import Asks, FlagsTested, Guard, Question
from ctxlint.model.interpreter.sequences import integer
from ctxlint.model.interpreter.state import Recorder
from ctxlint.model.interpreter.type_tests import is_instance, only_instances
from ctxlint.model.interpreter.values import (
    NONE,
    UNKNOWN,
    Argument,
    Choice,
    Constant,
    Context,
    Fresh,
    Mapping,
    NeedsInputGrad,
    Scalar,
    Sequence,
    SomeTensor,
    Tri,
    Value,
    is_none,
    without,
)

if TYPE_CHECKING:
    from collections.abc import Callable


class Conditions(Recorder):
    """Reads the tests of branches."""

    @abstractmethod
    def evaluate(self, node: cst.BaseExpression) -> Value:
        """The value of an expression; see ``expressions``."""

    @abstractmethod
    def canonical(self, node: cst.BaseExpression) -> str | None:
        """The dotted name that an expression stands for; see ``expressions``."""

    def guards_of(self, test: cst.BaseExpression, holds: bool, block: cst.CSTNode) -> tuple[Guard, ...]:
        """The guards of an arm: the whole test, and each part of it that certainly holds there."""
        if holds:
            self.note_flags(test)
        guards = [self.guard(test, holds, id(block))]
        for part, part_holds in certain_parts(test, holds):
            if part is not test:
                guards.append(self.guard(part, part_holds, id(part)))
        return tuple(guards)

    def note_flags(self, test: cst.BaseExpression) -> None:
        """Record every operand of a test that is ``ctx.needs_input_grad`` as a whole."""
        if isinstance(test, cst.BooleanOperation):
            self.note_flags(test.left)
            self.note_flags(test.right)
        elif isinstance(test, cst.UnaryOperation):
            self.note_flags(test.expression)
        elif isinstance(test, (cst.Name, cst.Attribute)) and self.peek(test) == NeedsInputGrad():
            self.record(FlagsTested, test)

    def guard(self, test: cst.BaseExpression, holds: bool, block: int) -> Guard:
        return Guard(block, str(holds), test, holds, self.asks(test, holds), self.one_of(test, holds))

    def one_of(self, test: cst.BaseExpression, holds: bool) -> tuple[Asks, ...]:
        """What the parts of a compound test ask, where one of them decided; see ``Guard``."""
        parts = _deciding_parts(test, holds)
        asked = [self.asks(part, part_holds) for part, part_holds in parts] if len(parts) > 1 else []
        known = tuple(each for each in asked if each is not None)
        return known if len(known) == len(asked) else ()

    def asks(self, test: cst.BaseExpression, holds: bool) -> Asks | None:
        """What a condition asks, where it is one of the known questions."""
        while isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            test, holds = test.expression, not holds
        if isinstance(test, cst.Comparison):
            negated = _tests_none(test)
            return None if negated is None else Asks(Question.IS_NONE, self.peek(test.left), holds is not negated)
        if isinstance(test, cst.Attribute):
            required = test.attr.value == "requires_grad"
            return Asks(Question.REQUIRES_GRAD, self.peek(test.value), holds) if required else None
        if isinstance(test, (cst.Name, cst.Subscript)):
            return self.value_asks(test, self.peek(test), holds)
        return self.call_asks(test, holds) if isinstance(test, cst.Call) else None

    def value_asks(self, test: cst.BaseExpression, value: Value, holds: bool) -> Asks | None:
        """What a test of a value asks: that of a flag, or of a name that holds the outcome of another test."""
        if isinstance(value, NeedsInputGrad) and value.index is not None:
            return Asks(Question.NEEDS_INPUT_GRAD, value, holds)
        if isinstance(value, Scalar) and isinstance(value.node, cst.BaseExpression) and value.node is not test:
            return self.asks(value.node, holds)
        return None

    def call_asks(self, test: cst.Call, holds: bool) -> Asks | None:
        """What ``torch.is_grad_enabled()`` and ``any(ctx.needs_input_grad)`` ask."""
        callee = self.canonical(test.func)
        if callee == "torch.is_grad_enabled":
            return Asks(Question.GRAD_MODE, UNKNOWN, holds)
        if callee != "builtins.any" or len(test.args) != 1:
            return None
        flags = self.peek(test.args[0].value)
        return Asks(Question.NEEDS_INPUT_GRAD, flags, holds) if flags == NeedsInputGrad() else None

    def decided(self, test: cst.BaseExpression) -> bool | None:
        """How a test comes out on every path: a literal, or a question about a local name that holds one.

        Constants of the module do not count, since they are there to be changed.
        """
        if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            inner = self.decided(test.expression)
            return None if inner is None else not inner
        if isinstance(test, cst.BooleanOperation):
            found = {self.decided(test.left), self.decided(test.right)}
            decisive = isinstance(test.operator, cst.Or)
            return decisive if decisive in found else not decisive if found == {not decisive} else None
        if isinstance(test, cst.Integer) or (isinstance(test, cst.Name) and self.is_local(test)):
            value = self.peek(test)
            if isinstance(value, Constant):
                return bool(value.value)
        if isinstance(test, cst.Comparison) and isinstance(test.left, cst.Name) and self.is_local(test.left):
            negated = _tests_none(test)
            value = self.peek(test.left)
            if negated is None or not is_plain(value):
                return None
            return (is_none(value) is Tri.YES) is not negated
        if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
            part = test.comparisons[0]
            return _compared(self.number(test.left), part.operator, self.number(part.comparator))
        asked = self.type_test(test)
        if asked is not None:
            answer = is_instance(self.peek(asked[0]), asked[1])
            return None if answer is Tri.UNKNOWN else answer is Tri.YES
        return False if self.canonical(test) == "typing.TYPE_CHECKING" else None

    def number(self, node: cst.BaseExpression) -> int | None:
        """The whole number that a literal, a local name, or the length of what a local name holds certainly is."""
        if isinstance(node, cst.Call) and len(node.args) == 1 and self.canonical(node.func) == "builtins.len":
            held = node.args[0].value
            value = self.peek(held) if isinstance(held, cst.Name) and self.is_local(held) else UNKNOWN
            return len(value.slots) if isinstance(value, Sequence) and value.exact and value.kind != "set" else None
        if isinstance(node, cst.Integer) or (isinstance(node, cst.Name) and self.is_local(node)):
            return integer(self.peek(node))
        return None

    def type_test(self, test: cst.BaseExpression) -> tuple[cst.BaseExpression, tuple[str, ...]] | None:
        """What ``isinstance(x, C)`` asks about, and the dotted names of the classes; None for any other test."""
        if not isinstance(test, cst.Call):
            return None
        callee = self.canonical(test.func)
        if callee == "torch.is_tensor" and len(test.args) == 1:
            return test.args[0].value, ("torch.Tensor",)
        if callee != "builtins.isinstance" or len(test.args) != 2:
            return None
        kinds = test.args[1].value
        written = [each.value for each in kinds.elements] if isinstance(kinds, cst.Tuple) else [kinds]
        names = [self.canonical(each) or "" for each in written]
        return test.args[0].value, tuple(names)

    def is_local(self, node: cst.Name) -> bool:
        """Whether the value of a name is the method's own doing."""
        return node.value in ("True", "False") or node.value in self.state.names

    def peek(self, node: cst.BaseExpression) -> Value:
        """The value of an expression without recording anything."""
        if type(node) in _SIMPLE:  # evaluated for their value, they change nothing
            return self.silently(node)
        names, attributes = self.state.names, self.state.attributes
        self.state.names, self.state.attributes = dict(names), dict(attributes)
        try:
            return self.silently(node)
        finally:
            self.state.names, self.state.attributes = names, attributes

    def silently(self, node: cst.BaseExpression) -> Value:
        """Evaluate an expression without leaving events, or names that were read."""
        read, self.names_read = self.names_read, set()
        self.muted += 1
        try:
            return self.evaluate(node)
        finally:
            self.muted -= 1
            self.names_read = read

    def narrow(self, test: cst.BaseExpression, holds: bool) -> None:
        """Let a test rule out values: after ``if x is None`` x is None in one arm and not in the other."""
        for part, part_holds in certain_parts(test, holds):
            self.narrow_one(part, part_holds)

    def narrow_one(self, test: cst.BaseExpression, holds: bool) -> None:
        if isinstance(test, cst.Name):
            value = self.state.names.get(test.value)
            if value is not None and holds:
                self.state.names[test.value] = without(value, NONE)
            return
        asked = self.type_test(test)
        if asked is not None and isinstance(asked[0], cst.Name) and asked[0].value in self.state.names:
            name = asked[0].value
            self.state.names[name] = only_instances(self.state.names[name], asked[1], holds)
            return
        if not isinstance(test, cst.Comparison) or not isinstance(test.left, cst.Name):
            return
        negated = _tests_none(test)
        name = test.left.value
        value = self.state.names.get(name)
        if negated is None or value is None:
            return
        if holds is negated:
            self.state.names[name] = without(value, NONE)
        elif is_none(value) is not Tri.NO and isinstance(value, Choice):
            self.state.names[name] = NONE


_SIMPLE = frozenset({cst.Name, cst.Integer, cst.SimpleString})


def is_plain(value: Value) -> bool:
    """Whether it is plain that it is None, or that it is not. A gradient is not among them: it may not have come."""
    if isinstance(value, Argument):
        return value.plain
    return isinstance(value, (Constant, Fresh, SomeTensor, Sequence, Mapping, Context))


def _compared(left: int | None, operator: cst.BaseCompOp, right: int | None) -> bool | None:
    """How a comparison of two numbers comes out; None where one of them is unknown."""
    compare = _COMPARISONS.get(type(operator))
    return None if compare is None or left is None or right is None else compare(left, right)


_COMPARISONS: dict[type[cst.BaseCompOp], Callable[[int, int], bool]] = {
    cst.Equal: operators.eq,
    cst.NotEqual: operators.ne,
    cst.LessThan: operators.lt,
    cst.LessThanEqual: operators.le,
    cst.GreaterThan: operators.gt,
    cst.GreaterThanEqual: operators.ge,
}


def _tests_none(test: cst.Comparison) -> bool | None:
    """False for ``… is None``, True for ``… is not None``, None for any other comparison."""
    part = test.comparisons[0]
    if len(test.comparisons) != 1 or not isinstance(part.operator, (cst.Is, cst.IsNot)):
        return None
    if not isinstance(part.comparator, cst.Name) or part.comparator.value != "None":
        return None
    return isinstance(part.operator, cst.IsNot)


def certain_parts(test: cst.BaseExpression, holds: bool) -> list[tuple[cst.BaseExpression, bool]]:
    """The parts of a test that certainly hold (or certainly do not) on the arm where it came out as ``holds``."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return certain_parts(test.expression, not holds)
    if isinstance(test, cst.BooleanOperation):
        if isinstance(test.operator, cst.And) is holds:
            return [*certain_parts(test.left, holds), *certain_parts(test.right, holds)]
        return []
    return [(test, holds)]


def _deciding_parts(test: cst.BaseExpression, holds: bool) -> list[tuple[cst.BaseExpression, bool]]:
    """The parts of a test one of which, at the least, made it come out as ``holds``."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return _deciding_parts(test.expression, not holds)
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And) is not holds:
        return [*_deciding_parts(test.left, holds), *_deciding_parts(test.right, holds)]
    return [(test, holds)]
