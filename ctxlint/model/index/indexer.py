"""The ``ast`` pass that creates the index of a file.

Most files of a run are indexed, and most of their code is irrelevant, so this is optimised for speed. Bindings are
recorded as they are; conditions are analysed on demand.
"""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from ctxlint.model.index.expected_errors import EXPECT_ERRORS, expects_errors
from ctxlint.model.index.file_index import (
    CallRecord,
    ClassRecord,
    FileIndex,
    FunctionRecord,
    Patch,
    lambda_record,
    one_of_several,
)
from ctxlint.model.index.named_patches import replaces
from ctxlint.model.index.scopes import Bound, Scope, dotted_name, mentions, resolutions
from ctxlint.named_tuples import NamedTuple
from ctxlint.patterns import pattern
from ctxlint.source.ast_tree import nodes_in
from ctxlint.torch_api.autograd import PROTOCOL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_STRING_ACCESS = {"setattr": 1, "hasattr": 1, "delattr": 1, "getattr": 2}
"""Builtins that may find an attribute missing, or set it, and after how many arguments; ``getattr`` with a default."""

_READING = ("getattr", "hasattr")

_VERSION = pattern(r"version|hasattr|getattr|torch_?(?:\d|major|minor)|_[gl][te]_", re.IGNORECASE)
"""What a condition mentions that distinguishes releases."""


def index_module(module: ast.Module) -> FileIndex:
    """Index a parsed file."""
    root = Scope("module", "")
    index = FileIndex(root, module.body)
    for number, statement in enumerate(module.body):
        add_statement(index, number, statement)
    resolve_bases(index)
    return index


def add_statement(index: FileIndex, number: int, statement: ast.stmt) -> None:
    """Index one top-level statement, which is the given one of its file."""
    _Indexer(index, number).body((statement,), index.module, _OUTSIDE)


def resolve_bases(index: FileIndex) -> None:
    """Resolve the bases of the classes: names that the whole module binds."""
    for record in index.classes.values():
        record.bases = tuple(_base(base, record) for base in record.node.bases)


def _base(node: ast.expr, record: ClassRecord) -> tuple[str | None, ...]:
    if isinstance(node, ast.Subscript):  # a generic base: Base[T]
        node = node.value
    dotted = dotted_name(node)
    if dotted is None:
        return (None,)
    return tuple(resolutions(dotted, record.scope, record.node.lineno))


class _Place(NamedTuple):
    """The surroundings of a statement within its function or class; ``tests`` and ``fallback`` extend beyond it.

    ``conditional``, ``chosen``, ``handler`` and ``for_types`` are those of a ``Bound``, ``within``, ``expects_error``
    and ``own_names`` those of a ``CallRecord``. ``tests`` are the enclosing conditions, and those that failed before;
    ``fallback``: it is in an ``except`` clause.
    """

    conditional: bool = False
    chosen: bool = False
    handler: bool = False
    for_types: bool = False
    within: tuple[ast.expr, ...] = ()
    expects_error: bool = False
    tests: tuple[ast.expr, ...] = ()
    fallback: bool = False
    own_names: frozenset[str] = frozenset()

    def inside(self) -> _Place:
        """The place in the body of a function or class that is defined here."""
        return _Place(tests=self.tests, fallback=self.fallback) if self.tests or self.fallback else _OUTSIDE


_OUTSIDE = _Place()


