"""LibCST nodes made from ``ast`` nodes: the code of a function or class without its layout.

A function that is only followed for what it returns, and a class of another file that is only called, are never shown
and never fixed, so that they need no whitespace, no comments and no positions. To make their nodes from the file's
``ast``, which is there already, costs a fifth of what LibCST takes to parse the text. ``children`` of the nodes are the
same either way, but for a string that is written in several pieces: it becomes an f-string, for nobody knows its text.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any, TypeVar

import libcst as cst

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ctxlint.source.source import Source

    Node = TypeVar("Node", bound=ast.stmt)
    Made = TypeVar("Made", bound=cst.CSTNode)


class NotMade(Exception):
    """A piece of syntax that is left to LibCST's own parser."""


def function_from_ast(
    node: ast.FunctionDef | ast.AsyncFunctionDef, source: Source, places: dict[cst.CSTNode, ast.stmt] | None = None
) -> cst.FunctionDef:
    """A function of ``source`` as LibCST nodes without layout; ``places`` takes in what its statements are made from.

    Raises ``NotMade`` for what is too rare to be worth it, and RecursionError on very long chains.
    """
    return _made(_Maker(source, places).function, node)


def class_from_ast(node: ast.ClassDef, source: Source) -> cst.ClassDef:
    """As ``function_from_ast``, for a class."""
    return _made(_Maker(source).class_, node)


def _made(make: Callable[[Node], Made], node: Node) -> Made:
    try:
        return make(node)
    except (cst.CSTValidationError, ValueError) as error:  # a number without end, for one
        raise NotMade from error


_NO_SPACE = cst.SimpleWhitespace("")
_SPACE = cst.SimpleWhitespace(" ")
_LINE_END = cst.TrailingWhitespace()
"""What has no meaning is shared by all nodes."""


