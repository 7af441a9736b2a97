"""Which arguments of a call may have any layout in memory: those that the caller was passed, and certain views."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ctxlint.patterns import pattern
from ctxlint.torch_api.operations import CONVERSIONS, FLOAT_CONVERSIONS, LAYOUT_CHANGING_VIEWS, VIEW_METHODS

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctxlint.model.index.file_index import FileIndex
    from ctxlint.model.index.scopes import Scope


def may_have_any_layout(node: ast.expr, scope: Scope, index: FileIndex, hops: int = 0) -> bool:
    """Whether an argument is a parameter of the calling function, or a view that is usually not contiguous.

    Also what keeps the layout of such a tensor: a name for it, a conversion, another view.
    """
    if hops > _MAX_HOPS:
        return False
    if isinstance(node, ast.Name):
        return _is_name_of_any_layout(node, scope, index, hops)
    if isinstance(node, ast.Subscript):
        if _selects_rows(node.slice, scope, hops):
            return False
        slices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return any(isinstance(each, ast.Slice) for each in slices) or may_have_any_layout(
            node.value, scope, index, hops + 1
        )
    called = node.func if isinstance(node, ast.Call) else node
    if not isinstance(called, ast.Attribute):
        return False
    if called.attr in LAYOUT_CHANGING_VIEWS:
        return True
    return called.attr in _KEEPS_THE_LAYOUT and may_have_any_layout(called.value, scope, index, hops + 1)


def _selects_rows(index: ast.expr, scope: Scope, hops: int) -> bool:
    """Whether an index is certainly a tensor of numbers or a mask: ``x[order]`` has memory of its own."""
    if isinstance(index, ast.Compare):
        return True
    if isinstance(index, ast.Call):
        return isinstance(index.func, ast.Attribute) and index.func.attr in _GIVES_INDICES
    owner = scope.owner(index.id) if isinstance(index, ast.Name) and hops <= _MAX_HOPS else None
    if owner is None or not isinstance(index, ast.Name):
        return False
    bound = [each.value for each in owner.live(index.id, index.lineno if owner is scope else None)]
    return bool(bound) and all(each is not None and _selects_rows(each, owner, hops + 1) for each in bound)


def _is_name_of_any_layout(node: ast.Name, scope: Scope, index: FileIndex, hops: int) -> bool:
    owner = scope.owner(node.id)
    if owner is None:
        return False
    parameter_line = _line_of_parameter(node.id, owner, index)
    return any(
        bound.line == parameter_line
        or (bound.value is not None and may_have_any_layout(bound.value, owner, index, hops + 1))
        for bound in owner.live(node.id, node.lineno if owner is scope else None)
    )


def _line_of_parameter(name: str, owner: Scope, index: FileIndex) -> int | None:
    """The line on which a scope binds a name as a parameter."""
    entry = index.function_of(owner)
    if entry is None:
        return None
    arguments = entry.node.args
    parameters = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    return entry.node.lineno if any(each.arg == name for each in parameters) else None


def sliced_dimensions(node: ast.expr, bound: Callable[[ast.Name], ast.expr | None]) -> tuple[int, int]:
    """The first dimension but dimension 0 of which ``x[:, 1:, :]`` takes a part, and how many dimensions it names.

    Zeros unless it consists of slices, or names that are ``bound`` to some, and takes all of dimension 0.
    """
    parts = node.slice.elts if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) else []
    found = [_part_taken(bound(each) if isinstance(each, ast.Name) else each) for each in parts]
    if len(found) < 2 or None in found or found[0] is True or True not in found:
        return 0, 0
    return found.index(True), len(found)


_SIZE = pattern(r"[\w.]+\.(shape\[-?\d+\]|size\(-?\d+\))|len\(\w+\)")
"""The end of all of a dimension, perhaps."""


def _part_taken(index: ast.expr | None) -> bool | None:
    """Whether a slice takes a part of a dimension, not all of it; None if it is no slice, or takes one element."""
    if isinstance(index, ast.IfExp):
        both = {_part_taken(index.body), _part_taken(index.orelse)}
        return both.pop() if len(both) == 1 else None
    if isinstance(index, ast.Slice):
        parts = (index.lower, index.upper, index.step)
        first, end, step = (ast.unparse(each) if each is not None else "" for each in parts)
        if (first, end) in (("-1", ""), ("", "1"), ("0", "1")) or end == f"{first} + 1":
            return None
        if _SIZE.fullmatch(end):
            return None
        return first not in ("", "0", "None") or end not in ("", "None") or step not in ("", "1", "None")
    if not isinstance(index, ast.Call) or not isinstance(index.func, ast.Name) or index.func.id != "slice":
        return None
    return any(ast.unparse(each) != "None" for each in index.args)


_MAX_HOPS = 4

_GIVES_INDICES = frozenset({"argsort", "arange", "logical_and", "logical_not", "logical_or", "nonzero", "randperm"})
"""Functions and methods whose result is a tensor of numbers or a mask; a single ``argmax`` is one as well."""

_KEEPS_THE_LAYOUT = CONVERSIONS | FLOAT_CONVERSIONS | VIEW_METHODS | {"data"}
"""Methods and attributes whose result has the layout of their tensor, in the main."""