class _Indexer:
    """Walks one top-level statement."""

    def __init__(self, index: FileIndex, number: int) -> None:
        self.index = index
        self.number = number
        self.classes = 0
        self.functions = 0

    # Statements

    def body(self, statements: Sequence[ast.stmt], scope: Scope, place: _Place) -> None:
        for statement in statements:
            _STATEMENTS.get(type(statement), _Indexer.other)(self, statement, scope, place)

    def valued(self, node: ast.Expr | ast.Return, scope: Scope, place: _Place) -> None:
        if node.value is not None:
            self.expression(node.value, scope, place)

    def other(self, node: ast.AST, scope: Scope, place: _Place) -> None:
        """A statement without bindings and nested statements."""
        for each in _parts(node):
            self.expression(each, scope, place)

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope, place: _Place) -> None:
        qualname = _join(scope, node.name)
        if qualname in self.index.classes:  # a class of this name: both count
            qualname = one_of_several(qualname, node.lineno)
        scope.bind(node.name, _bound("def", node.lineno, place, qualname))
        earlier = self.index.functions.get(qualname)
        certain = earlier is None or not (place.conditional or earlier.conditional)
        record = FunctionRecord(node, scope, self.number, self.functions, place.conditional, certain)
        if earlier is not None and place.conditional:
            before = earlier.alternatives or (self.several(qualname, earlier),)
            record.alternatives = (*before, self.several(qualname, record))
        elif earlier is not None and any("register" in ast.dump(each) for each in earlier.node.decorator_list):
            self.several(qualname, earlier)  # its registration stays
        self.index.functions[qualname] = record
        self.functions += 1
        inner = Scope("function", qualname, scope, fallback=place.fallback)
        parameter = Bound("other", node.lineno, False)
        arguments = node.args
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            inner.bind(argument.arg, parameter)
        for extra in (arguments.vararg, arguments.kwarg):
            if extra is not None:
                inner.bind(extra.arg, parameter)
        self.expressions((*node.decorator_list, *arguments.defaults, *arguments.kw_defaults), scope, place)
        self.body(node.body, inner, place.inside())

    def several(self, qualname: str, record: FunctionRecord) -> str:
        """Record one of several functions of a name under a name of its own, which is returned."""
        own = one_of_several(qualname, record.node.lineno)
        self.index.functions[own] = replace(record, certain=True)
        return own

    def lambda_(self, name: str, node: ast.Lambda, scope: Scope, place: _Place) -> None:
        """``name = lambda …`` is a function that returns its expression."""
        qualname = _join(scope, name)
        if qualname in self.index.functions:
            return
        self.index.functions[qualname] = lambda_record(name, node, scope, self.number, place.conditional)

    def class_(self, node: ast.ClassDef, scope: Scope, place: _Place) -> None:
        qualname = _join(scope, node.name)
        function = self.index.functions.get(qualname)
        in_another_branch = function is not None and (place.conditional or function.conditional)
        if qualname in self.index.classes or in_another_branch:  # both count
            qualname = one_of_several(qualname, node.lineno)
        scope.bind(node.name, _bound("class", node.lineno, place, qualname))
        inner = Scope("class", qualname, scope, fallback=place.fallback)
        alternative = place.fallback or any(mentions(test, _VERSION) for test in place.tests)
        record = ClassRecord(qualname, node, scope, inner, self.number, self.classes, alternative)
        self.index.classes[qualname] = record
        self.classes += 1
        keywords = (keyword.value for keyword in node.keywords)
        self.expressions((*node.decorator_list, *node.bases, *keywords), scope, place)
        self.body(node.body, inner, place.inside())

    def import_(self, node: ast.Import, scope: Scope, place: _Place) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            self.imported(name, alias.name if alias.asname else name, node.lineno, scope, place)

    def import_from(self, node: ast.ImportFrom, scope: Scope, place: _Place) -> None:
        origin = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name == "*":
                scope.stars.append(origin)
                self.index.renamed.add((origin.rpartition(".")[2], "*"))
            else:
                target = f"{origin}.{alias.name}" if node.module else f"{origin}{alias.name}"
                self.imported(alias.asname or alias.name, target, node.lineno, scope, place)

    def imported(self, name: str, target: str, line: int, scope: Scope, place: _Place) -> None:
        scope.bind(name, _bound("import", line, place, target))
        self.index.renamed.add((target.rpartition(".")[2], name))

    def assign(self, node: ast.Assign, scope: Scope, place: _Place) -> None:
        value = node.value
        for target in node.targets:
            self.target(target, value, scope, place)
        self.expression(value, scope, place)

    def annotated(self, node: ast.AnnAssign, scope: Scope, place: _Place) -> None:
        self.target(node.target, node.value, scope, place)
        self.expressions((node.annotation, node.value), scope, place)

    def augmented(self, node: ast.AugAssign, scope: Scope, place: _Place) -> None:
        self.target(node.target, None, scope, place)
        self.expression(node.value, scope, place)

    def alias(self, node: Any, scope: Scope, place: _Place) -> None:
        """``type Name = value``, since Python 3.12."""
        self.target(node.name, None, scope, place)
        self.expression(node.value, scope, place)

    def delete(self, node: ast.Delete, scope: Scope, place: _Place) -> None:
        for target in node.targets:
            self.target(target, None, scope, place)

    def declaration(self, node: ast.Global | ast.Nonlocal, scope: Scope, place: _Place) -> None:
        for name in node.names:
            scope.bind(name, _bound("other", node.lineno, _conditional(place)))
            if isinstance(node, ast.Global):
                self.index.module.bind(name, Bound("other", node.lineno, True))

    def choice(self, node: ast.If, scope: Scope, place: _Place) -> None:
        """``if``, each ``elif``, ``else``: iteratively, because a chain may exceed Python's recursion limit."""
        while True:
            scope.conditions.append(node.test)
            place = place._replace(conditional=True, chosen=True, tests=(*place.tests, node.test))
            self.expression(node.test, scope, place)
            self.body(node.body, scope, place._replace(for_types=True) if _is_for_types(node.test) else place)
            after = node.orelse[0] if len(node.orelse) == 1 else None
            if not isinstance(after, ast.If):
                self.body(node.orelse, scope, place)
                return
            node = after

    def for_(self, node: ast.For | ast.AsyncFor, scope: Scope, place: _Place) -> None:
        inside = _conditional(place)
        self.target(node.target, None, scope, inside)
        self.expression(node.iter, scope, place)
        self.body(node.body, scope, inside)
        self.body(node.orelse, scope, inside)

    def while_(self, node: ast.While, scope: Scope, place: _Place) -> None:
        inside = _conditional(place)
        self.expression(node.test, scope, place)
        self.body(node.body, scope, inside)
        self.body(node.orelse, scope, inside)

    def with_(self, node: ast.With | ast.AsyncWith, scope: Scope, place: _Place) -> None:
        items = tuple(item.context_expr for item in node.items)
        expects = place.expects_error or any(map(expects_errors, items))
        inside = place._replace(within=(*place.within, *items), expects_error=expects)
        for item in node.items:
            self.expression(item.context_expr, scope, inside)
            if item.optional_vars is not None:
                self.target(item.optional_vars, None, scope, inside)
        self.body(node.body, scope, inside)

    def try_(self, node: ast.Try, scope: Scope, place: _Place) -> None:
        inside = _conditional(place)
        caught = inside._replace(handler=True, fallback=True)
        expects = place.expects_error or any(_catches_type_errors(each.type) for each in node.handlers)
        self.body(node.body, scope, inside._replace(expects_error=expects))
        for handler in node.handlers:
            if handler.name is not None:
                scope.bind(handler.name, _bound("other", handler.lineno, inside))
            if handler.type is not None:
                self.expression(handler.type, scope, caught)
            self.body(handler.body, scope, caught)
        self.body(node.orelse, scope, inside)
        self.body(node.finalbody, scope, place)

    def match(self, node: Any, scope: Scope, place: _Place) -> None:
        """``match``, since Python 3.10."""
        inside = place._replace(conditional=True, chosen=True)
        self.expression(node.subject, scope, place)
        for case in node.cases:
            for name in _captured(case.pattern):
                scope.bind(name, _bound("other", case.pattern.lineno, inside))
            self.expressions((case.pattern, case.guard), scope, inside)
            self.body(case.body, scope, inside)

    def target(self, target: ast.expr, value: ast.expr | None, scope: Scope, place: _Place) -> None:
        """What an assignment, a loop or the like binds or stores; ``value`` is None if there is no single value."""
        if isinstance(target, ast.Name):
            if value is None:
                scope.bind(target.id, _bound("other", target.lineno, place))
                return
            scope.bind(target.id, _bound("assign", target.lineno, place, value=value))
            if isinstance(value, ast.Lambda):
                self.lambda_(target.id, value, scope, place)
            if isinstance(value, ast.Attribute):
                self.index.renamed.add((value.attr, target.id))
            elif isinstance(value, ast.Name):
                self.index.renamed.add((value.id, target.id))
        elif isinstance(target, (ast.Tuple, ast.List)):
            values = value.elts if isinstance(value, (ast.Tuple, ast.List)) else ()
            paired = len(values) == len(target.elts) and not any(isinstance(each, ast.Starred) for each in values)
            for position, each in enumerate(target.elts):
                self.target(each, values[position] if paired else None, scope, place)
        elif isinstance(target, ast.Starred):
            self.target(target.value, None, scope, place)
        elif isinstance(target, ast.Attribute):
            self.stored(target.attr, _class_of_receiver(target.value, scope))
            self.index.patches.append(Patch(target.value, target.attr, scope, wraps=_wraps([value], target.attr)))
            if isinstance(value, ast.Attribute) and value.attr == "apply":
                self.index.attribute_aliases.append((target.value, target.attr, value, scope))
            self.expression(target.value, scope, place)
        else:
            self.expression(target, scope, place)

    # Expressions

    def expressions(self, nodes: Iterable[ast.AST | None], scope: Scope, place: _Place) -> None:
        for node in nodes:
            if node is not None:
                self.expression(node, scope, place)

    def expression(self, root: ast.AST, scope: Scope, place: _Place) -> None:
        """Everything inside an expression (or a pattern, …) that the index records."""
        pending: list[Any] = [root]
        for node in pending:
            kind = type(node)
            if kind is ast.Name or kind is ast.Constant:
                continue
            if kind is ast.Attribute:
                if node.attr == "apply":
                    self.index.applied.append((node.value, scope))
                elif node.attr in PROTOCOL:
                    self.index.taken.append((node, scope))
                pending.append(node.value)
                continue
            if kind is ast.Call:
                name = self.call(node, scope, place)
                if name in EXPECT_ERRORS and not place.expects_error:
                    self.expressions(_parts(node), scope, place._replace(expects_error=True))
                    continue
            elif kind is ast.IfExp:
                scope.conditions.append(node.test)
            elif kind is ast.NamedExpr:
                scope.bind(node.target.id, Bound("other", node.lineno, True))
            elif kind in _WITH_OWN_NAMES:
                own = place.own_names.union(_own_names(node))
                self.expressions(_parts(node), scope, place._replace(own_names=own))
                continue
            pending += _BELOW.get(kind, _parts)(node)

    def call(self, node: ast.Call, scope: Scope, place: _Place) -> str:
        """Record a call; returns the last part of the callee's name."""
        func = node.func
        name = func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""
        self.index.calls.append(CallRecord(node, scope, place.within, place.expects_error, name, place.own_names))
        if name in _STRING_ACCESS and isinstance(func, ast.Name) and len(node.args) > _STRING_ACCESS[name]:
            attribute = node.args[1]
            if isinstance(attribute, ast.Constant) and isinstance(attribute.value, str):
                self.stored(attribute.value, _class_of_receiver(node.args[0], scope))
        if len(node.args) > 1 and type(node.args[1]) is ast.Constant:
            owner, method = node.args[0], node.args[1].value
            if method in PROTOCOL and isinstance(owner, (ast.Name, ast.Attribute)) and name not in _READING:
                wraps, by = _wraps(node.args[2:], method), None if _replaces(node.func) else node.func
                self.index.patches.append(Patch(owner, method, scope, wraps=wraps, by_call=True, by=by))
        return name

    def stored(self, attribute: str, owner: str) -> None:
        """Record that an attribute is stored, or named as a string, on an instance or ctx of the class ``owner``."""
        self.index.attributes.add(attribute)
        self.index.attribute_owners.setdefault(attribute, set()).add(owner)


