"""The transfer functions of expressions: displays, operators and literals here, and a table of all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.attribute_access import (
    evaluate_attribute,
    evaluate_subscript,
    note_none_operand,
    tuple_used,
)
from ctxlint.model.interpreter.calls import evaluate_call
from ctxlint.model.interpreter.comprehensions import evaluate_comprehension, evaluate_dict_comprehension
from ctxlint.model.interpreter.conditions import asks_unknown_type, by_type, decided, enter_arm, guards_of
from ctxlint.model.interpreter.events import Yield
from ctxlint.model.interpreter.names import evaluate_lambda, evaluate_name, evaluate_walrus
from ctxlint.model.interpreter.sequences import concatenation, fold, repetition, spread
from ctxlint.model.interpreter.state import join_states
from ctxlint.model.interpreter.values import (
    NONE,
    Choice,
    Constant,
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
    is_array,
    is_container,
    is_tensor,
    is_whole_number,
    is_whole_tuple,
    join,
    kind_of,
    tensor_when_used,
    without,
)
from ctxlint.model.syntax import literal_integer, literal_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Sequence as SequenceOf

    from ctxlint.model.interpreter.state import State
    from ctxlint.model.interpreter.walk import Evaluators, Walk


_ORDERING = (cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual)
_IDENTITY = (cst.Is, cst.IsNot, cst.In, cst.NotIn)
_PLUS = (cst.Add, cst.AddAssign)
_TIMES = (cst.Multiply, cst.MultiplyAssign)
_ARITHMETIC: dict[type, str] = {
    cst.Add: "+",
    cst.Subtract: "-",
    cst.Multiply: "*",
    cst.Divide: "/",
    cst.MatrixMultiply: "@",
    cst.Power: "**",
}
"""The operators that raise TypeError for None and a tensor."""


# Displays


def evaluate_display(
    walk: Walk, node: cst.Tuple | cst.List | cst.Set, element_value: Callable[[cst.BaseExpression], Value] | None = None
) -> Value:
    """A tuple, list or set, whose elements escape where it keeps them; not in ``return ctx, x``."""
    kind = "tuple" if isinstance(node, cst.Tuple) else "list" if isinstance(node, cst.List) else "set"
    slots: list[Slot] = []
    for element in node.elements:
        slots.extend(_evaluate_element(element, element_value or walk.use))
    return Sequence(kind, tuple(slots), node)


def _evaluate_element(element: cst.BaseElement, value_of: Callable[[cst.BaseExpression], Value]) -> SequenceOf[Slot]:
    """The slots of one element of a display: several for a star of known length."""
    value = value_of(element.value)
    if isinstance(element, cst.StarredElement):
        return spread(value, element.value)
    return (Slot(value, element.value),)


def evaluate_dictionary(walk: Walk, node: cst.Dict) -> Value:
    """A dict."""
    slots: list[Slot] = []
    for element in node.elements:
        if isinstance(element, cst.DictElement):
            walk.evaluate(element.key)
        slots.append(Slot(walk.use(element.value), element.value, isinstance(element, cst.StarredDictElement)))
    return Mapping(tuple(slots), node, _keys_of(node))


def _keys_of(node: cst.Dict) -> tuple[str, ...]:
    """The keys of a dict display, if all are different literal strings."""
    written = [literal_text(each.key) for each in node.elements if isinstance(each, cst.DictElement)]
    keys = tuple(each for each in written if isinstance(each, str))
    return keys if len(set(keys)) == len(node.elements) else ()


# Operators


def evaluate_binary(walk: Walk, node: cst.BinaryOperation) -> Value:
    """``left operator right``."""
    left, right = walk.use(node.left), walk.use(node.right)
    operator = _ARITHMETIC.get(type(node.operator), "")
    if operator and tensor_when_used(right):
        note_none_operand(walk, node, node.left, left, operator)
    if operator and tensor_when_used(left):
        note_none_operand(walk, node, node.right, right, operator)
    return combine(walk, left, right, node.operator, node)


def combine(walk: Walk, left: Value, right: Value, operator: cst.CSTNode, node: cst.CSTNode) -> Value:
    """``left operator right``."""
    if isinstance(operator, _PLUS):
        both = concatenation(left, right, node)
        if both is not None:
            return both
    if isinstance(operator, _TIMES):
        repeated = repetition(left, right, node) or repetition(right, left, node)
        if repeated is not None:
            return repeated
    for operand, other, side in ((left, right, "left"), (right, left, "right")):
        expression = getattr(node, side, None)
        if is_whole_tuple(operand) and expression is not None:
            repeats = _may_repeat(operator, other)
            if repeats or isinstance(operand, SavedTensors) or _is_number(other) or is_tensor(other) is Tri.YES:
                tuple_used(walk, node, operand, expression, "in arithmetic", may_repeat=repeats)
    if tensor_when_used(left) or tensor_when_used(right):
        return Fresh(node, _arithmetic_kind(left, right, operator))
    folded = fold(left, right, operator)
    if folded is not None:
        return folded
    if _is_number(left) and _is_number(right):
        return Scalar("number", node)
    if all(is_array(each) or _is_number(each) for each in (left, right)):
        return Scalar("array", node)
    return Single(node) if _gives_one_object(left, right, operator) else Opaque(node)


def _arithmetic_kind(left: Value, right: Value, operator: cst.CSTNode) -> Kind:
    if isinstance(operator, (cst.Divide, cst.DivideAssign)):
        return Kind.FLOAT
    kinds = {Kind.INTEGRAL if is_whole_number(value) else kind_of(value) for value in (left, right)}
    if Kind.FLOAT in kinds:
        return Kind.FLOAT
    return Kind.INTEGRAL if kinds == {Kind.INTEGRAL} else Kind.UNKNOWN


def evaluate_unary(walk: Walk, node: cst.UnaryOperation) -> Value:
    """``-x`` and the like, and ``not x``."""
    if isinstance(node.operator, cst.Not):
        walk.evaluate(node.expression)
        return Scalar("bool", node)
    value = walk.use(node.expression)
    if is_whole_tuple(value):
        tuple_used(walk, node, value, node.expression, "in arithmetic")
    if isinstance(value, Constant) and isinstance(value.value, (int, float)):
        if isinstance(node.operator, cst.Minus):
            return constant(-value.value)
        return value if isinstance(node.operator, cst.Plus) else Scalar("number", node)
    if tensor_when_used(value):
        return Fresh(node, kind_of(value))
    return Scalar("number", node) if _is_number(value) else Single(node)


def evaluate_comparison(walk: Walk, node: cst.Comparison) -> Value:
    """``a < b``, also in a chain."""
    values = [without_reading(walk, node.left)]  # a comparison does not keep a ctx
    identity = False
    for part in node.comparisons:
        values.append(without_reading(walk, part.comparator))
        identity |= isinstance(part.operator, _IDENTITY)
    if len(node.comparisons) == 1 and isinstance(node.comparisons[0].operator, _ORDERING):
        _saved_tuple_compared(walk, node, values)
    if identity or all(_is_scalar(value) for value in values):
        return Scalar("bool", node)
    if any(tensor_when_used(value) for value in values):
        return Fresh(node, Kind.INTEGRAL)
    if any(isinstance(value, Constant) and isinstance(value.value, str) for value in values):
        return Scalar("bool", node)
    return Single(node)


def without_reading(walk: Walk, node: cst.BaseExpression) -> Value:
    """What is only compared, or kept in an attribute: through an address, ``x.data_ptr()``, nothing is read there."""
    pointer = node.left if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Modulo) else node
    if isinstance(pointer, cst.Call) and isinstance(pointer.func, cst.Attribute) and not pointer.args:
        if pointer.func.attr.value == "data_ptr":
            walk.evaluate(pointer.func.value)
            return Scalar("int", node)
    return walk.evaluate(node)


def _saved_tuple_compared(walk: Walk, node: cst.Comparison, values: list[Value]) -> None:
    """``saved < 0``: a tuple can be ordered only against tuples."""
    left, right = values
    for value, other, written in ((left, right, node.left), (right, left, node.comparisons[0].comparator)):
        if is_whole_tuple(value) and (_is_number(other) or is_tensor(other) is Tri.YES):
            tuple_used(walk, node, value, written, "in a comparison")


def evaluate_boolean(walk: Walk, node: cst.BooleanOperation) -> Value:
    """``a and b``, ``a or b``."""
    walk.repeated.effects += 1
    left = walk.use(node.left)
    guards = guards_of(walk, node.left, isinstance(node.operator, cst.And), node)
    before = walk.state
    walk.state = before.fork(*guards)
    right = walk.use(node.right)
    walk.state = join_states(before, [before.fork(), walk.state])
    if _is_flag(left) and _is_flag(right):
        return Scalar("bool", node)
    if isinstance(left, Constant):
        return right if bool(left.value) is isinstance(node.operator, cst.And) else left
    if isinstance(node.operator, cst.Or):  # ``x or ()``: None on the left is never the result
        left = without(left, NONE)
    return join(left, right)


def evaluate_conditional(walk: Walk, node: cst.IfExp) -> Value:
    """``a if test else b``."""
    walk.repeated.effects += 1
    walk.evaluate(node.test)
    outcome = decided(walk, node.test)
    if outcome is not None:
        return walk.use(node.body if outcome else node.orelse)
    before, asks_type = walk.state, asks_unknown_type(walk, node.test)
    values: list[Value] = []
    arms: list[State] = []
    for holds, arm in ((True, node.body), (False, node.orelse)):
        enter_arm(walk, before, node, node.test, holds)
        values.append(walk.use(arm))
        arms.append(walk.state)
    walk.state = join_states(before, arms)
    value = join(*values)
    return by_type(walk, value) if asks_type else value


def evaluate_yield(walk: Walk, node: cst.Yield) -> Value:
    """``yield``: its value is the caller's choice."""
    walk.is_generator = True
    many = isinstance(node.value, cst.From)
    written = node.value.item if isinstance(node.value, cst.From) else node.value
    walk.record(Yield, node, value=walk.use(written) if written is not None else NONE, many=many)
    return Opaque(node)


