"""Decorators of the project: the function that takes the place of the one that they decorate."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from ctxlint.model.index.project import Definition
from ctxlint.model.index.scopes import LOCAL, dotted_name, resolve_certainly
from ctxlint.model.summaries.callables import owner_of
from ctxlint.source.ast_tree import nodes_in
from ctxlint.torch_api.known_decorators import SIGNATURE_KEEPING_DECORATORS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.index.module_unit import Unit
    from ctxlint.model.index.project import Project


class Wrapper(NamedTuple):
    """What a decorator returns, None for the decorated function itself, and its name for that."""

    definition: Definition | None
    wrapped: str


def wrapper_of(decorator: Definition, called: bool) -> Wrapper | None:
    """What a decorator, or the one that it returns if it is ``called``, makes of a function; None if unknown."""
    record = decorator.unit.index.functions.get(decorator.qualname)
    if (
        record is None
        or not record.certain
        or not isinstance(record.node, ast.FunctionDef)
        or record.node.decorator_list
    ):
        return None
    returned = _returned(record.node)
    inner = Definition(decorator.unit, f"{decorator.qualname}.{returned}")
    if called:
        return wrapper_of(inner, called=False)
    arguments = record.node.args
    params = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
    if len(params) != 1 or returned is None or params[0] in _stored(record.node):
        return None
    if returned == params[0]:
        return Wrapper(None, returned)
    return Wrapper(inner, params[0]) if inner.qualname in decorator.unit.index.functions else None


def changes_nothing(project: Project, unit: Unit, name: str) -> bool:
    """Whether a module binds a name only to decorators that pass all arguments on, also inside its functions.

    ``jit_fuser = torch.jit.script``, and a function that does nothing where that is not wanted.
    """
    found = owner_of(project, unit, name)
    tree = found[0].tree if found is not None else None
    if found is None or found[1] or tree is None:
        return False
    home, _owner, last, module = found
    if any(bound.kind not in ("assign", "other") for bound in module.names.get(last, ())):
        return False
    stores, values = 0, []
    for node in nodes_in(tree):
        stores += isinstance(node, ast.Name) and node.id == last and isinstance(node.ctx, ast.Store)
        if isinstance(node, ast.Assign) and dotted_name(node.targets[0]) == last:
            values.append(node.value)
    return 0 < stores == len(values) and all(_passes_on(home, value) for value in values)


def _passes_on(unit: Unit, value: ast.expr) -> bool:
    """Whether a decorator is a known one that passes all arguments on, or returns what it decorates."""
    meant = resolve_certainly(dotted_name(value) or "", unit.index.module) or ""
    if meant in SIGNATURE_KEEPING_DECORATORS:
        return True
    wrapper = wrapper_of(Definition(unit, meant[len(LOCAL) :]), called=False) if meant.startswith(LOCAL) else None
    return wrapper is not None and wrapper.definition is None


def _returned(function: ast.FunctionDef) -> str | None:
    """The name that a function returns in its only ``return``, the last statement; bound at most once."""
    last = function.body[-1]
    if not isinstance(last, ast.Return) or not isinstance(last.value, ast.Name):
        return None
    name = last.value.id
    own = list(_own(function))
    times = sum(isinstance(each, ast.FunctionDef) and each.name == name for each in own)
    alone = sum(isinstance(each, ast.Return) for each in own) == 1 and times < 2
    return name if alone and name not in _stored(function) else None


def _stored(function: ast.FunctionDef) -> set[str]:
    """The names that a function, or one in it, assigns."""
    return {each.id for each in nodes_in(function) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """The statements and expressions in a function, without those of nested functions."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            yield from _own(child)
