"""Runs methods of a Function for one element of each tensor, with numbers, as far as all that they do is known.

Only straight-line code of operations that work element by element, without functions of the project.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import libcst as cst

from ctxlint.effort import spend
from ctxlint.model.syntax import dotted, is_name, keywords_of, signed_integer, single_index, words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ctxlint.model.interpreter.method import Method


class UnknownValue(Exception):
    """Some code does more than is known here, or is not defined for these numbers."""


class OneElement:
    """An element of a tensor; two names may have the same one."""

    def __init__(self, number: float) -> None:
        self.number = number


Held: TypeAlias = "OneElement | float | tuple[Held, ...] | None"
"""What a name stands for: an element of a tensor, a number, or several such."""


class OnCtx:
    """What ctx has."""

    def __init__(self) -> None:
        self.saved: tuple[Held, ...] | None = None
        self.attributes: dict[str, Held] = {}


def run(method: Method, given: Mapping[str, Held], context: OnCtx) -> Held:
    """What a method returns.

    Raises:
        UnknownValue: That is not known.
    """
    return _Run(method, dict(given), context).result()


class _Run:
    def __init__(self, method: Method, names: dict[str, Held], context: OnCtx) -> None:
        self.method = method
        self.names = names
        self.context = context

    def result(self) -> Held:
        """What the method returns."""
        for statement in _statements(self.method.node.body):
            if isinstance(statement, cst.Return):
                return self.value(statement.value) if statement.value is not None else None
            self.step(statement)
        return None

    # Statements

    def step(self, statement: cst.CSTNode) -> None:
        if isinstance(statement, cst.Assign):
            value = self.value(statement.value)
            for each in statement.targets:
                self.bind(each.target, value)
        elif isinstance(statement, cst.AugAssign):
            self.augment(statement)
        elif isinstance(statement, cst.Expr):
            if not isinstance(statement.value, cst.BaseString):
                self.value(statement.value)
        elif isinstance(statement, cst.If) and self.asks_for_need(statement.test):
            for inner in _statements(statement.body):
                self.step(inner)
        elif not isinstance(statement, cst.Pass):
            raise UnknownValue

    def asks_for_need(self, test: cst.BaseExpression) -> bool:
        """Whether it is ``ctx.needs_input_grad[0]``, which is taken to be true."""
        flags = test.value if isinstance(test, cst.Subscript) else None
        return isinstance(flags, cst.Attribute) and self.method.is_on_ctx(flags) and flags.attr.value == _NEEDS

    def bind(self, target: cst.BaseExpression, value: Held) -> None:
        if isinstance(target, cst.Name):
            self.names[target.value] = value
        elif isinstance(target, cst.Attribute) and self.method.is_on_ctx(target):
            self.context.attributes[target.attr.value] = value
        elif isinstance(target, (cst.Tuple, cst.List)) and isinstance(value, tuple):
            if len(target.elements) != len(value) or any(isinstance(e, cst.StarredElement) for e in target.elements):
                raise UnknownValue
            for each, one in zip(target.elements, value):
                self.bind(each.value, one)
        elif isinstance(target, cst.Subscript):  # x[x < 0] = 0
            index, cell, number = single_index(target), self.value(target.value), _number(value)
            chosen = self.value(index) if index is not None else None
            if (
                not isinstance(cell, OneElement)
                or not isinstance(chosen, OneElement)
                or not isinstance(index, cst.Comparison)
            ):
                raise UnknownValue
            cell.number = number if chosen.number else cell.number
        else:
            raise UnknownValue

    def augment(self, statement: cst.AugAssign) -> None:
        operation = _BINARY.get(type(statement.operator).__name__.replace("Assign", ""))
        held, operand = self.value(statement.target), self.value(statement.value)
        if operation is None or not isinstance(statement.target, cst.Name):
            raise UnknownValue
        result = _safely(operation, _number(held), _number(operand))
        if isinstance(held, OneElement):
            held.number = result
        elif isinstance(operand, OneElement):
            raise UnknownValue
        else:
            self.names[statement.target.value] = result

    # Expressions

    def value(self, node: cst.BaseExpression) -> Held:
        spend()
        if isinstance(node, cst.Name):
            return self.named(node.value)
        if isinstance(node, (cst.Integer, cst.Float)):
            return float(node.evaluated_value)
        if isinstance(node, (cst.Tuple, cst.List)):
            if any(isinstance(each, cst.StarredElement) for each in node.elements):
                raise UnknownValue
            return tuple(self.value(each.value) for each in node.elements)
        if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, (cst.Minus, cst.Plus)):
            return self.computed(lambda one: -one if isinstance(node.operator, cst.Minus) else one, node.expression)
        if isinstance(node, cst.BinaryOperation):
            operation = _BINARY.get(type(node.operator).__name__)
            return self.computed(operation, node.left, node.right)
        if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
            operation = _COMPARING.get(type(node.comparisons[0].operator).__name__)
            return self.computed(operation, node.left, node.comparisons[0].comparator)
        if isinstance(node, cst.Attribute):
            return self.attribute(node)
        if isinstance(node, cst.Subscript):
            whole, index = self.value(node.value), signed_integer(single_index(node))
            if not isinstance(whole, tuple) or index is None or not -len(whole) <= index < len(whole):
                raise UnknownValue
            return whole[index]
        return self.call(node) if isinstance(node, cst.Call) else self.unknown()

    def unknown(self) -> Held:
        raise UnknownValue

    def named(self, name: str) -> Held:
        if name in self.names:
            return self.names[name]
        return None if name == "None" else self.unknown()

    def computed(self, operation: Callable[..., float] | None, *operands: cst.BaseExpression) -> Held:
        values = [self.value(each) for each in operands]
        if operation is None:
            raise UnknownValue
        result = _safely(operation, *map(_number, values))
        return OneElement(result) if any(isinstance(each, OneElement) for each in values) else result

    def attribute(self, node: cst.Attribute) -> Held:
        name = node.attr.value
        if not self.method.is_on_ctx(node):
            if self.meaning(node) in _CONSTANTS:
                return _CONSTANTS[self.meaning(node)]
            value = self.value(node.value)
            return value if isinstance(value, OneElement) and name == "data" else self.unknown()
        if name == "saved_tensors":
            return self.context.saved if self.context.saved is not None else self.unknown()
        return self.context.attributes[name] if name in self.context.attributes else self.unknown()

    def call(self, node: cst.Call) -> Held:
        func = node.func
        if not isinstance(func, cst.Attribute) or any(each.star for each in node.args):
            raise UnknownValue
        name, plain = func.attr.value, [each.value for each in node.args if each.keyword is None]
        if is_name(func.value, self.method.ctx_name) and self.method.ctx is not None:
            if name == "save_for_backward" and len(plain) == len(node.args):
                self.context.saved = tuple(self.value(each) for each in plain)
            elif name != "mark_dirty":
                raise UnknownValue
            return None
        package, _, function = self.meaning(func).rpartition(".")
        if package in ("torch", "torch.nn.functional", "torch.special", "math"):
            return self.operation(function, plain, node, of_math=package == "math")
        return self.operation(name, [func.value, *plain], node)

    def meaning(self, node: cst.BaseExpression) -> str:
        """The full dotted name of something in a module; empty if it is none."""
        path = dotted(node)
        local = path is None or path.partition(".")[0] in self.names
        return "" if local or path is None else self.method.meaning(path)

    def operation(
        self, name: str, plain: Sequence[cst.BaseExpression], node: cst.Call, *, of_math: bool = False
    ) -> Held:
        """A function of torch, or a method; one that ends with ``_`` changes its first argument."""
        keywords = {key: each for key, each in keywords_of(node).items() if key not in _IRRELEVANT}
        writes = name.endswith("_") and not of_math
        known = _FUNCTIONS.get(name.removesuffix("_") if writes else name)
        if name in _CONVERTING and plain and not writes:
            if any(word in _INTEGRAL for each in (*plain[1:], *keywords_of(node).values()) for word in words_of(each)):
                raise UnknownValue
            first = self.value(plain[0])
            return OneElement(_number(first)) if name in _COPYING else first
        if known is None:
            raise UnknownValue
        function, names = known
        given: dict[str, Held] = {}
        if len(plain) > len(names) or any(key not in names for key in keywords):
            raise UnknownValue
        for key, each in [*zip(names, plain), *keywords.items()]:
            given[key] = self.value(each)
        held = [given.get(key) for key in names]
        result = _safely(function, *(each if each is None else _number(each) for each in held))
        first = given.get(names[0])
        if writes and isinstance(first, OneElement):
            first.number = result
            return first
        if of_math and any(isinstance(each, OneElement) for each in given.values()):
            raise UnknownValue
        return result if of_math else OneElement(result)


_NEEDS = "needs_input_grad"


def _statements(body: cst.BaseSuite) -> Iterator[cst.CSTNode]:
    for line in body.body if isinstance(body, cst.IndentedBlock) else ():
        for statement in line.body if isinstance(line, cst.SimpleStatementLine) else [line]:
            spend()
            yield statement


def _number(value: Held) -> float:
    if isinstance(value, OneElement):
        return value.number
    if isinstance(value, (int, float)):
        return float(value)
    raise UnknownValue


def _safely(operation: Callable[..., float], *operands: float | None) -> float:
    try:
        result = operation(*operands)
    except (ValueError, OverflowError, ZeroDivisionError, TypeError) as error:
        raise UnknownValue from error
    if isinstance(result, complex):
        raise UnknownValue
    return float(result)


_BINARY: dict[str, Callable[[float, float], float]] = {
    "Add": lambda a, b: a + b,
    "Subtract": lambda a, b: a - b,
    "Multiply": lambda a, b: a * b,
    "Divide": lambda a, b: a / b,
    "Power": lambda a, b: a**b,
}
_COMPARING: dict[str, Callable[[float, float], float]] = {
    "LessThan": lambda a, b: a < b,
    "LessThanEqual": lambda a, b: a <= b,
    "GreaterThan": lambda a, b: a > b,
    "GreaterThanEqual": lambda a, b: a >= b,
}


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def _clamp(x: float, low: float | None, high: float | None) -> float:
    x = x if low is None else max(x, low)
    return x if high is None else min(x, high)


_OF_ONE: dict[str, Callable[[float], float]] = {
    "abs": abs,
    "erf": math.erf,
    "exp": math.exp,
    "expm1": math.expm1,
    "log": math.log,
    "log1p": math.log1p,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "tanh": math.tanh,
    "sinh": math.sinh,
    "cosh": math.cosh,
    "atan": math.atan,
    "sqrt": math.sqrt,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "square": lambda x: x * x,
    "reciprocal": lambda x: 1 / x,
    "neg": lambda x: -x,
    "relu": lambda x: max(x, 0.0),
    "sigmoid": _sigmoid,
    "silu": lambda x: x * _sigmoid(x),
    "ones_like": lambda _x: 1.0,
    "zeros_like": lambda _x: 0.0,
}
_FUNCTIONS: dict[str, tuple[Callable[..., float], tuple[str, ...]]] = {
    **{name: (function, ("input",)) for name, function in _OF_ONE.items()},
    "pow": (_BINARY["Power"], ("input", "exponent")),
    "hypot": (math.hypot, ("input", "other")),
    "atan2": (math.atan2, ("input", "other")),
    "arctan2": (math.atan2, ("input", "other")),
    "maximum": (max, ("input", "other")),
    "minimum": (min, ("input", "other")),
    "mul": (_BINARY["Multiply"], ("input", "other")),
    "div": (_BINARY["Divide"], ("input", "other")),
    "add": (_BINARY["Add"], ("input", "other")),
    "sub": (_BINARY["Subtract"], ("input", "other")),
    "clamp": (_clamp, ("input", "min", "max")),
    "where": (lambda condition, x, y: x if condition else y, ("condition", "input", "other")),
}
_CONSTANTS: dict[str, float] = {
    f"{module}.{name}": getattr(math, name) for module in ("math", "torch") for name in ("pi", "e")
}
_COPYING = frozenset(["clone"])
_CONVERTING = _COPYING | frozenset(["contiguous", "detach", "double", "float", "to"])
_INTEGRAL = frozenset(["bool", "int", "int8", "int16", "int32", "int64", "long", "short", "uint8"])
_IRRELEVANT = frozenset(["dtype", "device", "memory_format"])