def _replaces(func: ast.expr) -> bool:
    """Whether a call sets the attribute that it gets by its name, or says that it does; not as for a single test."""
    if isinstance(func, ast.Name) and func.id in ("setattr", "delattr"):
        return True
    return replaces(func) or (isinstance(func, ast.Attribute) and func.attr == "__setattr__")


def _wraps(values: Iterable[ast.expr | None], method: str) -> bool:
    """Whether new values of a method of the protocol mention one of its name: they may call it."""
    given = [each for each in values if each is not None] if method in PROTOCOL else []
    return any(isinstance(part, ast.Attribute) and part.attr == method for each in given for part in nodes_in(each))


def _class_of_receiver(target: ast.expr, scope: Scope) -> str:
    """The class of the method whose first parameter this is, or whose ``__new__`` makes it; empty for anything else.

    It is the method for ``__init__`` and ``__post_init__``.
    """
    if scope.kind != "function" or scope.parent is None or scope.parent.kind != "class":
        return ""
    bound = scope.names.get(target.id, []) if isinstance(target, ast.Name) else []
    if not isinstance(target, ast.Name) or len(bound) != 1:
        return ""
    made = scope.qualname.endswith(".__new__") and isinstance(bound[0].value, ast.Call)
    if target.id != next(iter(scope.names)) and not made:
        return ""
    return scope.qualname if scope.qualname.endswith(INITIALISERS) else scope.parent.qualname


