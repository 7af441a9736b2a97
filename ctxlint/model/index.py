"""One ``ast`` pass over a file: scopes, classes, calls on classes, attribute names.

``ast`` only says where to look and what the rest of the file does; what a Function is and what it does wrong is
decided on LibCST nodes.
"""

from __future__ import annotations

import ast
import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ctxlint.model.scopes import LOCAL, Bound, Scope, dotted_name, meanings, resolutions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager


@dataclass
class ClassRecord:
    """A class statement: where it stands, and what its bases resolve to.

    ``statement`` is the index of its top-level statement and ``ordinal`` counts the class statements in that, from 0,
    in source order, so that it can be found again among LibCST's nodes.
    """

    qualname: str
    node: ast.ClassDef
    scope: Scope
    body: Scope
    statement: int
    ordinal: int
    alternative: bool = False
    """Whether it stands in an ``except`` clause, or under an ``if`` that asks for a version or an attribute."""
    bases: tuple[tuple[str | None, ...], ...] = ()


@dataclass
class CallRecord:
    """A call, the scope it is written in, and the ``with`` items of that scope that it stands under.

    ``expects_error`` says that it stands under, or inside, something like ``pytest.raises(...)``.
    """

    node: ast.Call
    scope: Scope
    within: tuple[ast.expr, ...] = ()
    expects_error: bool = False


@dataclass
class FunctionRecord:
    """A function or method, and the scope it is written in; ``statement`` and ``ordinal`` as for classes.

    ``certain`` is False where a condition decides between several of this name.
    """

    node: ast.FunctionDef | ast.AsyncFunctionDef
    scope: Scope
    statement: int
    ordinal: int
    conditional: bool
    certain: bool


@dataclass
class FileIndex:
    """What one pass over the file found."""

    module: Scope
    statements: list[ast.stmt]
    classes: dict[str, ClassRecord] = field(default_factory=dict)
    functions: dict[str, FunctionRecord] = field(default_factory=dict)
    """Every function by qualified name, methods included; the last one, where a name is defined again."""
    calls: list[CallRecord] = field(default_factory=list)
    attributes: set[str] = field(default_factory=set)
    """Every attribute name that is stored, deleted, or named as a string in getattr, setattr, hasattr, delattr."""
    applied: list[tuple[ast.expr, Scope]] = field(default_factory=list)
    """What ``.apply`` is read of, called or not, and where."""
    patches: list[tuple[ast.expr, str, Scope]] = field(default_factory=list)
    """Owner, attribute and scope of each ``owner.attribute = …`` and ``del owner.attribute``."""
    attribute_aliases: list[tuple[ast.expr, str, ast.Attribute, Scope]] = field(default_factory=list)
    """Owner, attribute, value and scope of each ``owner.attribute = Fn.apply``."""

    # Questions

    def class_of(self, dotted: str, scope: Scope, line: int) -> str | None:
        """The qualified name of the class of this file that ``dotted`` certainly means to code at ``line``.

        None for anything else: a name that is rebound, or that an ``if`` binds to one class or another.
        """
        found = set(meanings(dotted, scope, line))
        return self._class(found.pop()) if len(found) == 1 else None

    def classes_of(self, dotted: str, scope: Scope) -> set[str]:
        """The qualified names of the classes of this file that ``dotted`` may mean."""
        return {name for name in map(self._class, resolutions(dotted, scope)) if name is not None}

    def _class(self, meaning: str | None) -> str | None:
        name = meaning[len(LOCAL) :] if meaning is not None and meaning.startswith(LOCAL) else None
        return name if name in self.classes else None


def index_module(module: ast.Module) -> FileIndex:
    """Index a parsed file."""
    root = Scope("module", "")
    index = FileIndex(root, module.body)
    for number, statement in enumerate(module.body):
        _Indexer(index, number).statement(statement, root, conditional=False)
    for record in index.classes.values():
        record.bases = tuple(_base(base, record) for base in record.node.bases)
    return index


def _base(node: ast.expr, record: ClassRecord) -> tuple[str | None, ...]:
    if isinstance(node, ast.Subscript):  # a generic base: Base[T]
        node = node.value
    dotted = dotted_name(node)
    if dotted is None:
        return (None,)
    return tuple(resolutions(dotted, record.scope, record.node.lineno))


