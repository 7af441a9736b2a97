"""What an expression evaluates to. Calls are in ``calls.py``, statements and paths in ``walk.py``."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.effort import spend
from ctxlint.model.interpreter.attribute_access import Access
from ctxlint.model.interpreter.events import Escape
from ctxlint.model.interpreter.sequences import concatenation, fold, repetition, spread
from ctxlint.model.interpreter.state import join_states
from ctxlint.model.interpreter.values import (
    NONE,
    Choice,
    Constant,
    Context,
    Fresh,
    Kind,
    Mapping,
    NeedsInputGrad,
    Opaque,
    SavedTensors,
    Scalar,
    Sequence,
    Single,
    Slot,
    Tri,
    Value,
    constant,
    is_container,
    is_tensor,
    is_whole_number,
    join,
    kind_of,
    tensor_when_used,
    without,
)
from ctxlint.model.syntax import children, literal_integer, literal_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Sequence as SequenceOf


_ORDERING = (cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual)


class Expressions(Access):
    """Evaluates expressions in the current state."""

    @abstractmethod
    def assign_target(
        self,
        target: cst.BaseExpression,
        value: Value,
        statement: cst.CSTNode | None,
        value_node: cst.BaseExpression | None = None,
    ) -> None:
        """Bind a target; see ``assignments``."""

    # Entry

    def evaluate(self, node: cst.BaseExpression) -> Value:
        """The value of an expression; records what happens on the way."""
        spend(8)
        handler = _HANDLERS.get(type(node))
        if handler is None:
            return self.walk_children(node)
        return handler(self, node)

    def walk_children(self, node: cst.CSTNode) -> Value:
        """Evaluate what is inside an expression of a kind that nothing is known about."""
        for child in children(node):
            if isinstance(child, cst.BaseExpression):
                self.evaluate(child)
            else:
                self.walk_children(child)
        return Opaque(node)

    def use(self, node: cst.BaseExpression) -> Value:
        """Evaluate an operand: a place where a tensor, a number or the like is needed."""
        value = self.evaluate(node)
        if isinstance(value, Context):
            self.record(Escape, node, how="stored")
        return value

    # Displays

    def display(self, node: cst.Tuple | cst.List | cst.Set) -> Value:
        kind = "tuple" if isinstance(node, cst.Tuple) else "list" if isinstance(node, cst.List) else "set"
        slots: list[Slot] = []
        for element in node.elements:
            slots.extend(self.slot(element))
        return Sequence(kind, tuple(slots), node)

    def slot(self, element: cst.BaseElement) -> SequenceOf[Slot]:
        """The slots that one element of a display gives: several for a star of known length."""
        value = self.use(element.value)
        if isinstance(element, cst.StarredElement):
            return spread(value, element.value)
        return (Slot(value, element.value),)

    def dictionary(self, node: cst.Dict) -> Value:
        slots: list[Slot] = []
        for element in node.elements:
            if isinstance(element, cst.DictElement):
                self.evaluate(element.key)
            slots.append(Slot(self.use(element.value), element.value, isinstance(element, cst.StarredDictElement)))
        return Mapping(tuple(slots), node)

    # Operators

    def binary(self, node: cst.BinaryOperation) -> Value:
        left, right = self.use(node.left), self.use(node.right)
        return self.combine(left, right, node.operator, node)

    def combine(self, left: Value, right: Value, operator: cst.CSTNode, node: cst.CSTNode) -> Value:
        """``left operator right``."""
        if isinstance(operator, (cst.Add, cst.AddAssign)):
            both = concatenation(left, right, node)
            if both is not None:
                return both
        if isinstance(operator, (cst.Multiply, cst.MultiplyAssign)):
            repeated = repetition(left, right, node) or repetition(right, left, node)
            if repeated is not None:
                return repeated
        for operand, other, side in ((left, right, "left"), (right, left, "right")):
            expression = getattr(node, side, None)
            if isinstance(operand, SavedTensors) and expression is not None and not _may_repeat(operator, other):
                self.saved_tuple_used(node, expression, "in arithmetic")
        if tensor_when_used(left) or tensor_when_used(right):
            return Fresh(node, self.arithmetic_kind(left, right, operator))
        folded = fold(left, right, operator)
        if folded is not None:
            return folded
        if _is_number(left) and _is_number(right):
            return Scalar("number", node)
        return Single(node) if _gives_one_object(left, right, operator) else Opaque(node)

    def arithmetic_kind(self, left: Value, right: Value, operator: cst.CSTNode) -> Kind:
        if isinstance(operator, (cst.Divide, cst.DivideAssign)):
            return Kind.FLOAT
        kinds = {Kind.INTEGRAL if is_whole_number(value) else kind_of(value) for value in (left, right)}
        if Kind.FLOAT in kinds:
            return Kind.FLOAT
        return Kind.INTEGRAL if kinds == {Kind.INTEGRAL} else Kind.UNKNOWN

    def unary(self, node: cst.UnaryOperation) -> Value:
        if isinstance(node.operator, cst.Not):
            self.evaluate(node.expression)
            return Scalar("bool", node)
        value = self.use(node.expression)
        if isinstance(value, SavedTensors):
            self.saved_tuple_used(node, node.expression, "in arithmetic")
        if isinstance(value, Constant) and isinstance(value.value, (int, float)):
            if isinstance(node.operator, cst.Minus):
                return constant(-value.value)
            return value if isinstance(node.operator, cst.Plus) else Scalar("number", node)
        if tensor_when_used(value):
            return Fresh(node, kind_of(value))
        return Scalar("number", node) if _is_number(value) else Single(node)

    def comparison(self, node: cst.Comparison) -> Value:
        values = [self.evaluate(node.left)]  # a comparison does not keep a ctx
        identity = False
        for part in node.comparisons:
            values.append(self.evaluate(part.comparator))
            identity |= isinstance(part.operator, (cst.Is, cst.IsNot, cst.In, cst.NotIn))
        if len(node.comparisons) == 1 and isinstance(node.comparisons[0].operator, _ORDERING):
            self.saved_tuple_compared(node, values)
        if identity or all(_is_scalar(value) for value in values):
            return Scalar("bool", node)
        if any(tensor_when_used(value) for value in values):
            return Fresh(node, Kind.INTEGRAL)
        if any(isinstance(value, Constant) and isinstance(value.value, str) for value in values):
            return Scalar("bool", node)
        return Single(node)

    def saved_tuple_compared(self, node: cst.Comparison, values: list[Value]) -> None:
        """``saved < 0``: a tuple is ordered among tuples only."""
        left, right = values
        for value, other, written in ((left, right, node.left), (right, left, node.comparisons[0].comparator)):
            if isinstance(value, SavedTensors) and (_is_number(other) or is_tensor(other) is Tri.YES):
                self.saved_tuple_used(node, written, "in a comparison")

    def boolean(self, node: cst.BooleanOperation) -> Value:
        left = self.use(node.left)
        guards = self.guards_of(node.left, isinstance(node.operator, cst.And), node)
        before = self.state
        self.state = before.fork(*guards)
        right = self.use(node.right)
        self.state = join_states(before, [before.fork(), self.state])
        if _is_flag(left) and _is_flag(right):
            return Scalar("bool", node)
        if isinstance(left, Constant):
            return right if bool(left.value) is isinstance(node.operator, cst.And) else left
        if isinstance(node.operator, cst.Or):  # ``x or ()``: None on the left never comes out
            left = without(left, NONE)
        return join(left, right)

    def conditional(self, node: cst.IfExp) -> Value:
        """``a if test else b``."""
        self.evaluate(node.test)
        outcome = self.decided(node.test)
        if outcome is not None:
            return self.use(node.body if outcome else node.orelse)
        before = self.state
        self.state = before.fork(*self.guards_of(node.test, True, node))
        self.narrow(node.test, True)
        first = self.use(node.body)
        taken = self.state
        self.state = before.fork(*self.guards_of(node.test, False, node))
        self.narrow(node.test, False)
        second = self.use(node.orelse)
        self.state = join_states(before, [taken, self.state])
        return join(first, second)

    def walrus(self, node: cst.NamedExpr) -> Value:
        value = self.evaluate(node.value)
        if isinstance(node.target, cst.Name):
            self.walrus_names.add(node.target.value)
            self.assign_target(node.target, value, node, node.value)
        return value

    # Literals

    def string(self, node: cst.BaseString) -> Value:
        """A string, the text of which matters only where it is written in one piece."""
        text = literal_text(node) if isinstance(node, cst.SimpleString) else None
        if text is not None:
            return constant(text)
        self.walk_children(node)
        return Scalar("str", node)

    def integer(self, node: cst.Integer) -> Value:
        """A whole number."""
        number = literal_integer(node)
        return Scalar("int", node) if number is None else constant(number)

    def float_(self, node: cst.Float) -> Value:
        """A number with a point."""
        return constant(float(node.value.replace("_", "")))

    def call(self, node: cst.Call) -> Value:
        """See ``calls``."""
        raise NotImplementedError


# ---------------------------------------------------------------------------------------------------------------------
# Pieces that need no state


def _may_repeat(operator: cst.CSTNode, times: Value) -> bool:
    """Whether ``tuple operator times`` may be the tuple repeated: a product with what may be a whole number."""
    product = isinstance(operator, (cst.Multiply, cst.MultiplyAssign))
    return product and Tri.YES not in (is_tensor(times), is_container(times))


def _is_number(value: Value) -> bool:
    if isinstance(value, Constant):
        return isinstance(value.value, (int, float, complex))
    return isinstance(value, Scalar) and value.sort in ("int", "float", "number", "bool")


def _is_scalar(value: Value) -> bool:
    return isinstance(value, (Constant, Scalar, NeedsInputGrad))


def _is_flag(value: Value) -> bool:
    if isinstance(value, Choice):
        return all(_is_flag(option) for option in value.alternatives)
    if isinstance(value, Constant):
        return isinstance(value.value, bool)
    if isinstance(value, NeedsInputGrad):
        return value.index is not None
    return isinstance(value, Scalar) and value.sort == "bool"


def _gives_one_object(left: Value, right: Value, operator: cst.CSTNode) -> bool:
    """Whether an operator certainly gives no tuple or list: ``+`` joins them and ``*`` repeats them, no other does."""
    if isinstance(operator, (cst.Add, cst.AddAssign)):
        return Tri.NO in (is_container(left), is_container(right))
    if isinstance(operator, (cst.Multiply, cst.MultiplyAssign)):
        if any(isinstance(side, Constant) and isinstance(side.value, float) for side in (left, right)):
            return True
        return is_container(left) is Tri.NO and is_container(right) is Tri.NO
    return True


def _constant_name(self: Expressions, node: cst.Name) -> Value:
    if node.value == "None":
        return NONE
    if node.value in ("True", "False"):
        return constant(node.value == "True")
    return self.name(node)


_HANDLERS: dict[type, Callable[..., Value]] = {
    cst.Name: _constant_name,
    cst.Attribute: Expressions.attribute,
    cst.Subscript: Expressions.subscript,
    cst.Call: lambda self, node: self.call(node),
    cst.Tuple: Expressions.display,
    cst.List: Expressions.display,
    cst.Set: Expressions.display,
    cst.Dict: Expressions.dictionary,
    cst.BinaryOperation: Expressions.binary,
    cst.UnaryOperation: Expressions.unary,
    cst.Comparison: Expressions.comparison,
    cst.BooleanOperation: Expressions.boolean,
    cst.IfExp: Expressions.conditional,
    cst.NamedExpr: Expressions.walrus,
    cst.Lambda: Expressions.lambda_,
    cst.Yield: Expressions.yield_,
    cst.ListComp: Expressions.comprehension,
    cst.SetComp: Expressions.comprehension,
    cst.GeneratorExp: Expressions.comprehension,
    cst.DictComp: Expressions.dict_comprehension,
    cst.SimpleString: Expressions.string,
    cst.ConcatenatedString: Expressions.string,
    cst.FormattedString: Expressions.string,
    cst.Integer: Expressions.integer,
    cst.Float: Expressions.float_,
    cst.Ellipsis: lambda self, node: constant(...),
}