INITIALISERS = (".__init__", ".__post_init__")
"""The ends of the names of methods that set the attributes of new objects."""

_STATEMENTS: dict[type[ast.AST], Callable[..., None]] = {
    ast.Expr: _Indexer.valued,
    ast.Return: _Indexer.valued,
    ast.FunctionDef: _Indexer.function,
    ast.AsyncFunctionDef: _Indexer.function,
    ast.ClassDef: _Indexer.class_,
    ast.Import: _Indexer.import_,
    ast.ImportFrom: _Indexer.import_from,
    ast.Assign: _Indexer.assign,
    ast.AnnAssign: _Indexer.annotated,
    ast.AugAssign: _Indexer.augmented,
    ast.Delete: _Indexer.delete,
    ast.Global: _Indexer.declaration,
    ast.Nonlocal: _Indexer.declaration,
    ast.If: _Indexer.choice,
    ast.For: _Indexer.for_,
    ast.AsyncFor: _Indexer.for_,
    ast.While: _Indexer.while_,
    ast.With: _Indexer.with_,
    ast.AsyncWith: _Indexer.with_,
    ast.Try: _Indexer.try_,
}
for _name, _walk in (("Match", _Indexer.match), ("TryStar", _Indexer.try_), ("TypeAlias", _Indexer.alias)):
    if hasattr(ast, _name):
        _STATEMENTS[getattr(ast, _name)] = _walk