# Literals


def evaluate_string(walk: Walk, node: cst.BaseString) -> Value:
    """A string; its text matters only if it is a single literal."""
    text = literal_text(node)
    if text is not None:
        return constant(text)
    walk.evaluate_children(node)
    return Scalar("str", node)


def evaluate_integer(_: Walk, node: cst.Integer) -> Value:
    """An integer."""
    number = literal_integer(node)
    return Scalar("int", node) if number is None else constant(number)


def evaluate_float(_: Walk, node: cst.Float) -> Value:
    """A float."""
    return constant(float(node.value.replace("_", "")))


# ---------------------------------------------------------------------------------------------------------------------
# Pure helpers


def _may_repeat(operator: cst.CSTNode, times: Value) -> bool:
    """Whether ``tuple operator times`` may be the tuple repeated: a product with what may be a whole number."""
    product = isinstance(operator, _TIMES)
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
    """Whether the result of an operator is certainly no tuple or list: only ``+`` and ``*`` return these."""
    if isinstance(operator, _PLUS):
        return Tri.NO in (is_container(left), is_container(right))
    if isinstance(operator, _TIMES):
        if any(isinstance(side, Constant) and isinstance(side.value, float) for side in (left, right)):
            return True
        return is_container(left) is Tri.NO and is_container(right) is Tri.NO
    return True


