"""The names that a function binds, those that a nested definition captures, and whether it yields."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.syntax import children, kept, parents_below

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator

Definition = cst.FunctionDef | cst.Lambda | cst.ClassDef

_COMPREHENSIONS = (cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp)


def bound_names(function: cst.FunctionDef, walrus: bool = True) -> frozenset[str]:
    """Every name that a function binds: parameters, targets, imports, nested definitions, without ``global`` names.

    If its text is known to contain no ``walrus``, expressions are not searched.
    """
    bound: set[str] = set()
    outer: set[str] = set()
    for statement in children(function.body):
        names, declared = kept(statement, _bound_anywhere if walrus else _bound_by_statements)
        bound |= names
        outer |= declared
    return frozenset((bound - outer).union(param.name.value for param in _parameters(function.params)))


def _bound_anywhere(statement: cst.CSTNode) -> tuple[frozenset[str], frozenset[str]]:
    """The names that a statement binds, and those that it declares ``global`` or ``nonlocal``."""
    return _bound_outside_of(_BIND_NOTHING, statement)


def _bound_by_statements(statement: cst.CSTNode) -> tuple[frozenset[str], frozenset[str]]:
    return _bound_outside_of(_EXPRESSIONS, statement)


def _bound_outside_of(kinds: Container[type], statement: cst.CSTNode) -> tuple[frozenset[str], frozenset[str]]:
    found: Counter[str] = Counter()
    outer: set[str] = set()
    _bindings([statement], found, outer, kinds)
    return frozenset(found), frozenset(outer)


def times_bound(body: cst.CSTNode, walrus: bool = True) -> Counter[str]:
    """How many places in a body bind each name. Names that it declares ``global`` or ``nonlocal`` count zero."""
    found: Counter[str] = Counter()
    outer: set[str] = set()
    _bindings(children(body), found, outer, _BIND_NOTHING if walrus else _EXPRESSIONS)
    for name in outer:
        found[name] = 0
    return found


def only_assigned(function: cst.FunctionDef, name: str) -> cst.BaseExpression | None:
    """What a name is assigned in a function, if that is all that binds it there."""
    assigned = [
        each.value
        for each in parents_below(function.body)
        if isinstance(each, cst.Assign)
        and len(each.targets) == 1
        and isinstance(each.targets[0].target, cst.Name)
        and each.targets[0].target.value == name
    ]
    return assigned[0] if len(assigned) == times_bound(function.body)[name] == 1 else None


def borrowed_names(node: Definition) -> frozenset[str]:
    """The names of the enclosing function that a nested function, lambda or class may read or bind."""
    found: set[str] = set()
    if isinstance(node, cst.ClassDef):
        _reads(node, found)
        return frozenset(found)
    for param in _parameters(node.params):
        if param.default is not None:
            _reads_of(param.default, found)
    inner: set[str] = set()
    if isinstance(node, cst.FunctionDef):
        _reads(node.body, inner)
        return frozenset(found | (inner - bound_names(node)))
    _reads_of(node.body, inner)
    return frozenset(found | inner.difference(param.name.value for param in _parameters(node.params)))


def only_called(body: cst.CSTNode) -> frozenset[str]:
    """The names that a body binds once, and that are called wherever else it mentions them."""
    used: set[str] = set()
    _uses_but_calls(body, used)
    return frozenset(name for name, times in times_bound(body).items() if times == 1 and name not in used)


def _uses_but_calls(node: cst.CSTNode, found: set[str]) -> None:
    if isinstance(node, cst.Name):
        found.add(node.value)
    for child in children(node):
        if isinstance(node, (cst.Attribute, cst.Arg)) and child is not node.value:
            continue
        if isinstance(node, cst.Call) and child is node.func and isinstance(child, cst.Name):
            continue
        if isinstance(node, (cst.FunctionDef, cst.ClassDef)) and child is node.name:
            continue
        _uses_but_calls(child, found)


def has_computed_default(node: cst.FunctionDef) -> bool:
    """Whether a default of a parameter is more than a literal."""
    defaults = [param.default for param in _parameters(node.params) if param.default is not None]
    literals = (cst.BaseNumber, cst.SimpleString)
    named = ("None", "True", "False")
    return any(
        not isinstance(each, literals) and not (isinstance(each, cst.Name) and each.value in named) for each in defaults
    )


def rebound_from_inside(node: cst.CSTNode) -> frozenset[str]:
    """The names that a nested definition, at any depth, declares ``nonlocal``."""
    if isinstance(node, cst.Nonlocal):
        return frozenset(item.name.value for item in node.names)
    return frozenset(name for child in children(node) for name in rebound_from_inside(child))


def yields(node: cst.CSTNode) -> bool:
    """Whether a piece of code contains a ``yield``, not counting nested functions."""
    if isinstance(node, cst.Yield):
        return True
    if isinstance(node, (cst.FunctionDef, cst.ClassDef, cst.Lambda)):
        return False
    return any(yields(child) for child in children(node))


def _parameters(params: cst.Parameters) -> list[cst.Param]:
    listed = [*params.posonly_params, *params.params, *params.kwonly_params]
    if isinstance(params.star_arg, cst.Param):
        listed.append(params.star_arg)
    if params.star_kwarg is not None:
        listed.append(params.star_kwarg)
    return listed


def _bindings(pending: list[cst.CSTNode], found: Counter[str], outer: set[str], bind_nothing: Container[type]) -> None:
    for each in pending:  # grows during iteration
        kind = type(each)
        if kind in bind_nothing:
            continue
        bind = _BINDERS.get(kind)
        if bind is not None:
            for name in bind(each):
                found[name] += 1
        if kind in _DECLARATIONS:
            outer.update(item.name.value for item in each.names)  # type: ignore[attr-defined]
        elif kind not in _CLOSED:
            pending += children(each)


def _kinds_of(base: type[object]) -> Iterator[type]:
    for kind in base.__subclasses__():
        yield kind
        yield from _kinds_of(kind)


_BIND_NOTHING = frozenset({cst.Name, cst.SimpleString, cst.Integer, cst.Float, cst.Lambda, cst.Pass})
_EXPRESSIONS = frozenset(_kinds_of(cst.BaseExpression))
_DECLARATIONS = frozenset({cst.Global, cst.Nonlocal})
_CLOSED = frozenset({cst.FunctionDef, cst.ClassDef, cst.ImportAlias})
"""Nodes that bind a name themselves, and contain no other binding of the same scope."""


def target_names(target: cst.CSTNode) -> Iterator[str]:
    """The plain names that an assignment to ``target`` binds."""
    if isinstance(target, cst.Name):
        yield target.value
    elif isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            yield from target_names(element.value)
    elif isinstance(target, cst.StarredElement):
        yield from target_names(target.value)


def captured_by(pattern: cst.CSTNode) -> list[str]:
    """The name that a pattern of a ``case`` binds itself; nested patterns are not searched."""
    name = None
    if isinstance(pattern, (cst.MatchAs, cst.MatchStar)):
        name = pattern.name
    elif isinstance(pattern, cst.MatchMapping):
        name = pattern.rest
    return [name.value] if name is not None else []


def _reads(node: cst.CSTNode, found: set[str]) -> None:
    for child in children(node):
        _reads_of(child, found)


def _reads_of(node: cst.CSTNode, found: set[str]) -> None:
    if isinstance(node, cst.Name):
        found.add(node.value)
    elif isinstance(node, (cst.Attribute, cst.Arg)):
        _reads_of(node.value, found)
    elif isinstance(node, (cst.FunctionDef, cst.Lambda)):
        found.update(borrowed_names(node))
    elif isinstance(node, _COMPREHENSIONS):
        inner: set[str] = set()
        _reads(node, inner)
        found.update(inner.difference(_comprehension_targets(node.for_in)))
    else:
        _reads(node, found)


def _comprehension_targets(clause: cst.CompFor | None) -> Iterator[str]:
    while clause is not None:
        yield from target_names(clause.target)
        clause = clause.inner_for_in


def _imported(node: cst.ImportAlias) -> list[str]:
    return [node.evaluated_alias or node.evaluated_name.partition(".")[0]]


_BINDERS: dict[type, Callable[..., Iterable[str]]] = {
    cst.FunctionDef: lambda node: [node.name.value],
    cst.ClassDef: lambda node: [node.name.value],
    cst.AssignTarget: lambda node: target_names(node.target),
    cst.AnnAssign: lambda node: target_names(node.target),
    cst.AugAssign: lambda node: target_names(node.target),
    cst.For: lambda node: target_names(node.target),
    cst.NamedExpr: lambda node: target_names(node.target),
    cst.AsName: lambda node: target_names(node.name),
    cst.ImportAlias: _imported,
    cst.MatchAs: captured_by,
    cst.MatchStar: captured_by,
    cst.MatchMapping: captured_by,
}
"""The names that a node binds itself, by node type."""


BINDING = frozenset(
    (
        cst.FunctionDef,
        cst.ClassDef,
        cst.AssignTarget,
        cst.AnnAssign,
        cst.AugAssign,
        cst.For,
        cst.NamedExpr,
        cst.CompFor,
        cst.Del,
        cst.AsName,
        cst.ImportAlias,
        cst.Global,
        cst.Nonlocal,
        cst.MatchAs,
        cst.MatchStar,
        cst.MatchMapping,
    )
)
"""The nodes that bind or delete names."""


def bound_by(node: cst.CSTNode) -> Iterable[str]:
    """The names that a node itself binds or deletes."""
    if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
        return (node.name.value,)
    if isinstance(node, (cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.For, cst.NamedExpr, cst.CompFor, cst.Del)):
        return target_names(node.target)
    if isinstance(node, cst.AsName):
        return target_names(node.name)
    if isinstance(node, cst.ImportAlias):
        return (node.evaluated_alias or node.evaluated_name.partition(".")[0],)
    if isinstance(node, (cst.Global, cst.Nonlocal)):
        return tuple(item.name.value for item in node.names)
    if isinstance(node, (cst.MatchAs, cst.MatchStar, cst.MatchMapping)):
        return captured_by(node)
    return ()