class _Maker:
    """Makes the nodes of one file."""

    def __init__(self, source: Source, places: dict[cst.CSTNode, ast.stmt] | None = None) -> None:
        self.source = source
        self.places = places if places is not None else {}
        self.words: dict[str, cst.Name] = {}

    # Expressions

    def expression(self, node: ast.expr) -> Any:  # the fields of LibCST nodes ask for many different types
        make = _EXPRESSIONS.get(type(node))
        if make is None:
            raise NotMade
        return make(self, node)

    def optional(self, node: ast.expr | None) -> Any:
        return None if node is None else self.expression(node)

    def name(self, node: ast.Name) -> cst.Name:
        return cst.Name(node.id)

    def attribute(self, node: ast.Attribute) -> cst.Attribute:
        return cst.Attribute(self.expression(node.value), self.word(node.attr))

    def word(self, text: str) -> cst.Name:
        """A name that is no expression: it has no value, and may stand at several places."""
        if text not in self.words:
            self.words[text] = cst.Name(text)
        return self.words[text]

    def constant(self, node: ast.Constant) -> cst.BaseExpression:
        value = node.value
        if isinstance(value, (str, bytes)):
            return self.string(node, value)
        if value is None or isinstance(value, bool):
            return cst.Name(str(value))
        if isinstance(value, int):
            return cst.Integer(str(value))
        if isinstance(value, float):
            return cst.Float(repr(value))
        if value is ...:
            return cst.Ellipsis()
        raise NotMade

    def string(self, node: ast.Constant, value: str | bytes) -> cst.BaseExpression:
        plain = repr(value)
        if node.lineno == node.end_lineno and (node.end_col_offset or 0) - node.col_offset == len(plain):
            return cst.SimpleString(plain)  # two quotes, and no room for more
        text = self.written(node)
        return cst.SimpleString(text) if _ONE_STRING.fullmatch(text) else cst.FormattedString(())

    def written(self, node: ast.expr) -> str:
        """The text of a node."""
        return self.text(_start(node), _end(node))

    def text(self, start: tuple[int, int], end: tuple[int, int]) -> str:
        """The text between two places; ``ast`` counts columns in bytes."""
        lines = self.source.lines(start[0], end[0]).encode()
        after = len(self.source.lines(end[0], end[0]).encode()) - end[1]
        return lines[start[1] : len(lines) - after].decode()

    def formatted(self, node: ast.JoinedStr) -> cst.FormattedString:
        return cst.FormattedString(self.pieces(node))

    def pieces(self, node: ast.JoinedStr) -> list[cst.BaseFormattedStringContent]:
        found: list[cst.BaseFormattedStringContent] = []
        for each in node.values:
            if isinstance(each, ast.FormattedValue):
                layout = each.format_spec
                specification = self.pieces(layout) if isinstance(layout, ast.JoinedStr) else None
                found.append(
                    cst.FormattedStringExpression(
                        self.expression(each.value),
                        format_spec=specification,
                        whitespace_before_expression=_NO_SPACE,
                        whitespace_after_expression=_NO_SPACE,
                    )
                )
            elif isinstance(each, ast.Constant):
                found.append(cst.FormattedStringText(str(each.value)))
        return found

    def call(self, node: ast.Call) -> cst.Call:
        return cst.Call(
            self.expression(node.func),
            self.arguments(node.args, node.keywords),
            whitespace_after_func=_NO_SPACE,
            whitespace_before_args=_NO_SPACE,
        )

    def arguments(self, given: list[ast.expr], keywords: list[ast.keyword]) -> list[cst.Arg]:
        if not keywords:
            return [self.argument(each) for each in given]
        ordered: Iterable[ast.expr | ast.keyword] = (*given, *keywords)
        if any(isinstance(each, ast.Starred) for each in given):  # it may stand after a keyword
            ordered = sorted(ordered, key=lambda each: (each.lineno, each.col_offset))
        return [self.argument(each) for each in ordered]

    def argument(self, node: ast.expr | ast.keyword) -> cst.Arg:
        if isinstance(node, ast.keyword):
            keyword = None if node.arg is None else self.word(node.arg)
            return self.passed(node.value, keyword, "**" if node.arg is None else "")
        if isinstance(node, ast.Starred):
            return self.passed(node.value, None, "*")
        return self.passed(node, None, "")

    def passed(self, value: ast.expr, keyword: cst.Name | None, star: Any) -> cst.Arg:
        return cst.Arg(
            self.expression(value),
            keyword,
            star=star,
            whitespace_after_star=_NO_SPACE,
            whitespace_after_arg=_NO_SPACE,
        )

    def subscript(self, node: ast.Subscript) -> cst.Subscript:
        return cst.Subscript(
            self.expression(node.value),
            [cst.SubscriptElement(self.index(each)) for each in self.indices(node.slice)],
            lbracket=_LEFT_BRACKET,
            rbracket=_RIGHT_BRACKET,
            whitespace_after_value=_NO_SPACE,
        )

    def indices(self, node: ast.expr) -> Sequence[ast.expr]:
        """The parts of a subscript; a tuple in parentheses is one part."""
        if not isinstance(node, ast.Tuple) or not node.elts or self.has_parentheses(node):
            return (node,)
        return node.elts

    def has_parentheses(self, node: ast.Tuple) -> bool:
        """Whether what opens before the first element is still open behind it."""
        first, *others = node.elts
        if _start(node) == _start(first):
            return False
        before = self.text(_start(node), _start(first))
        after = self.text(_end(first), _start(others[0]) if others else _end(node))
        if "#" in before or "#" in after:  # a comment may hold anything
            raise NotMade
        return before.count("(") > after.partition(",")[0].count(")")

    def index(self, node: ast.expr) -> cst.BaseSlice:
        if isinstance(node, ast.Slice):
            step = self.optional(node.step)
            return cst.Slice(self.optional(node.lower), self.optional(node.upper), step, first_colon=_COLON)
        return cst.Index(self.expression(node))

    def tuple_(self, node: ast.Tuple) -> cst.Tuple:
        return cst.Tuple(self.elements(node.elts), (), ()) if node.elts else cst.Tuple(())

    def list_(self, node: ast.List) -> cst.List:
        return cst.List(self.elements(node.elts), lbracket=_LEFT_BRACKET, rbracket=_RIGHT_BRACKET)

    def set_(self, node: ast.Set) -> cst.Set:
        return cst.Set(self.elements(node.elts))

    def elements(self, nodes: list[ast.expr]) -> list[cst.BaseElement]:
        return [
            cst.StarredElement(self.expression(each.value))
            if isinstance(each, ast.Starred)
            else cst.Element(self.expression(each))
            for each in nodes
        ]

    def dict_(self, node: ast.Dict) -> cst.Dict:
        return cst.Dict(
            [
                cst.StarredDictElement(self.expression(value))
                if key is None
                else cst.DictElement(self.expression(key), self.expression(value))
                for key, value in zip(node.keys, node.values)
            ]
        )

    def binary(self, node: ast.BinOp) -> cst.BinaryOperation:
        return cst.BinaryOperation(self.expression(node.left), _OPERATORS[type(node.op)], self.expression(node.right))

    def unary(self, node: ast.UnaryOp) -> cst.UnaryOperation:
        return cst.UnaryOperation(_UNARY[type(node.op)], self.expression(node.operand))

    def boolean(self, node: ast.BoolOp) -> cst.BooleanOperation:
        operator = _BOOLEAN[type(node.op)]
        result: cst.BooleanOperation = self.expression(node.values[0])
        for value in node.values[1:]:
            result = cst.BooleanOperation(result, operator, self.expression(value))
        return result

    def comparison(self, node: ast.Compare) -> cst.Comparison:
        parts = zip(node.ops, node.comparators)
        return cst.Comparison(
            self.expression(node.left),
            [cst.ComparisonTarget(_COMPARISONS[type(operator)], self.expression(value)) for operator, value in parts],
        )

    def conditional(self, node: ast.IfExp) -> cst.IfExp:
        return cst.IfExp(
            self.expression(node.test),
            self.expression(node.body),
            self.expression(node.orelse),
            whitespace_before_if=_SPACE,
            whitespace_after_if=_SPACE,
            whitespace_before_else=_SPACE,
            whitespace_after_else=_SPACE,
        )

    def walrus(self, node: ast.NamedExpr) -> cst.NamedExpr:
        return cst.NamedExpr(self.expression(node.target), self.expression(node.value))

    def lambda_(self, node: ast.Lambda) -> cst.Lambda:
        return cst.Lambda(self.parameters(node.args), self.expression(node.body))

    def await_(self, node: ast.Await) -> cst.Await:
        return cst.Await(self.expression(node.value))

    def yield_(self, node: ast.Yield) -> cst.Yield:
        return cst.Yield(self.optional(node.value))

    def yield_from(self, node: ast.YieldFrom) -> cst.Yield:
        return cst.Yield(cst.From(self.expression(node.value)))

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> cst.BaseSimpleComp:
        return _COMPREHENSIONS[type(node)](self.expression(node.elt), self.clauses(node.generators))

    def dict_comprehension(self, node: ast.DictComp) -> cst.DictComp:
        return cst.DictComp(self.expression(node.key), self.expression(node.value), self.clauses(node.generators))

    def clauses(self, generators: list[ast.comprehension]) -> Any:
        inner: cst.CompFor | None = None
        for each in reversed(generators):
            inner = cst.CompFor(
                self.expression(each.target),
                self.expression(each.iter),
                [cst.CompIf(self.expression(test)) for test in each.ifs],
                inner,
                cst.Asynchronous() if each.is_async else None,
            )
        return inner

    # Functions and classes

    def parameters(self, node: ast.arguments) -> cst.Parameters:
        positional = [*node.posonlyargs, *node.args]
        bare = len(positional) - len(node.defaults)
        made = [
            self.parameter(each, node.defaults[at - bare] if at >= bare else None) for at, each in enumerate(positional)
        ]
        star: cst.Param | cst.ParamStar | cst.MaybeSentinel = cst.MaybeSentinel.DEFAULT
        if node.vararg is not None:
            star = self.parameter(node.vararg)
        elif node.kwonlyargs:
            star = cst.ParamStar()
        split = len(node.posonlyargs)
        return cst.Parameters(
            made[split:],
            star,
            [self.parameter(each, default) for each, default in zip(node.kwonlyargs, node.kw_defaults)],
            self.parameter(node.kwarg) if node.kwarg is not None else None,
            made[:split],
            cst.ParamSlash() if split else cst.MaybeSentinel.DEFAULT,
        )

    def parameter(self, node: ast.arg, default: ast.expr | None = None) -> cst.Param:
        return cst.Param(
            cst.Name(node.arg),
            self.annotation(node.annotation),
            default=self.optional(default),
            whitespace_after_star=_NO_SPACE,
            whitespace_after_param=_NO_SPACE,
        )

    def annotation(self, node: ast.expr | None) -> cst.Annotation | None:
        return None if node is None else cst.Annotation(self.expression(node), whitespace_after_indicator=_SPACE)

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> cst.FunctionDef:
        if getattr(node, "type_params", None):
            raise NotMade
        return cst.FunctionDef(
            cst.Name(node.name),
            self.parameters(node.args),
            self.block(node.body),
            [self.decorator(each) for each in node.decorator_list],
            self.annotation(node.returns),
            cst.Asynchronous() if isinstance(node, ast.AsyncFunctionDef) else None,
        )

    def class_(self, node: ast.ClassDef) -> cst.ClassDef:
        if getattr(node, "type_params", None):
            raise NotMade
        return cst.ClassDef(
            cst.Name(node.name),
            self.block(node.body),
            [self.argument(each) for each in node.bases],
            [self.argument(each) for each in node.keywords],
            [self.decorator(each) for each in node.decorator_list],
        )

    def decorator(self, node: ast.expr) -> cst.Decorator:
        return cst.Decorator(self.expression(node), trailing_whitespace=_LINE_END)

    # Statements

    def block(self, body: list[ast.stmt]) -> cst.IndentedBlock:
        return cst.IndentedBlock([self.statement(each) for each in body], _LINE_END)

    def statement(self, node: ast.stmt) -> Any:
        kind = type(node)
        small, compound = _SMALL.get(kind), _COMPOUND.get(kind)
        if small is not None:
            made: Any = cst.SimpleStatementLine([small(self, node)], trailing_whitespace=_LINE_END)
        elif compound is not None:
            made = compound(self, node)
        else:
            raise NotMade
        self.places[made] = node
        return made

    def assign(self, node: ast.Assign) -> cst.Assign:
        return cst.Assign(
            [
                cst.AssignTarget(self.expression(each), whitespace_before_equal=_SPACE, whitespace_after_equal=_SPACE)
                for each in node.targets
            ],
            self.expression(node.value),
        )

    def augmented(self, node: ast.AugAssign) -> cst.AugAssign:
        return cst.AugAssign(self.expression(node.target), _AUGMENTED[type(node.op)], self.expression(node.value))

    def annotated(self, node: ast.AnnAssign) -> cst.AnnAssign:
        annotation = cst.Annotation(self.expression(node.annotation))
        return cst.AnnAssign(self.expression(node.target), annotation, self.optional(node.value))

    def raise_(self, node: ast.Raise) -> cst.Raise:
        cause = cst.From(self.expression(node.cause)) if node.cause is not None else None
        return cst.Raise(self.optional(node.exc), cause)

    def delete(self, node: ast.Delete) -> cst.Del:
        targets = node.targets
        return cst.Del(self.expression(targets[0]) if len(targets) == 1 else cst.Tuple(self.elements(targets), (), ()))

    def import_(self, node: ast.Import) -> cst.Import:
        return cst.Import([self.alias(each) for each in node.names])

    def import_from(self, node: ast.ImportFrom) -> cst.ImportFrom:
        star = [each.name for each in node.names] == ["*"]
        return cst.ImportFrom(
            _dotted(node.module) if node.module is not None else None,
            cst.ImportStar() if star else [self.alias(each) for each in node.names],
            [cst.Dot()] * node.level,
        )

    def alias(self, node: ast.alias) -> cst.ImportAlias:
        return cst.ImportAlias(_dotted(node.name), _as_name(cst.Name(node.asname)) if node.asname else None)

    def if_(self, node: ast.If) -> cst.If:
        rest = node.orelse
        orelse: cst.If | cst.Else | None = None
        if len(rest) == 1 and isinstance(rest[0], ast.If) and rest[0].col_offset == node.col_offset:
            orelse = self.if_(rest[0])  # an ``elif``
        elif rest:
            orelse = self.otherwise(rest)
        return cst.If(
            self.expression(node.test),
            self.block(node.body),
            orelse,
            whitespace_before_test=_SPACE,
            whitespace_after_test=_NO_SPACE,
        )

    def otherwise(self, body: list[ast.stmt]) -> cst.Else | None:
        return cst.Else(self.block(body)) if body else None

    def for_(self, node: ast.For | ast.AsyncFor) -> cst.For:
        return cst.For(
            self.expression(node.target),
            self.expression(node.iter),
            self.block(node.body),
            self.otherwise(node.orelse),
            cst.Asynchronous() if isinstance(node, ast.AsyncFor) else None,
        )

    def while_(self, node: ast.While) -> cst.While:
        return cst.While(self.expression(node.test), self.block(node.body), self.otherwise(node.orelse))

    def with_(self, node: ast.With | ast.AsyncWith) -> cst.With:
        return cst.With(
            [
                cst.WithItem(
                    self.expression(each.context_expr),
                    _as_name(self.expression(each.optional_vars)) if each.optional_vars is not None else None,
                )
                for each in node.items
            ],
            self.block(node.body),
            cst.Asynchronous() if isinstance(node, ast.AsyncWith) else None,
        )

    def try_(self, node: ast.Try) -> cst.Try:
        return cst.Try(
            self.block(node.body),
            [self.handler(each) for each in node.handlers],
            self.otherwise(node.orelse),
            cst.Finally(self.block(node.finalbody)) if node.finalbody else None,
        )

    def handler(self, node: ast.ExceptHandler) -> cst.ExceptHandler:
        return cst.ExceptHandler(
            self.block(node.body), self.optional(node.type), _as_name(cst.Name(node.name)) if node.name else None
        )