def evaluate_ellipsis(*_: object) -> Value:
    """``...``."""
    return constant(...)


EVALUATORS: Evaluators = {
    cst.Name: evaluate_name,
    cst.Attribute: evaluate_attribute,
    cst.Subscript: evaluate_subscript,
    cst.Call: evaluate_call,
    cst.Tuple: evaluate_display,
    cst.List: evaluate_display,
    cst.Set: evaluate_display,
    cst.Dict: evaluate_dictionary,
    cst.BinaryOperation: evaluate_binary,
    cst.UnaryOperation: evaluate_unary,
    cst.Comparison: evaluate_comparison,
    cst.BooleanOperation: evaluate_boolean,
    cst.IfExp: evaluate_conditional,
    cst.NamedExpr: evaluate_walrus,
    cst.Lambda: evaluate_lambda,
    cst.Yield: evaluate_yield,
    cst.ListComp: evaluate_comprehension,
    cst.SetComp: evaluate_comprehension,
    cst.GeneratorExp: evaluate_comprehension,
    cst.DictComp: evaluate_dict_comprehension,
    cst.SimpleString: evaluate_string,
    cst.ConcatenatedString: evaluate_string,
    cst.FormattedString: evaluate_string,
    cst.Integer: evaluate_integer,
    cst.Float: evaluate_float,
    cst.Ellipsis: evaluate_ellipsis,
}
"""The transfer functions of expressions, by node type."""