_STRING_ACCESS = frozenset({"getattr", "setattr", "hasattr", "delattr"})

_EXPECT_ERRORS = frozenset(
    {"raises", "warns", "assertRaises", "assertRaisesRegex", "assertRaisesRegexp", "assertWarns", "assertWarnsRegex"}
)
"""The last part of the names of what a test calls to say that something raises or warns."""

_VERSION = re.compile(r"version|hasattr|getattr|torch_?\d|_[gl][te]_", re.IGNORECASE)
_GRADIENTS = re.compile(r"grad|training|inference", re.IGNORECASE)


class _Indexer:
    """Walks one top-level statement."""

    def __init__(self, index: FileIndex, number: int) -> None:
        self.index = index
        self.number = number
        self.ordinal = 0
        self.functions = 0
        self.chosen = False
        self.handler = False
        self.alternative = False
        self.within: tuple[ast.expr, ...] = ()
        self.expects_error = False

    def bound(self, kind: str, line: int, conditional: bool, target: str = "", value: ast.expr | None = None) -> Bound:
        """A binding at the place where the walk is."""
        return Bound(kind, line, conditional, target, value, self.chosen, self.handler)

    @contextmanager
    def inside(self, **changes: object) -> Iterator[None]:
        """Walk what stands under some statement, with other facts about the place."""
        before = {name: getattr(self, name) for name in changes}
        vars(self).update(changes)
        yield
        vars(self).update(before)

    def new_scope(self) -> AbstractContextManager[None]:
        """Walk the body of a function or class: what surrounds the statement decides nothing inside."""
        return self.inside(chosen=False, handler=False, within=(), expects_error=False)

    def body(self, statements: list[ast.stmt], scope: Scope, conditional: bool) -> None:
        for statement in statements:
            self.statement(statement, scope, conditional)

    def statement(self, node: ast.stmt, scope: Scope, conditional: bool) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self.function(node, scope, conditional)
        elif isinstance(node, ast.ClassDef):
            self.class_(node, scope, conditional)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            self.imports(node, scope, conditional)
        else:
            self.other(node, scope, conditional)

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope, conditional: bool) -> None:
        qualname = _join(scope, node.name)
        scope.bind(node.name, self.bound("def", node.lineno, conditional, qualname))
        earlier = self.index.functions.get(qualname)
        certain = earlier is None or not (conditional or earlier.conditional)
        record = FunctionRecord(node, scope, self.number, self.functions, conditional, certain)
        self.index.functions[qualname] = record
        self.functions += 1
        inner = Scope("function", qualname, scope)
        arguments = node.args
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            inner.bind(argument.arg, Bound("other", node.lineno, False))
        for extra in (arguments.vararg, arguments.kwarg):
            if extra is not None:
                inner.bind(extra.arg, Bound("other", node.lineno, False))
        for expression in (*node.decorator_list, *arguments.defaults, *arguments.kw_defaults):
            if expression is not None:
                self.expression(expression, scope)
        with self.new_scope():
            self.body(node.body, inner, conditional=False)

    def class_(self, node: ast.ClassDef, scope: Scope, conditional: bool) -> None:
        qualname = _join(scope, node.name)
        if qualname in self.index.classes:  # a second class of this name, in another branch: both count
            qualname = f"{qualname}@{node.lineno}"
        scope.bind(node.name, self.bound("class", node.lineno, conditional, qualname))
        inner = Scope("class", qualname, scope)
        record = ClassRecord(qualname, node, scope, inner, self.number, self.ordinal, self.alternative)
        self.index.classes[qualname] = record
        self.ordinal += 1
        for expression in (*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)):
            self.expression(expression, scope)
        with self.new_scope():
            self.body(node.body, inner, conditional=False)

    def imports(self, node: ast.Import | ast.ImportFrom, scope: Scope, conditional: bool) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                target = alias.name if alias.asname else name
                scope.bind(name, self.bound("import", node.lineno, conditional, target))
            return
        origin = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name == "*":
                scope.stars.append(origin)
            else:
                target = f"{origin}.{alias.name}" if node.module else f"{origin}{alias.name}"
                scope.bind(alias.asname or alias.name, self.bound("import", node.lineno, conditional, target))

    def other(self, node: ast.stmt, scope: Scope, conditional: bool) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self.target(target, node.value, scope, conditional)
        elif isinstance(node, ast.AnnAssign):
            self.target(node.target, node.value, scope, conditional)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            for name in node.names:
                scope.bind(name, self.bound("other", node.lineno, True))
                if isinstance(node, ast.Global):
                    self.index.module.bind(name, Bound("other", node.lineno, True))
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                self.target(target, None, scope, conditional)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            scope.bind(node.target.id, self.bound("other", node.lineno, conditional))
        if isinstance(node, ast.If):
            self.choice(node, scope)
            return
        facts = self.facts_under(node)
        if not facts:
            self.parts(node, scope, conditional)
            return
        with self.inside(**facts):
            self.parts(node, scope, conditional)

    def choice(self, node: ast.If, scope: Scope) -> None:
        """``if``, each ``elif``, ``else``: one after the other, for a chain may be longer than Python recurses."""
        alternative = self.alternative
        while True:
            scope.asks_for_gradients |= _mentions(node.test, _GRADIENTS)
            alternative = alternative or _mentions(node.test, _VERSION)
            with self.inside(chosen=True, alternative=alternative):
                self.expression(node.test, scope)
                self.body(node.body, scope, conditional=True)
                after = node.orelse[0] if len(node.orelse) == 1 else None
                if not isinstance(after, ast.If):
                    self.body(node.orelse, scope, conditional=True)
                    return
            node = after

    def facts_under(self, node: ast.stmt) -> dict[str, object]:
        """What is different inside a compound statement."""
        if isinstance(node, (ast.With, ast.AsyncWith)):
            items = tuple(item.context_expr for item in node.items)
            expects = self.expects_error or any(_expects_errors(item) for item in items)
            return {"within": (*self.within, *items), "expects_error": expects}
        return {"chosen": True} if type(node).__name__ == "Match" else {}

    def parts(self, node: ast.stmt, scope: Scope, conditional: bool) -> None:
        """What is inside a statement that is no definition and no import."""
        compound = False
        for field_name, value in ast.iter_fields(node):
            if isinstance(value, list):
                if value and isinstance(value[0], ast.stmt):
                    compound = True
                    straight = isinstance(node, (ast.With, ast.AsyncWith)) or field_name == "finalbody"
                    self.body(value, scope, conditional or not straight)
                elif value and type(value[0]).__name__ in ("ExceptHandler", "match_case"):
                    for part in value:
                        self.part(part, scope)  # an ``except`` clause or a ``case``
                else:
                    for each in value:
                        if isinstance(each, ast.AST):
                            self.expression(each, scope)
            elif isinstance(value, ast.AST):
                self.expression(value, scope)
        if compound and isinstance(node, (ast.For, ast.AsyncFor)):
            self.target(node.target, None, scope, True)

    def part(self, part: ast.AST, scope: Scope) -> None:
        """An ``except`` handler or a ``case``."""
        name = getattr(part, "name", None)
        if isinstance(name, str):
            scope.bind(name, self.bound("other", getattr(part, "lineno", 0), True))
        handler = isinstance(part, ast.ExceptHandler)
        with self.inside(handler=self.handler or handler, alternative=self.alternative or handler):
            self.inside_part(part, scope)

    def inside_part(self, part: ast.AST, scope: Scope) -> None:
        for _field, value in ast.iter_fields(part):
            if isinstance(value, list):
                for each in value:
                    if isinstance(each, ast.stmt):
                        self.statement(each, scope, conditional=True)
            elif isinstance(value, ast.AST):
                self.expression(value, scope)

    def target(self, target: ast.expr, value: ast.expr | None, scope: Scope, conditional: bool) -> None:
        if isinstance(target, ast.Name):
            kind = "assign" if value is not None else "other"
            scope.bind(target.id, self.bound(kind, target.lineno, conditional, value=value))
        elif isinstance(target, (ast.Tuple, ast.List)):
            values = value.elts if isinstance(value, (ast.Tuple, ast.List)) else ()
            paired = len(values) == len(target.elts) and not any(isinstance(each, ast.Starred) for each in values)
            for position, each in enumerate(target.elts):
                self.target(each, values[position] if paired else None, scope, conditional)
        elif isinstance(target, ast.Starred):
            self.target(target.value, None, scope, conditional)
        elif isinstance(target, ast.Attribute):
            self.index.patches.append((target.value, target.attr, scope))
            if isinstance(value, ast.Attribute) and value.attr == "apply":
                self.index.attribute_aliases.append((target.value, target.attr, value, scope))

    def expression(self, root: ast.AST, scope: Scope) -> None:
        """Everything inside an expression (or a ``with`` item, a pattern, …) that the index keeps."""
        pending = [root]
        while pending:
            node = pending.pop()
            kind = type(node)
            if kind is ast.Name:
                if type(node.ctx) is ast.Store and node.id not in scope.names:  # type: ignore[attr-defined]
                    scope.bind(node.id, Bound("other", node.lineno, True))  # type: ignore[attr-defined]
                continue
            if kind is ast.Constant:
                continue
            if kind is ast.Attribute:
                self.attribute(node, scope)  # type: ignore[arg-type]
                pending.append(node.value)  # type: ignore[attr-defined]
                continue
            if kind is ast.Call:
                self.call(node, scope)  # type: ignore[arg-type]
                if not self.expects_error and _expects_errors(node):
                    with self.inside(expects_error=True):
                        for child in ast.iter_child_nodes(node):
                            self.expression(child, scope)
                    continue
            elif kind is ast.IfExp:
                scope.asks_for_gradients |= _mentions(node.test, _GRADIENTS)  # type: ignore[attr-defined]
            elif kind is ast.NamedExpr:
                scope.bind(node.target.id, Bound("other", node.lineno, True))  # type: ignore[attr-defined]
            pending += _inside(node)

    def attribute(self, node: ast.Attribute, scope: Scope) -> None:
        if type(node.ctx) is not ast.Load:
            self.index.attributes.add(node.attr)
        elif node.attr == "apply":
            self.index.applied.append((node.value, scope))

    def call(self, node: ast.Call, scope: Scope) -> None:
        self.index.calls.append(CallRecord(node, scope, self.within, self.expects_error))
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in _STRING_ACCESS and len(node.args) > 1:
            attribute = node.args[1]
            if isinstance(attribute, ast.Constant) and isinstance(attribute.value, str):
                self.index.attributes.add(attribute.value)


