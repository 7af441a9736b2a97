"""Which names a function binds."""

from __future__ import annotations

import libcst as cst


def bound_names(function: cst.FunctionDef) -> frozenset[str]:
    """Every name that a function binds: parameters, targets, imports, nested definitions. ``global`` names are not."""
    found: set[str] = set()
    free: set[str] = set()
    for param in _parameters(function.params):
        found.add(param.name.value)
    _bind_block(function.body, found, free)
    return frozenset(found - free)


def _parameters(params: cst.Parameters) -> list[cst.Param]:
    listed = [*params.posonly_params, *params.params, *params.kwonly_params]
    if isinstance(params.star_arg, cst.Param):
        listed.append(params.star_arg)
    if params.star_kwarg is not None:
        listed.append(params.star_kwarg)
    return listed


def assigned_in(body: cst.BaseSuite) -> frozenset[str]:
    found: set[str] = set()
    _bind_block(body, found, set())
    return frozenset(found)


def _bind_block(node: cst.CSTNode, found: set[str], free: set[str]) -> None:
    for child in node.children:
        if isinstance(child, (cst.FunctionDef, cst.ClassDef)):
            found.add(child.name.value)
        elif isinstance(child, (cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.For, cst.NamedExpr)):
            _bind_target(child.target, found)
            _bind_block(child, found, free)
        elif isinstance(child, cst.AsName):
            _bind_target(child.name, found)
        elif isinstance(child, cst.ImportAlias):
            name = child.evaluated_alias or child.evaluated_name.partition(".")[0]
            found.add(name)
        elif isinstance(child, cst.Global):
            free.update(item.name.value for item in child.names)
        elif isinstance(child, (cst.MatchAs, cst.MatchStar)) and child.name is not None:
            found.add(child.name.value)
            _bind_block(child, found, free)
        elif isinstance(child, (cst.Lambda, cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp)):
            continue
        elif not isinstance(child, _LEAVES):
            _bind_block(child, found, free)


_LEAVES = (
    cst.Name,
    cst.SimpleString,
    cst.Integer,
    cst.Float,
    cst.Attribute,
    cst.SimpleWhitespace,
    cst.TrailingWhitespace,
    cst.EmptyLine,
    cst.Newline,
    cst.Return,
)


def _bind_target(target: cst.CSTNode, found: set[str]) -> None:
    if isinstance(target, cst.Name):
        found.add(target.value)
    elif isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            _bind_target(element.value, found)
    elif isinstance(target, cst.StarredElement):
        _bind_target(target.value, found)
