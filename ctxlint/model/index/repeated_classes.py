"""Classes that a function defines again in each of its calls, only to use them there."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ctxlint.source.ast_tree import nodes_in, own_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.index.file_index import ClassRecord, FileIndex

    _Function = ast.FunctionDef | ast.AsyncFunctionDef


_PLAIN = frozenset(["staticmethod", "classmethod"])
"""The decorators with which each call of a function runs its body."""


def repeated_in(record: ClassRecord, index: FileIndex) -> tuple[str, tuple[str, ...]] | None:
    """The function that defines a class and returns what its ``apply`` gives, and its names that the class uses.

    None if it may run only once, such as a test, or if it does something else with the class, such as return it.
    """
    function = index.function_of(record.scope)
    if function is None or record.scope.is_of_a_test or function.node.name == "main":
        return None
    if any(not (isinstance(each, ast.Name) and each.id in _PLAIN) for each in function.node.decorator_list):
        return None
    applied = [*_applied(function.node, record.node)]
    if None in applied or not any(_is_returned(function.node, each) for each in applied if each is not None):
        return None
    return function.node.name, tuple(_closed_over(record))


def _applied(function: _Function, defined: ast.ClassDef) -> Iterator[ast.Call | None]:
    """The calls of ``apply`` of a class in the function around it; None for each other use of its name."""
    nodes, inside = nodes_in(function), {id(each) for each in nodes_in(defined)}
    calls = {
        id(each.func.value): each
        for each in nodes
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr == "apply"
    }
    for each in nodes:
        if isinstance(each, ast.Name) and each.id == defined.name and id(each) not in inside:
            yield calls.get(id(each))


def _is_returned(function: _Function, call: ast.Call) -> bool:
    """Whether a call is in a ``return`` of the function, or bound to a name that one mentions."""
    nodes = own_nodes(function)[0]
    later = {id(part) for each in nodes if isinstance(each, ast.Lambda) for part in nodes_in(each)}
    names = {
        target.id
        for each in nodes
        if isinstance(each, ast.Assign) and each.value is call
        for target in each.targets
        if isinstance(target, ast.Name)
    }
    returned = (part for each in nodes if isinstance(each, ast.Return) for part in nodes_in(each))
    now = (each for each in returned if id(each) not in later)
    return any(each is call or (isinstance(each, ast.Name) and each.id in names) for each in now)


def _closed_over(record: ClassRecord) -> Iterator[str]:
    """The names of the functions around a class that its methods use, in order."""
    nodes = nodes_in(record.node)
    own = {each.arg for each in nodes if isinstance(each, ast.arg)}
    own |= {each.id for each in nodes if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)}
    names = [each for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)]
    outer = record.scope.function_locals() - own - {record.node.name}
    yield from dict.fromkeys(
        each.id for each in sorted(names, key=lambda each: (each.lineno, each.col_offset)) if each.id in outer
    )