"""The handlers of statements, by type; ``_Indexer.other`` for all others."""

_BELOW: dict[type[Any], Callable[[Any], Sequence[ast.AST | None]]] = {
    type(None): lambda _node: (),  # a missing end of a slice, or a missing key of a dictionary
    ast.BinOp: attrgetter("left", "right"),
    ast.BoolOp: attrgetter("values"),
    ast.Call: lambda node: [node.func, *node.args, *node.keywords],
    ast.Compare: lambda node: [node.left, *node.comparators],
    ast.Dict: lambda node: [*node.keys, *node.values],
    ast.FormattedValue: attrgetter("value", "format_spec"),
    ast.IfExp: attrgetter("test", "body", "orelse"),
    ast.JoinedStr: attrgetter("values"),
    ast.List: attrgetter("elts"),
    ast.NamedExpr: lambda node: (node.value,),
    ast.Slice: attrgetter("lower", "upper", "step"),
    ast.Starred: lambda node: (node.value,),
    ast.Subscript: attrgetter("value", "slice"),
    ast.Tuple: attrgetter("elts"),
    ast.UnaryOp: lambda node: (node.operand,),
    ast.comprehension: lambda node: [node.iter, *node.ifs],  # the targets are local to the comprehension
    ast.keyword: lambda node: (node.value,),
}
"""The children of the most frequent expressions; ``_parts`` for all others."""


_WITH_OWN_NAMES = frozenset({ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda})


def _own_names(node: Any) -> list[str]:
    """The names that a comprehension or a lambda binds."""
    if isinstance(node, ast.Lambda):
        return [each.arg for each in nodes_in(node.args) if isinstance(each, ast.arg)]
    targets = (each for generator in node.generators for each in nodes_in(generator.target))
    return [each.id for each in targets if isinstance(each, ast.Name)]


def _parts(node: ast.AST) -> list[ast.AST]:
    """All direct children of a node."""
    found: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            found.append(value)
        elif isinstance(value, list):
            found += [each for each in value if isinstance(each, ast.AST)]
    return found


def _captured(pattern: ast.AST) -> Iterator[str]:
    """The names that the pattern of a ``case`` binds."""
    for each in nodes_in(pattern):
        names = (getattr(each, "name", None), getattr(each, "rest", None))  # MatchAs and MatchStar; MatchMapping
        yield from (name for name in names if name is not None)


def _bound(kind: str, line: int, place: _Place, target: str = "", value: ast.expr | None = None) -> Bound:
    """A binding at a place."""
    return Bound(kind, line, place.conditional, target, value, place.chosen, place.handler, place.for_types)


def _is_for_types(test: ast.expr) -> bool:
    """Whether a test is ``TYPE_CHECKING``, which is false at run time."""
    return (test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")) == "TYPE_CHECKING"


def _conditional(place: _Place) -> _Place:
    return place if place.conditional else place._replace(conditional=True)


def _catches_type_errors(node: ast.expr | None) -> bool:
    """Whether a handler is there for calls with the wrong arguments, or of what is not there: it names the error."""
    names = node.elts if isinstance(node, ast.Tuple) else (node,)
    return any(isinstance(each, ast.Name) and each.id in ("TypeError", "NotImplementedError") for each in names)


def _join(scope: Scope, name: str) -> str:
    return f"{scope.qualname}.{name}" if scope.qualname else name
