"""LibCST nodes as text and as trees."""

from __future__ import annotations

import ast
from abc import ABCMeta
from collections import OrderedDict
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

import libcst as cst

from ctxlint.effort import spend, steps
from ctxlint.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    Parents = Mapping[cst.CSTNode, cst.CSTNode]

Result = TypeVar("Result")
Node = TypeVar("Node", bound=cst.CSTNode)

_CODE = cst.Module([])
CHECKING = pattern(r"(?i)check(?!point)|assert|valid|ensure|require(?!s?_grad)|expect|verify")
"""In the names of functions that may raise for some arguments."""


def code_of(node: cst.CSTNode) -> str:
    """The source text of a node; a dotted name is given without layout, which is not parsed for it."""
    path = dotted(node)
    return _CODE.code_for_node(node) if path is None else path


def without_not(test: cst.BaseExpression | None) -> cst.BaseExpression | None:
    """The operand of ``not``, or the test itself."""
    return test.expression if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not) else test


def without_negations(test: cst.BaseExpression, holds: bool) -> tuple[cst.BaseExpression, bool]:
    """What a test asks behind each ``not``, and the outcome of that if the test ``holds``, or does not."""
    while isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        test, holds = test.expression, not holds
    return test, holds


def dotted(node: cst.CSTNode) -> str | None:
    """``a.b.c`` of an attribute chain; None for any other expression."""
    parts: list[str] = []
    while isinstance(node, cst.Attribute):
        parts.append(node.attr.value)
        node = node.value
    if not isinstance(node, cst.Name):
        return None
    parts.append(node.value)
    return ".".join(reversed(parts))


def is_name(node: cst.CSTNode | None, name: str) -> bool:
    """Whether a node is this name."""
    return isinstance(node, cst.Name) and node.value == name


def only_target(node: cst.CSTNode | None) -> cst.BaseExpression | None:
    """``a`` of ``a = …``; None for several targets, and for anything but an assignment."""
    return node.targets[0].target if isinstance(node, cst.Assign) and len(node.targets) == 1 else None


def compares_identity(node: cst.CSTNode | None) -> bool:
    """Whether a node is a comparison by ``is`` or ``is not``."""
    return isinstance(node, cst.Comparison) and all(
        isinstance(each.operator, (cst.Is, cst.IsNot)) for each in node.comparisons
    )


def keywords_of(call: cst.Call) -> dict[str, cst.BaseExpression]:
    """What a call passes by keyword."""
    return {each.keyword.value: each.value for each in call.args if each.keyword is not None}


def passed_for(call: cst.Call, names: Iterable[str], parameter: str) -> cst.BaseExpression | None:
    """What a call passes for a parameter, of a function with these ``names`` by position; None if it has a star."""
    if any(each.star for each in call.args):
        return None
    by_position = (each.value for each in call.args if each.keyword is None)
    return (dict(zip(names, by_position)) | keywords_of(call)).get(parameter)


def leaves(statement: cst.BaseStatement) -> bool:
    """Whether a line ends with ``return``, ``raise`` or ``assert False``."""
    last = statement.body[-1] if isinstance(statement, cst.SimpleStatementLine) else None
    return isinstance(last, (cst.Raise, cst.Return)) or (isinstance(last, cst.Assert) and is_name(last.test, "False"))


def last_name(node: cst.BaseExpression) -> str:
    """``c`` of ``c``, ``a.b.c`` and ``f(x).c``; empty for an expression of another kind."""
    name = node.attr if isinstance(node, cst.Attribute) else node
    return name.value if isinstance(name, cst.Name) else ""


def root_name(node: cst.CSTNode | None) -> str | None:
    """The variable that an expression begins with: ``dq`` in ``dq.to(q)[0]``."""
    while isinstance(node, (cst.Attribute, cst.Subscript, cst.Call)):
        node = node.func if isinstance(node, cst.Call) else node.value
    return node.value if isinstance(node, cst.Name) else None