def _inside(node: ast.AST) -> list[ast.AST]:
    """The nodes right below a node, without those that name operators and contexts."""
    found: list[ast.AST] = []
    for name in _FIELDS.get(type(node), node._fields):
        value = getattr(node, name)
        if type(value) is list:
            found += [each for each in value if isinstance(each, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Call: ("func", "args", "keywords"),
    ast.BinOp: ("left", "right"),
    ast.BoolOp: ("values",),
    ast.Compare: ("left", "comparators"),
    ast.List: ("elts",),
    ast.Starred: ("value",),
    ast.Subscript: ("value", "slice"),
    ast.Tuple: ("elts",),
    ast.UnaryOp: ("operand",),
    ast.comprehension: ("iter", "ifs"),  # the targets are names of the comprehension alone
    ast.keyword: ("value",),
}
"""The fields that hold expressions, for the most frequent nodes."""


def _expects_errors(node: ast.AST) -> bool:
    """Whether an expression is a call like ``pytest.raises(...)``."""
    func = node.func if isinstance(node, ast.Call) else None
    name = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else None
    return name in _EXPECT_ERRORS


def _mentions(test: ast.expr, words: re.Pattern[str]) -> bool:
    """Whether a name or an attribute in a condition has one of the words in it."""
    return any(
        words.search(name) is not None
        for node in ast.walk(test)
        for name in (getattr(node, "id", None), getattr(node, "attr", None))
        if isinstance(name, str)
    )


def _join(scope: Scope, name: str) -> str:
    return f"{scope.qualname}.{name}" if scope.qualname else name