def _start(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: ast.expr) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or 0


def _dotted(path: str) -> Any:
    first, *rest = path.split(".")
    node: cst.Name | cst.Attribute = cst.Name(first)
    for part in rest:
        node = cst.Attribute(node, cst.Name(part))
    return node


def _as_name(node: Any) -> cst.AsName:
    return cst.AsName(node, _SPACE, _SPACE)


def _names(names: list[str]) -> list[cst.NameItem]:
    return [cst.NameItem(cst.Name(each)) for each in names]


_ONE_STRING = re.compile(
    r"""[a-zA-Z]{0,2}
    (?: "{3} [^"\\]*(?:(?:\\[\s\S]|"(?!""))[^"\\]*)* "{3} | '{3} [^'\\]*(?:(?:\\[\s\S]|'(?!''))[^'\\]*)* '{3}
      | "(?!"") [^"\\]*(?:\\[\s\S][^"\\]*)* " | '(?!'') [^'\\]*(?:\\[\s\S][^'\\]*)* ' )""",
    re.VERBOSE,
)
"""One string that Python has read already, be it on one line or on several."""

_LEFT_BRACKET, _RIGHT_BRACKET, _COLON = cst.LeftSquareBracket(), cst.RightSquareBracket(), cst.Colon()

_OPERATORS: dict[type[ast.operator], cst.BaseBinaryOp] = {
    ast.Add: cst.Add(),
    ast.Sub: cst.Subtract(),
    ast.Mult: cst.Multiply(),
    ast.Div: cst.Divide(),
    ast.FloorDiv: cst.FloorDivide(),
    ast.Mod: cst.Modulo(),
    ast.Pow: cst.Power(),
    ast.MatMult: cst.MatrixMultiply(),
    ast.BitAnd: cst.BitAnd(),
    ast.BitOr: cst.BitOr(),
    ast.BitXor: cst.BitXor(),
    ast.LShift: cst.LeftShift(),
    ast.RShift: cst.RightShift(),
}
_AUGMENTED: dict[type[ast.operator], cst.BaseAugOp] = {
    ast.Add: cst.AddAssign(),
    ast.Sub: cst.SubtractAssign(),
    ast.Mult: cst.MultiplyAssign(),
    ast.Div: cst.DivideAssign(),
    ast.FloorDiv: cst.FloorDivideAssign(),
    ast.Mod: cst.ModuloAssign(),
    ast.Pow: cst.PowerAssign(),
    ast.MatMult: cst.MatrixMultiplyAssign(),
    ast.BitAnd: cst.BitAndAssign(),
    ast.BitOr: cst.BitOrAssign(),
    ast.BitXor: cst.BitXorAssign(),
    ast.LShift: cst.LeftShiftAssign(),
    ast.RShift: cst.RightShiftAssign(),
}
_UNARY: dict[type[ast.unaryop], cst.BaseUnaryOp] = {
    ast.Not: cst.Not(),
    ast.USub: cst.Minus(),
    ast.UAdd: cst.Plus(),
    ast.Invert: cst.BitInvert(),
}
_BOOLEAN: dict[type[ast.boolop], cst.BaseBooleanOp] = {ast.And: cst.And(), ast.Or: cst.Or()}
_COMPARISONS: dict[type[ast.cmpop], cst.BaseCompOp] = {
    ast.Eq: cst.Equal(),
    ast.NotEq: cst.NotEqual(),
    ast.Lt: cst.LessThan(),
    ast.LtE: cst.LessThanEqual(),
    ast.Gt: cst.GreaterThan(),
    ast.GtE: cst.GreaterThanEqual(),
    ast.Is: cst.Is(),
    ast.IsNot: cst.IsNot(),
    ast.In: cst.In(),
    ast.NotIn: cst.NotIn(),
}
_COMPREHENSIONS: dict[type[ast.expr], Callable[..., cst.BaseSimpleComp]] = {
    ast.ListComp: cst.ListComp,
    ast.SetComp: cst.SetComp,
    ast.GeneratorExp: cst.GeneratorExp,
}

