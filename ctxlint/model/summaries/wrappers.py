"""Decorators of the project: the function that takes the place of the one that they decorate."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from ctxlint.model.index.project import Definition

if TYPE_CHECKING:
    from collections.abc import Iterator


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
    return {each.id for each in ast.walk(function) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """The statements and expressions in a function, without those of nested functions."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            yield from _own(child)