def branches_of(expression: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """The possible results of an expression: the branches of a conditional, otherwise the expression itself."""
    if isinstance(expression, cst.IfExp):
        yield from branches_of(expression.body)
        yield from branches_of(expression.orelse)
    else:
        yield expression


def children(node: cst.CSTNode) -> list[cst.CSTNode]:
    """The direct children of a node that are code: no whitespace, comments, parentheses, commas and the like.

    ``CSTNode.children`` includes those and costs twenty times as much, because it copies the node.
    """
    spend()
    found: list[cst.CSTNode] = []
    for name in FIELDS_OF_CODE[type(node)]:
        value = getattr(node, name)
        kind = type(value)
        if kind in _MANY:
            found.extend(value)
        elif kind not in _NO_NODES:
            found.append(value)
    return found


def words_of(node: cst.CSTNode) -> Iterator[str]:
    """The names, numbers and strings in some code, independent of its layout."""
    value = getattr(node, "value", None)
    if isinstance(value, str):
        yield value
    for child in children(node):
        yield from words_of(child)


def names_in(node: cst.CSTNode) -> frozenset[str]:
    """Every name in some code, without the names of attributes."""
    return frozenset(_names_in(node))


def _names_in(node: cst.CSTNode) -> Iterator[str]:
    if isinstance(node, cst.Name):
        yield node.value
    elif isinstance(node, cst.Attribute):
        yield from _names_in(node.value)
    else:
        for child in children(node):
            yield from _names_in(child)


def parents_below(top: cst.CSTNode) -> dict[cst.CSTNode, cst.CSTNode]:
    """The parent of each node below ``top``; parents come before their children, ordered as in ``children``."""
    parents: dict[cst.CSTNode, cst.CSTNode] = {}
    _add_parents(top, parents)
    return parents


def ancestors(parents: Mapping[cst.CSTNode, cst.CSTNode], node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """What a node is in, the innermost first."""
    while node in parents:
        node = parents[node]
        yield node


def parents_in(function: cst.FunctionDef) -> dict[cst.CSTNode, cst.CSTNode]:
    """Like ``parents_below``, for a function whose statements may be those of an earlier version."""
    known, body = _KNOWN_PARENTS.get(), function.body
    if known is None or not isinstance(body, cst.IndentedBlock):
        return parents_below(function)
    parents: dict[cst.CSTNode, cst.CSTNode] = {}
    for child in children(function):
        parents[child] = function
        if child is not body:
            _add_parents(child, parents)
            continue
        for statement in children(body):
            parents[statement] = body
            parents.update(known.result_of(statement, parents_below))
    return parents


def kept(node: Node, work: Callable[[Node], Result]) -> Result:
    """The result of ``work`` for a function or statement, which may be known from an earlier version."""
    known = _KNOWN_PARENTS.get()
    return work(node) if known is None else known.result_of(node, work)


def kept_below(
    function: cst.FunctionDef, parents: Parents, work: Callable[[cst.FunctionDef, Parents], Result]
) -> Result:
    """As ``kept``, for work that takes the parents of the nodes in a function."""
    known = _KNOWN_PARENTS.get()
    return work(function, parents) if known is None else known.result_below(function, parents, work)


def in_parts(
    function: cst.FunctionDef, parents: Parents, work: Callable[[Iterable[cst.CSTNode], Parents], Result]
) -> list[Result]:
    """The results of ``work`` for the nodes in the body of a function: for all of them, or for those of each statement.

    Those of statements that are known from an earlier version are not computed again.
    """
    known, body = _KNOWN_PARENTS.get(), function.body
    if known is None or not isinstance(body, cst.IndentedBlock):
        nodes = tuple(parents)
        return [work(nodes[nodes.index(body) + 1 :], parents)]
    return [known.result_for(statement, work) for statement in children(body)]


class KnownParents:
    """What follows from the code of some functions and statements alone: they outlive the file in an editor."""

    def __init__(self, results: int = 5 * 1024) -> None:
        """Start empty."""
        self._most = results
        self._results: OrderedDict[tuple[cst.CSTNode, object], tuple[Any, int]] = OrderedDict()

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """During this context, ``parents_in`` looks them up here."""
        token = _KNOWN_PARENTS.set(self)
        try:
            yield
        finally:
            _KNOWN_PARENTS.reset(token)

    def clear(self) -> None:
        """Drop everything."""
        self._results.clear()

    def result_of(self, node: Node, work: Callable[[Node], Result]) -> Result:
        """The result of ``work`` for a node, for the same number of steps."""
        return self._kept(node, work, lambda: work(node))

    def result_below(
        self, function: cst.FunctionDef, parents: Parents, work: Callable[[cst.FunctionDef, Parents], Result]
    ) -> Result:
        """The same for work that takes the parents of the nodes in a function."""
        return self._kept(function, work, lambda: work(function, parents))

    def result_for(self, statement: cst.CSTNode, work: Callable[[Iterable[cst.CSTNode], Parents], Result]) -> Result:
        """The result of ``work`` for the nodes of a statement."""

        def from_parents() -> Result:
            parents = self.result_of(statement, parents_below)
            return work((statement, *parents), parents)

        return self._kept(statement, work, from_parents)

    def _kept(self, node: cst.CSTNode, kind: object, work: Callable[[], Result]) -> Result:
        known: tuple[Result, int] | None = self._results.get((node, kind))
        if known is not None:
            self._results.move_to_end((node, kind))
            spend(known[1])
            return known[0]
        left, found = steps.left, work()
        self._results[node, kind] = (found, left - steps.left)
        if len(self._results) > self._most:
            self._results.popitem(last=False)
        return found


_KNOWN_PARENTS: ContextVar[KnownParents | None] = ContextVar("_KNOWN_PARENTS", default=None)


def _add_parents(node: cst.CSTNode, parents: dict[cst.CSTNode, cst.CSTNode]) -> None:
    for child in children(node):
        parents[child] = node
        if FIELDS_OF_CODE[type(child)]:  # half of the nodes are names and literals
            _add_parents(child, parents)


def all_children(node: cst.CSTNode) -> list[cst.CSTNode]:
    """Every direct child of a node, layout included, like ``CSTNode.children`` but without its copies."""
    found: list[cst.CSTNode] = []
    for name in _FIELDS[type(node)]:
        value = getattr(node, name)
        kind = type(value)
        if kind in _MANY:
            found.extend(value)
        elif kind not in _NO_NODES:
            found.append(value)
    return found


class _InC(ABCMeta):
    """The type of LibCST's classes, none of which has virtual subclasses: ``isinstance`` need not ask for them."""

    __instancecheck__ = type.__instancecheck__


def _compare_in_c(kind: type[cst.CSTNode]) -> None:
    """Give all types of node the hash, the comparison and the ``isinstance`` of ``object``.

    LibCST's own hash and comparison are by identity as well, but written in Python, as is the ``isinstance`` of
    abstract classes. Every look-up of a node in a dictionary calls them.
    """
    kind.__hash__, kind.__eq__ = object.__hash__, object.__eq__  # type: ignore[method-assign]
    if type(kind) is ABCMeta:
        kind.__class__ = _InC  # type: ignore[assignment]
    for each in kind.__subclasses__():
        _compare_in_c(each)


_compare_in_c(cst.CSTNode)  # type: ignore[type-abstract]

_MANY = frozenset({tuple, list})
_NO_NODES = frozenset({str, bool, type(None), cst.MaybeSentinel})


class _Fields(dict[type, tuple[str, ...]]):
    """The names of the fields that may contain nodes, by node type."""

    def __missing__(self, kind: type[cst.CSTNode]) -> tuple[str, ...]:
        self[kind] = found = self.find(kind)
        return found

    def find(self, kind: type[cst.CSTNode]) -> tuple[str, ...]:
        return tuple(field.name for field in fields(kind) if field.type not in _NEVER_NODES)


_NEVER_NODES = (str, bool, "str", "bool")

_LAYOUT = frozenset(
    {
        "lpar",
        "rpar",
        "lbracket",
        "rbracket",
        "lbrace",
        "rbrace",
        "lines_after_decorators",
        "trailing_whitespace",
        "header",
        "footer",
        "indent",
        "newline",
        "comma",
        "trailing_comma",
        "semicolon",
        "equal",
        "dot",
        "colon",
        "first_colon",
        "second_colon",
        "separator",
        "operator",
        "asynchronous",
    }
)
"""The fields of nodes that contain layout or operators."""


class _FieldsOfCode(_Fields):
    def find(self, kind: type[cst.CSTNode]) -> tuple[str, ...]:
        names = super().find(kind)
        code = [name for name in names if name not in _LAYOUT and not name.startswith(("whitespace", "leading_"))]
        return tuple(sorted(code, key=lambda name: _BLOCKS.get(name, 0)))


_BLOCKS = {"body": 1, "handlers": 2, "orelse": 3, "finalbody": 4}
"""Blocks come after the head of their statement."""

_FIELDS = _Fields()
FIELDS_OF_CODE = _FieldsOfCode()


def single_index(node: cst.Subscript) -> cst.BaseExpression | None:
    """``i`` of ``x[i]``; None for slices, several indices and a starred one."""
    index = node.slice[0].slice if len(node.slice) == 1 else None
    return index.value if isinstance(index, cst.Index) and not index.star else None


def signed_integer(node: cst.BaseExpression | None) -> int | None:
    """The value of the literal ``2`` or ``-2``; None for anything else."""
    negative = isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus)
    digits = node.expression if isinstance(node, cst.UnaryOperation) and negative else node
    number = literal_integer(digits) if isinstance(digits, cst.Integer) else None
    return -number if number is not None and negative else number


def literal_integer(node: cst.Integer) -> int | None:
    """The value of the literal; None if Python would reject it."""
    digits = node.value
    if digits.isdecimal() and digits.isascii() and (digits[0] != "0" or digits == "0"):
        return int(digits) if len(digits) < _LONGEST_NUMBER else None
    if len(digits) >= _LONGEST_NUMBER:
        return None
    try:
        return int(ast.literal_eval(digits))
    except (ValueError, SyntaxError):
        return None


_LONGEST_NUMBER = 1_000


def literal_text(node: cst.CSTNode | None) -> str | bytes | None:
    """The value of the literal; None if Python would reject it, and for anything else."""
    if not isinstance(node, cst.SimpleString):
        return None
    if not node.prefix and "\\" not in node.value:
        return node.raw_value
    try:
        return node.evaluated_value
    except (ValueError, SyntaxError):
        return None
