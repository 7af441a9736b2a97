"""Classes that a function defines again in each of its calls, only to use them there."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

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
    calls = {
        id(node.func.value): node
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "apply"
    }
    inside = {id(node) for node in ast.walk(defined)}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id == defined.name and id(node) not in inside:
            yield calls.get(id(node))


def _is_returned(function: _Function, call: ast.Call) -> bool:
    """Whether a call is in a ``return`` of the function, or bound to a name that one mentions."""
    nested = {
        id(each)
        for node in ast.walk(function)
        if node is not function and _is_function(node)
        for each in ast.walk(node)
    }
    mine = [node for node in ast.walk(function) if id(node) not in nested]
    names = {
        target.id
        for node in mine
        if isinstance(node, ast.Assign) and node.value is call
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    returned = (
        each for node in mine if isinstance(node, ast.Return) for each in ast.walk(node) if id(each) not in nested
    )
    return any(each is call or (isinstance(each, ast.Name) and each.id in names) for each in returned)


def _is_function(node: ast.AST) -> bool:
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))


def _closed_over(record: ClassRecord) -> Iterator[str]:
    """The names of the functions around a class that its methods use, in order."""
    nodes = [*ast.walk(record.node)]
    own = {each.arg for each in nodes if isinstance(each, ast.arg)}
    own |= {each.id for each in nodes if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)}
    names = [each for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)]
    outer = record.scope.function_locals() - own - {record.node.name}
    yield from dict.fromkeys(
        each.id for each in sorted(names, key=lambda each: (each.lineno, each.col_offset)) if each.id in outer
    )
