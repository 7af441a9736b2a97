"""LibCST nodes created from ``ast`` nodes: the code of a statement without its layout.

The file's ``ast`` exists already, and most code is never shown and never fixed, so it needs no whitespace, no comments
and no positions. The fields that these nodes have are the same as LibCST's; ``bare_nodes`` describes how they get the
rest.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, TypeVar

import libcst as cst

from ctxlint.model.index.bare_nodes import bare
from ctxlint.named_tuples import NamedTuple
from ctxlint.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ctxlint.source.source import Source

    Node = TypeVar("Node", bound=ast.stmt)
    Made = TypeVar("Made", bound=cst.CSTNode)
    Operator = TypeVar("Operator", bound=cst.CSTNode)


class NotMade(Exception):
    """Syntax that is left to LibCST's own parser."""


def function_from_ast(
    node: ast.FunctionDef | ast.AsyncFunctionDef, source: Source, places: dict[int, ast.AST] | None = None
) -> cst.FunctionDef:
    """A function of ``source`` as LibCST nodes without layout; ``places`` collects their origins by identity.

    Raises:
        NotMade: The syntax is too rare to be worth it.
        RecursionError: A chain is very long.
    """
    return _made(_Maker(source, places).function, node)


def class_from_ast(node: ast.ClassDef, source: Source) -> cst.ClassDef:
    """As ``function_from_ast``, for a class."""
    return _made(_Maker(source).class_, node)


class MadePiece(NamedTuple):
    """The nodes of a method, or of a statement of one, their ``ast`` origins by identity, and the pieces in it."""

    node: Any
    places: dict[int, ast.AST]
    parts: Pieces


Pieces = dict[tuple[int, str], MadePiece]
"""Methods of a class, or statements of a method, by their lines: the number of the first one, and their text.

The lines of a method are those between the statements around it.
"""


def statement_from_ast(
    node: ast.stmt, source: Source, places: dict[int, ast.AST] | None = None, methods: Pieces | None = None
) -> cst.CSTNode:
    """Like ``function_from_ast``, for any compound statement.

    ``methods`` are those of an earlier version of a class. Their nodes, or those of statements in them, are used again
    where nothing has changed; they are replaced by its own.
    """
    text = source.lines(node.lineno, node.end_lineno or node.lineno)
    if type(node) not in _COMPOUND or "\f" in text or not (text.isascii() or _is_utf8(text)):
        raise NotMade
    maker = _Maker(source, places)
    if methods is not None and isinstance(node, ast.ClassDef) and "\r" not in text:
        maker.earlier = {lines: part for each in methods.values() for lines, part in each.parts.items()} | methods
        maker.parts = methods
        maker.lines = {id(each): (first, source.lines(first, last)) for each, first, last in _method_lines(node)}
        methods.clear()
    made: cst.CSTNode = _made(maker.statement, node)
    return made


def _method_lines(node: ast.ClassDef) -> Iterator[tuple[ast.stmt, int, int]]:
    """The methods in the body of a class, with the lines between the statements around them, comments included."""
    last = node.lineno - 1
    for each, after in zip_longest(node.body, node.body[1:]):
        first, last = last + 1, each.end_lineno or each.lineno
        until = last if after is None else min(x.lineno for x in (after, *getattr(after, "decorator_list", ()))) - 1
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield each, first, until


def _statement_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[ast.stmt, int, int]]:
    """The statements in the body of a function that share no line with another, with their lines."""
    before = function.lineno
    for each, after in zip_longest(function.body, function.body[1:]):
        first = min(x.lineno for x in (each, *getattr(each, "decorator_list", ())))
        last = each.end_lineno or each.lineno
        if before < first and (after is None or last < after.lineno):
            yield each, first, last
        before = last


