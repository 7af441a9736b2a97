"""Source text as a tree of ``ast``, and the nodes of one."""

from __future__ import annotations

import ast
import warnings
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from ctxlint.source.nesting import too_deep_for_ast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


def tree_of(text: str) -> ast.Module | None:
    """The tree of a text; None if Python cannot parse it. Other linters report what Python warns of."""
    if too_deep_for_ast(text) is not None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def nodes_in(top: ast.AST) -> list[ast.AST]:
    """A node and all in it, in the order of ``ast.walk`` and in half its time, but without contexts and operators."""
    found = [top]
    for node in found:
        for name in _FIELDS[type(node)]:
            value = getattr(node, name, None)
            if type(value) is list:
                found += value if name not in _WITH_GAPS else [each for each in value if each is not None]
            elif value is not None:
                found.append(value)
    return found


def own_nodes(top: ast.AST) -> tuple[list[ast.AST], list[Scoped]]:
    """A node and what is in its own scope, and the functions and classes there, whose insides are left out."""
    found, inner = [top], list[Scoped]()
    for node in found:
        for name in _FIELDS[type(node)]:
            value = getattr(node, name, None)
            if isinstance(value, ast.AST):
                found.append(value)
            elif isinstance(value, list) and name in _STATEMENTS:
                inner += [each for each in value if type(each) in _SCOPED]
                found += [each for each in value if type(each) not in _SCOPED]
            elif isinstance(value, list):
                found += [each for each in value if isinstance(each, ast.AST)]
    return found, inner


def head_of(top: ast.AST) -> tuple[list[ast.AST], list[ast.stmt]]:
    """A node and what is in it outside of statements, and the outermost statements inside."""
    found, inner = [top], list[ast.stmt]()
    for node in found:
        for name in _FIELDS[type(node)]:
            value = getattr(node, name, None)
            if isinstance(value, ast.AST):
                found.append(value)
            elif isinstance(value, list) and name in _STATEMENTS:
                inner += value
            elif isinstance(value, list):
                found += [each for each in value if isinstance(each, ast.AST)]
    return found, inner


Scoped = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
"""The statements with a scope of their own."""
_SCOPED = frozenset({ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef})
_STATEMENTS = frozenset({"body", "orelse", "finalbody"})
"""The fields with statements; those of an expression contain one node."""


def bound_in(top: ast.AST, own: Iterable[ast.AST], inner: Iterable[Scoped]) -> set[str]:
    """The names that a scope binds: its parameters, and those that its own nodes and the statements ``inner`` bind."""
    found = {each.name for each in inner}.union(bound_names(each for each in own if each is not top))
    if isinstance(top, (ast.FunctionDef, ast.AsyncFunctionDef)):
        stars = (top.args.vararg, top.args.kwarg)
        found.update(parameter_names(top.args), (each.arg for each in stars if each is not None))
    return found


def parameter_names(arguments: ast.arguments) -> list[str]:
    """The names of the parameters, in order, without ``*args`` and ``**kwargs``."""
    return [*positional_names(arguments), *(each.arg for each in arguments.kwonlyargs)]


def positional_names(arguments: ast.arguments) -> list[str]:
    """The names of the parameters that take arguments by position, in order, without ``*args``."""
    return [each.arg for each in (*arguments.posonlyargs, *arguments.args)]


def bound_names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The names that some nodes bind or delete: assignments, imports, definitions, handlers and patterns."""
    for node in nodes:
        if type(node) is ast.Name and type(node.ctx) is not ast.Load:
            yield node.id
        if type(node) not in _BINDING:
            continue
        match node:
            case ast.alias(name=name, asname=other):
                yield (other or name).partition(".")[0]
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name
            case ast.MatchMapping(rest=str(name)):
                yield name


_BINDING = frozenset(
    {
        ast.alias,
        ast.FunctionDef,
        ast.AsyncFunctionDef,
        ast.ClassDef,
        ast.ExceptHandler,
        ast.MatchAs,
        ast.MatchStar,
        ast.MatchMapping,
    }
)


def defaults_of(arguments: ast.arguments) -> dict[str, ast.expr]:
    """The defaults of the parameters that have one, by name."""
    positional = [*arguments.posonlyargs, *arguments.args]
    by_position = zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults)
    by_name = zip(arguments.kwonlyargs, arguments.kw_defaults)
    return {each.arg: value for each, value in (*by_position, *by_name) if value is not None}


def gives_back(function: ast.AST | None) -> bool:
    """Whether a plain function, or a lambda, certainly returns its first parameter: at its end, and nowhere else."""
    if isinstance(function, ast.Lambda):
        returned: ast.expr | None = function.body
    elif isinstance(function, ast.FunctionDef) and not function.decorator_list:
        last = function.body[-1]
        returned = last.value if isinstance(last, ast.Return) else None
    else:
        return False
    nodes = nodes_in(function)
    inner = [each for each in nodes if isinstance(each, (ast.Return, ast.Yield, ast.FunctionDef, ast.Lambda))]
    stored = {each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    params = positional_names(function.args)
    plain = bool(params) and len(inner) == 1 + isinstance(function, ast.FunctionDef)
    return plain and isinstance(returned, ast.Name) and returned.id == params[0] not in stored


class _Fields(dict[type[ast.AST], tuple[str, ...]]):
    """The names of the fields that contain nodes, by node type: one, a list of them, or None."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        names = kind._fields if kind not in _LEAVES else ()
        self[kind] = found = tuple(each for each in names if each not in _WITHOUT_NODES or (kind, each) in _NODES)
        return found


_FIELDS = _Fields()
_LEAVES = frozenset({ast.Constant, ast.Global, ast.MatchSingleton, ast.Nonlocal, ast.alias})
_WITHOUT_NODES = frozenset(
    str.split(
        "arg asname attr conversion ctx id is_async kind kwd_attrs level lineno module name op rest simple str tag "
        "type_comment"
    )
)
_NODES = frozenset({(getattr(ast, "TypeAlias", None), "name")})
"""Fields with nodes whose names are those of fields without elsewhere."""
_WITH_GAPS = frozenset({"keys", "kw_defaults"})
"""Lists with None for what is not there: ``{**other}``, ``def f(*, x)``."""


class Collected:
    """What is collected from the nodes of some code.

    That of a simple statement is cached as long as its tree: in an editor most are the same ones after each keystroke.
    """

    def __init__(self, work: Callable[[Iterable[ast.AST]], Iterable[str]]) -> None:
        """``work`` collects from some nodes, each by itself."""
        self._work = work
        self._known: WeakKeyDictionary[ast.AST, frozenset[str]] = WeakKeyDictionary()

    def within(self, root: ast.AST) -> frozenset[str]:
        """What is collected from ``root`` and everything below it."""
        found: set[str] = set()
        above: list[ast.AST] = [root]
        for node in above:  # grows during iteration
            if type(node) not in _SIMPLE:
                above += ast.iter_child_nodes(node)
                continue
            known = self._known.get(node)
            if known is None:
                known = self._known[node] = frozenset(self._work(nodes_in(node)))
            found |= known
        return frozenset(found.union(self._work(node for node in above if type(node) not in _SIMPLE)))


_SIMPLE = frozenset({ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Assert, ast.Delete, ast.Expr, ast.Raise, ast.Return})
"""Statements without others inside."""