_EXPRESSIONS: dict[type[ast.expr], Callable[..., cst.BaseExpression]] = {
    ast.Name: _Maker.name,
    ast.Attribute: _Maker.attribute,
    ast.Constant: _Maker.constant,
    ast.JoinedStr: _Maker.formatted,
    ast.Call: _Maker.call,
    ast.Subscript: _Maker.subscript,
    ast.Tuple: _Maker.tuple_,
    ast.List: _Maker.list_,
    ast.Set: _Maker.set_,
    ast.Dict: _Maker.dict_,
    ast.BinOp: _Maker.binary,
    ast.UnaryOp: _Maker.unary,
    ast.BoolOp: _Maker.boolean,
    ast.Compare: _Maker.comparison,
    ast.IfExp: _Maker.conditional,
    ast.NamedExpr: _Maker.walrus,
    ast.Lambda: _Maker.lambda_,
    ast.Await: _Maker.await_,
    ast.Yield: _Maker.yield_,
    ast.YieldFrom: _Maker.yield_from,
    ast.ListComp: _Maker.comprehension,
    ast.SetComp: _Maker.comprehension,
    ast.GeneratorExp: _Maker.comprehension,
    ast.DictComp: _Maker.dict_comprehension,
}
_SMALL: dict[type[ast.stmt], Callable[..., cst.BaseSmallStatement]] = {
    ast.Expr: lambda maker, node: cst.Expr(maker.expression(node.value)),
    ast.Return: lambda maker, node: cst.Return(maker.optional(node.value)),
    ast.Assert: lambda maker, node: cst.Assert(maker.expression(node.test), maker.optional(node.msg)),
    ast.Pass: lambda _maker, _node: cst.Pass(),
    ast.Break: lambda _maker, _node: cst.Break(),
    ast.Continue: lambda _maker, _node: cst.Continue(),
    ast.Global: lambda _maker, node: cst.Global(_names(node.names)),
    ast.Nonlocal: lambda _maker, node: cst.Nonlocal(_names(node.names)),
    ast.Assign: _Maker.assign,
    ast.AugAssign: _Maker.augmented,
    ast.AnnAssign: _Maker.annotated,
    ast.Raise: _Maker.raise_,
    ast.Delete: _Maker.delete,
    ast.Import: _Maker.import_,
    ast.ImportFrom: _Maker.import_from,
}
_COMPOUND: dict[type[ast.stmt], Callable[..., cst.BaseStatement]] = {
    ast.If: _Maker.if_,
    ast.For: _Maker.for_,
    ast.AsyncFor: _Maker.for_,
    ast.While: _Maker.while_,
    ast.With: _Maker.with_,
    ast.AsyncWith: _Maker.with_,
    ast.Try: _Maker.try_,
    ast.FunctionDef: _Maker.function,
    ast.AsyncFunctionDef: _Maker.function,
    ast.ClassDef: _Maker.class_,
}