def _is_utf8(text: str) -> bool:
    """Whether LibCST accepts a text at all."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _made(make: Callable[[Node], Made], node: Node) -> Made:
    try:
        return make(node)
    except (cst.ParserSyntaxError, cst.CSTValidationError, ValueError) as error:
        raise NotMade from error


class _Maker:
    """Creates the nodes of one file."""

    def __init__(self, source: Source, places: dict[int, ast.AST] | None = None) -> None:
        self.source = source
        self.places = places if places is not None else {}
        self.ascii = source.text.isascii()
        self.in_string = False
        """Whether the current expression is in an f-string; Python 3.11 has no positions there."""
        self.lines: dict[int, tuple[int, str]] = {}
        """The lines of statements whose nodes may be those of an earlier version, by the identity of the statement."""
        self.earlier: Pieces = {}
        self.parts: Pieces = {}

    # Expressions

    def expression(self, node: ast.expr) -> Any:  # the fields of LibCST nodes require many different types
        make = _EXPRESSIONS.get(type(node))
        if make is None:
            raise NotMade
        return self.noted(make(self, node), node)

    def noted(self, made: Any, node: ast.AST) -> Any:
        """Record the origin of a node; returns the node."""
        if not self.in_string:
            self.places[id(made)] = node
        return made

    def optional(self, node: ast.expr | None) -> Any:
        return None if node is None else self.expression(node)

    def name(self, node: ast.Name) -> cst.Name:
        return bare.Name(node.id)

    def attribute(self, node: ast.Attribute) -> cst.Attribute:
        return bare.Attribute(self.expression(node.value), self.noted(bare.Name(node.attr), node))

    def constant(self, node: ast.Constant) -> cst.BaseExpression:
        value = node.value
        if isinstance(value, (str, bytes)):
            return self.string(node, value)
        if value is None or isinstance(value, bool):
            return bare.Name(str(value))
        if isinstance(value, int):
            return bare.Integer(str(value) if self.in_string else self.written(node))
        if isinstance(value, float) and value != _INFINITE:
            return bare.Float(repr(value) if self.in_string else self.written(node))
        if value is ...:
            return bare.Ellipsis()
        raise NotMade

    def string(self, node: ast.Constant, value: str | bytes) -> cst.BaseExpression:
        if self.in_string:
            return bare.SimpleString(repr(value))
        text = self.written(node)
        return bare.SimpleString(text) if _ONE_STRING.fullmatch(text) else self.several_strings(text)

    def several_strings(self, text: str) -> cst.BaseExpression:
        return cst.parse_expression(f"({text})")

    def written(self, node: ast.expr) -> str:
        """The text of a node."""
        return self.text(_start(node), _end(node))

    def text(self, start: tuple[int, int], end: tuple[int, int]) -> str:
        """The text between two positions; ``ast`` counts columns in bytes."""
        if self.ascii:
            starts = self.source.line_starts
            return self.source.text[starts[start[0] - 1] + start[1] : starts[end[0] - 1] + end[1]]
        lines = self.source.lines(start[0], end[0]).encode()
        after = len(self.source.lines(end[0], end[0]).encode()) - end[1]
        return lines[start[1] : len(lines) - after].decode()

    def formatted(self, node: ast.JoinedStr) -> cst.BaseExpression:
        text = "" if self.in_string else self.written(node)
        if self.in_string or _SELF_DOCUMENTING.search(text):
            raise NotMade
        if not _ONE_STRING.fullmatch(text):
            return self.several_strings(text)
        self.in_string = True
        pieces = self.pieces(node)
        self.in_string = False
        return bare.FormattedString(pieces, 'f"', '"')

    def pieces(self, node: ast.JoinedStr) -> tuple[cst.BaseFormattedStringContent, ...]:
        found: list[cst.BaseFormattedStringContent] = []
        for each in node.values:
            if isinstance(each, ast.FormattedValue):
                layout = each.format_spec
                specification = self.pieces(layout) if isinstance(layout, ast.JoinedStr) else None
                found.append(bare.FormattedStringExpression(self.expression(each.value), format_spec=specification))
            elif isinstance(each, ast.Constant):
                found.append(bare.FormattedStringText(str(each.value)))
        return tuple(found)

    def call(self, node: ast.Call) -> cst.Call:
        return bare.Call(self.expression(node.func), self.arguments(node.args, node.keywords))

    def arguments(self, positional: list[ast.expr], keywords: list[ast.keyword]) -> list[cst.Arg]:
        if not keywords:
            return [self.argument(each) for each in positional]
        ordered: Iterable[ast.expr | ast.keyword] = (*positional, *keywords)
        if any(isinstance(each, ast.Starred) for each in positional):  # it may follow a keyword
            ordered = sorted(ordered, key=lambda each: (each.lineno, each.col_offset))
        return [self.argument(each) for each in ordered]

    def argument(self, node: ast.expr | ast.keyword) -> Any:
        if isinstance(node, ast.keyword):
            keyword = None if node.arg is None else self.noted(bare.Name(node.arg), node)
            return self.noted(self.passed(node.value, keyword, "**" if node.arg is None else ""), node)
        if isinstance(node, ast.Starred):
            return self.noted(self.passed(node.value, None, "*"), node)
        return self.passed(node, None, "")

    def passed(self, value: ast.expr, keyword: cst.Name | None, star: Any) -> cst.Arg:
        return bare.Arg(self.expression(value), keyword, star)

    def subscript(self, node: ast.Subscript) -> cst.Subscript:
        return bare.Subscript(
            self.expression(node.value),
            [bare.SubscriptElement(self.index(each)) for each in self.indices(node.slice)],
        )

    def indices(self, node: ast.expr) -> Sequence[ast.expr]:
        """The parts of a subscript; a tuple in parentheses is one part."""
        if not isinstance(node, ast.Tuple) or not node.elts:
            return (node,)
        if self.in_string:
            raise NotMade
        if self.has_parentheses(node):
            return (node,)
        return node.elts

    def has_parentheses(self, node: ast.Tuple) -> bool:
        """Whether the parenthesis before the first element is still open after it."""
        first, *others = node.elts
        if _start(node) == _start(first):
            return False
        before = self.text(_start(node), _start(first))
        after = self.text(_end(first), _start(others[0]) if others else _end(node))
        if "#" in before or "#" in after:  # a comment may contain anything
            raise NotMade
        return before.count("(") > after.partition(",")[0].count(")")

    def index(self, node: ast.expr) -> cst.BaseSlice:
        if isinstance(node, ast.Slice):
            step = self.optional(node.step)
            return bare.Slice(self.optional(node.lower), self.optional(node.upper), step)
        return bare.Index(self.expression(node))

    def tuple_(self, node: ast.Tuple) -> cst.Tuple:
        return bare.Tuple(self.elements(node.elts)) if node.elts else bare.Tuple(())

    def list_(self, node: ast.List) -> cst.List:
        return bare.List(self.elements(node.elts))

    def set_(self, node: ast.Set) -> cst.Set:
        return bare.Set(self.elements(node.elts))

    def elements(self, nodes: list[ast.expr]) -> list[cst.BaseElement]:
        return [
            bare.StarredElement(self.expression(each.value))
            if isinstance(each, ast.Starred)
            else bare.Element(self.expression(each))
            for each in nodes
        ]

    def dict_(self, node: ast.Dict) -> cst.Dict:
        return bare.Dict(
            [
                bare.StarredDictElement(self.expression(value))
                if key is None
                else bare.DictElement(self.expression(key), self.expression(value))
                for key, value in zip(node.keys, node.values)
            ]
        )

    def binary(self, node: ast.BinOp) -> cst.BinaryOperation:
        return bare.BinaryOperation(
            self.expression(node.left), _one(_OPERATORS[type(node.op)]), self.expression(node.right)
        )

    def unary(self, node: ast.UnaryOp) -> cst.UnaryOperation:
        return bare.UnaryOperation(_one(_UNARY[type(node.op)]), self.expression(node.operand))

    def boolean(self, node: ast.BoolOp) -> cst.BooleanOperation:
        operator = _one(_BOOLEAN[type(node.op)])
        result: cst.BooleanOperation = self.expression(node.values[0])
        for value in node.values[1:]:
            result = bare.BooleanOperation(result, operator, self.expression(value))
        return result

    def comparison(self, node: ast.Compare) -> cst.Comparison:
        parts = zip(node.ops, node.comparators)
        return bare.Comparison(
            self.expression(node.left),
            [
                bare.ComparisonTarget(_one(_COMPARISONS[type(operator)]), self.expression(value))
                for operator, value in parts
            ],
        )

    def conditional(self, node: ast.IfExp) -> cst.IfExp:
        return bare.IfExp(
            self.expression(node.test),
            self.expression(node.body),
            self.expression(node.orelse),
        )

    def walrus(self, node: ast.NamedExpr) -> cst.NamedExpr:
        return bare.NamedExpr(self.expression(node.target), self.expression(node.value))

    def lambda_(self, node: ast.Lambda) -> cst.Lambda:
        return bare.Lambda(self.parameters(node.args), self.expression(node.body))

    def yield_(self, node: ast.Yield) -> cst.Yield:
        return bare.Yield(self.optional(node.value))

    def yield_from(self, node: ast.YieldFrom) -> cst.Yield:
        return bare.Yield(bare.From(self.expression(node.value)))

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> cst.BaseSimpleComp:
        return _COMPREHENSIONS[type(node)](self.expression(node.elt), self.clauses(node.generators))

    def dict_comprehension(self, node: ast.DictComp) -> cst.DictComp:
        return bare.DictComp(self.expression(node.key), self.expression(node.value), self.clauses(node.generators))

    def clauses(self, generators: list[ast.comprehension]) -> Any:
        inner: cst.CompFor | None = None
        for each in reversed(generators):
            inner = bare.CompFor(
                self.expression(each.target),
                self.expression(each.iter),
                [bare.CompIf(self.expression(test)) for test in each.ifs],
                inner,
                cst.Asynchronous() if each.is_async else None,
            )
        return inner

    # Functions and classes

    def parameters(self, node: ast.arguments) -> cst.Parameters:
        positional = [*node.posonlyargs, *node.args]
        defaults: list[ast.expr | None] = [*[None] * (len(positional) - len(node.defaults)), *node.defaults]
        made = [self.parameter(each, default) for each, default in zip(positional, defaults)]
        star: cst.Param | cst.ParamStar | cst.MaybeSentinel = cst.MaybeSentinel.DEFAULT
        if node.vararg is not None:
            star = self.parameter(node.vararg, star="*")
        elif node.kwonlyargs:
            star = cst.ParamStar()
        split = len(node.posonlyargs)
        return bare.Parameters(
            made[split:],
            star,
            [self.parameter(each, default) for each, default in zip(node.kwonlyargs, node.kw_defaults)],
            self.parameter(node.kwarg, star="**") if node.kwarg is not None else None,
            made[:split],
            cst.ParamSlash() if split else cst.MaybeSentinel.DEFAULT,
        )

    def parameter(self, node: ast.arg, default: ast.expr | None = None, star: str = "") -> cst.Param:
        name = self.noted(bare.Name(node.arg), node)
        return bare.Param(name, self.annotation(node.annotation), default=self.optional(default), star=star)

    def annotation(self, node: ast.expr | None) -> cst.Annotation | None:
        return None if node is None else bare.Annotation(self.expression(node))

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> cst.FunctionDef:
        if getattr(node, "type_params", None):
            raise NotMade
        if id(node) in self.lines:
            inside = _statement_lines(node)
            self.lines |= {id(each): (first, self.source.lines(first, last)) for each, first, last in inside}
        return bare.FunctionDef(
            self.noted(bare.Name(node.name), node),
            self.parameters(node.args),
            self.block(node.body),
            [self.decorator(each) for each in node.decorator_list],
            self.annotation(node.returns),
            cst.Asynchronous() if isinstance(node, ast.AsyncFunctionDef) else None,
        )

    def class_(self, node: ast.ClassDef) -> cst.ClassDef:
        if getattr(node, "type_params", None):
            raise NotMade
        return bare.ClassDef(
            self.noted(bare.Name(node.name), node),
            self.block(node.body),
            [self.argument(each) for each in node.bases],
            [self.argument(each) for each in node.keywords],
            [self.decorator(each) for each in node.decorator_list],
        )

    def decorator(self, node: ast.expr) -> cst.Decorator:
        decorator: cst.Decorator = self.noted(bare.Decorator(self.expression(node)), node)
        return decorator

    # Statements

    def block(self, body: list[ast.stmt]) -> cst.BaseSuite:
        first = body[0]
        if type(first) in _SMALL and self.text((first.lineno, 0), _start(first)).strip():
            return bare.SimpleStatementSuite([self.small(each) for each in body])
        found: list[Any] = []
        line = 0
        for each in body:
            if type(each) not in _SMALL:
                found.append(self.statement(each))
            elif each.lineno == line:  # after a semicolon
                found[-1].body.append(self.small(each))
            else:
                found.append(self.piece(each, lambda node: bare.SimpleStatementLine([self.small(node)])))
            line = each.end_lineno or each.lineno
        return bare.IndentedBlock(found)

    def small(self, node: ast.stmt) -> Any:
        return self.noted(_SMALL[type(node)](self, node), node)

    def statement(self, node: ast.stmt) -> Any:
        compound = _COMPOUND.get(type(node))
        if compound is None:
            raise NotMade
        return self.piece(node, lambda node: compound(self, node))

    def piece(self, node: ast.stmt, make: Callable[[ast.stmt], Any]) -> Any:
        """What ``make`` creates from a statement, or did from the same lines of the earlier version."""
        lines = self.lines.get(id(node))
        if lines is None:
            return self.noted(make(node), node)
        found = self.earlier.get(lines)
        if found is None:
            around = self.places, self.parts
            self.places, self.parts = {}, {}
            found = MadePiece(self.noted(make(node), node), self.places, self.parts)
            self.places, self.parts = around
        self.places.update(found.places)
        self.parts[lines] = found
        return found.node

    def assign(self, node: ast.Assign) -> cst.Assign:
        targets = [bare.AssignTarget(self.expression(each)) for each in node.targets]
        return bare.Assign(targets, self.expression(node.value))

    def augmented(self, node: ast.AugAssign) -> cst.AugAssign:
        return bare.AugAssign(
            self.expression(node.target), _one(_AUGMENTED[type(node.op)]), self.expression(node.value)
        )

    def annotated(self, node: ast.AnnAssign) -> cst.AnnAssign:
        annotation = bare.Annotation(self.expression(node.annotation))
        return bare.AnnAssign(self.expression(node.target), annotation, self.optional(node.value))

    def raise_(self, node: ast.Raise) -> cst.Raise:
        cause = bare.From(self.expression(node.cause)) if node.cause is not None else None
        return bare.Raise(self.optional(node.exc), cause)

    def delete(self, node: ast.Delete) -> cst.Del:
        targets = node.targets
        return bare.Del(self.expression(targets[0]) if len(targets) == 1 else bare.Tuple(self.elements(targets)))

    def import_(self, node: ast.Import) -> cst.Import:
        return bare.Import([self.alias(each) for each in node.names])

    def import_from(self, node: ast.ImportFrom) -> cst.ImportFrom:
        star = [each.name for each in node.names] == ["*"]
        return bare.ImportFrom(
            _dotted(node.module) if node.module is not None else None,
            cst.ImportStar() if star else [self.alias(each) for each in node.names],
            [cst.Dot() for _ in range(node.level)],
        )

    def alias(self, node: ast.alias) -> cst.ImportAlias:
        return bare.ImportAlias(_dotted(node.name), _as_name(bare.Name(node.asname)) if node.asname else None)

    def if_(self, node: ast.If) -> cst.If:
        rest = node.orelse
        orelse: cst.If | cst.Else | None = None
        if len(rest) == 1 and isinstance(rest[0], ast.If) and rest[0].col_offset == node.col_offset:
            orelse = self.noted(self.if_(rest[0]), rest[0])  # an ``elif``
        elif rest:
            orelse = self.otherwise(rest)
        return bare.If(
            self.expression(node.test),
            self.block(node.body),
            orelse,
        )

    def otherwise(self, body: list[ast.stmt]) -> cst.Else | None:
        return bare.Else(self.block(body)) if body else None

    def for_(self, node: ast.For | ast.AsyncFor) -> cst.For:
        return bare.For(
            self.expression(node.target),
            self.expression(node.iter),
            self.block(node.body),
            self.otherwise(node.orelse),
            cst.Asynchronous() if isinstance(node, ast.AsyncFor) else None,
        )

    def while_(self, node: ast.While) -> cst.While:
        return bare.While(self.expression(node.test), self.block(node.body), self.otherwise(node.orelse))

    def with_(self, node: ast.With | ast.AsyncWith) -> cst.With:
        return bare.With(
            [
                bare.WithItem(
                    self.expression(each.context_expr),
                    _as_name(self.expression(each.optional_vars)) if each.optional_vars is not None else None,
                )
                for each in node.items
            ],
            self.block(node.body),
            cst.Asynchronous() if isinstance(node, ast.AsyncWith) else None,
        )

    def try_(self, node: ast.Try) -> cst.Try:
        return bare.Try(
            self.block(node.body),
            [self.handler(each) for each in node.handlers],
            self.otherwise(node.orelse),
            bare.Finally(self.block(node.finalbody)) if node.finalbody else None,
        )

    def handler(self, node: ast.ExceptHandler) -> cst.ExceptHandler:
        return bare.ExceptHandler(
            self.block(node.body), self.optional(node.type), _as_name(bare.Name(node.name)) if node.name else None
        )


def _start(node: ast.expr | ast.stmt) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: ast.expr) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or 0


def _dotted(path: str) -> Any:
    first, *rest = path.split(".")
    node: cst.Name | cst.Attribute = bare.Name(first)
    for part in rest:
        node = bare.Attribute(node, bare.Name(part))
    return node


def _as_name(node: Any) -> cst.AsName:
    return bare.AsName(node)


def _names(names: list[str]) -> list[cst.NameItem]:
    return [bare.NameItem(bare.Name(each)) for each in names]


_INFINITE = float("inf")
_SELF_DOCUMENTING = pattern(r"=\s*[!:}]")
"""What may be an expression with its text in an f-string: ``{x=}``."""

_ONE_STRING = pattern(
    r"""[a-zA-Z]{0,2}
    (?: "{3} [^"\\]*(?:(?:\\[\s\S]|"(?!""))[^"\\]*)* "{3} | '{3} [^'\\]*(?:(?:\\[\s\S]|'(?!''))[^'\\]*)* '{3}
      | "(?!"") [^"\\]*(?:\\[\s\S][^"\\]*)* " | '(?!'') [^'\\]*(?:\\[\s\S][^'\\]*)* ' )""",
    re.VERBOSE,
)
"""One string that Python has parsed already, on one line or several."""


@cache
def _one(kind: type[Operator]) -> Operator:
    """The only node of an operator, which has no code in it. Creating the first of a type takes long."""
    return kind()


_OPERATORS: dict[type[ast.operator], type[cst.BaseBinaryOp]] = {
    ast.Add: cst.Add,
    ast.Sub: cst.Subtract,
    ast.Mult: cst.Multiply,
    ast.Div: cst.Divide,
    ast.FloorDiv: cst.FloorDivide,
    ast.Mod: cst.Modulo,
    ast.Pow: cst.Power,
    ast.MatMult: cst.MatrixMultiply,
    ast.BitAnd: cst.BitAnd,
    ast.BitOr: cst.BitOr,
    ast.BitXor: cst.BitXor,
    ast.LShift: cst.LeftShift,
    ast.RShift: cst.RightShift,
}
_AUGMENTED: dict[type[ast.operator], type[cst.BaseAugOp]] = {
    ast.Add: cst.AddAssign,
    ast.Sub: cst.SubtractAssign,
    ast.Mult: cst.MultiplyAssign,
    ast.Div: cst.DivideAssign,
    ast.FloorDiv: cst.FloorDivideAssign,
    ast.Mod: cst.ModuloAssign,
    ast.Pow: cst.PowerAssign,
    ast.MatMult: cst.MatrixMultiplyAssign,
    ast.BitAnd: cst.BitAndAssign,
    ast.BitOr: cst.BitOrAssign,
    ast.BitXor: cst.BitXorAssign,
    ast.LShift: cst.LeftShiftAssign,
    ast.RShift: cst.RightShiftAssign,
}
_UNARY: dict[type[ast.unaryop], type[cst.BaseUnaryOp]] = {
    ast.Not: cst.Not,
    ast.USub: cst.Minus,
    ast.UAdd: cst.Plus,
    ast.Invert: cst.BitInvert,
}
_BOOLEAN: dict[type[ast.boolop], type[cst.BaseBooleanOp]] = {ast.And: cst.And, ast.Or: cst.Or}
_COMPARISONS: dict[type[ast.cmpop], type[cst.BaseCompOp]] = {
    ast.Eq: cst.Equal,
    ast.NotEq: cst.NotEqual,
    ast.Lt: cst.LessThan,
    ast.LtE: cst.LessThanEqual,
    ast.Gt: cst.GreaterThan,
    ast.GtE: cst.GreaterThanEqual,
    ast.Is: cst.Is,
    ast.IsNot: cst.IsNot,
    ast.In: cst.In,
    ast.NotIn: cst.NotIn,
}
_COMPREHENSIONS: dict[type[ast.expr], Callable[..., cst.BaseSimpleComp]] = {
    ast.ListComp: bare.ListComp,
    ast.SetComp: bare.SetComp,
    ast.GeneratorExp: bare.GeneratorExp,
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
    ast.Yield: _Maker.yield_,
    ast.YieldFrom: _Maker.yield_from,
    ast.ListComp: _Maker.comprehension,
    ast.SetComp: _Maker.comprehension,
    ast.GeneratorExp: _Maker.comprehension,
    ast.DictComp: _Maker.dict_comprehension,
}
_SMALL: dict[type[ast.stmt], Callable[..., cst.BaseSmallStatement]] = {
    ast.Expr: lambda maker, node: bare.Expr(maker.expression(node.value)),
    ast.Return: lambda maker, node: bare.Return(maker.optional(node.value)),
    ast.Assert: lambda maker, node: bare.Assert(maker.expression(node.test), maker.optional(node.msg)),
    ast.Pass: lambda _maker, _node: bare.Pass(),
    ast.Break: lambda _maker, _node: bare.Break(),
    ast.Continue: lambda _maker, _node: bare.Continue(),
    ast.Global: lambda _maker, node: bare.Global(_names(node.names)),
    ast.Nonlocal: lambda _maker, node: bare.Nonlocal(_names(node.names)),
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
