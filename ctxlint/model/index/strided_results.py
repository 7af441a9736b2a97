"""Calls whose result the caller rearranges, so that its gradient is not contiguous, as a rule."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Literal

from ctxlint.model.index.results import located
from ctxlint.model.index.scopes import dotted_name
from ctxlint.source.ast_tree import nodes_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ctxlint.model.index.file_index import CallRecord, FileIndex
    from ctxlint.model.index.results import CallPlace

REARRANGED: tuple[Literal["permutes"], Literal["spreads"]] = ("permutes", "spreads")
PERMUTES, SPREADS = REARRANGED
"""What a caller does to a result: ``y.t()``; ``torch.cat([a, y], dim=1)``, ``y.mean((2, 3))``. Its gradient is
transposed, or a slice, or expanded, unless the sizes that matter are 1."""


def rearranged(index: FileIndex, call: CallRecord) -> str:
    """What certainly happens to the result of a call, and is its only use; empty if it is something else."""
    body = index.body_of(call.scope)
    place = located(body, call.node)
    if place is None:
        return ""
    statement = place.rest[0]
    if not isinstance(statement, ast.Assign) or statement.value is not call.node:
        return _rearranged(call.node, statement)
    target = statement.targets[0]
    return _only_use(target.id, place, body) if isinstance(target, ast.Name) and len(statement.targets) == 1 else ""


def returns_only(index: FileIndex, call: CallRecord) -> bool:
    """Whether the function or method around a call returns nothing but its result."""
    found = index.function_of(call.scope)
    if found is None or not found.certain or found.node.decorator_list:
        return False
    leaving = [each for each in nodes_in(found.node) if isinstance(each, (ast.Return, ast.Yield, ast.YieldFrom))]
    return len(leaving) == 1 and isinstance(leaving[0], ast.Return) and leaving[0].value is call.node


def _only_use(name: str, place: CallPlace, body: Sequence[ast.stmt]) -> str:
    """What happens to a name where it is read, if that is once, in a statement of the same block."""
    found = ""
    for statement in place.block[place.at + 1 :]:
        stored, uses = _uses_of(name, [statement])
        if uses and (found or len(uses) > 1 or not isinstance(statement, _SIMPLE)):
            return ""
        found = _rearranged(uses[0], statement) if uses else found
        if uses and not found:
            return ""
        if stored:  # what follows uses another value
            return found if isinstance(statement, _SIMPLE) and place.block is body else ""
    return found if found and (place.block is body or len(_uses_of(name, body)[1]) == 1) else ""


def _uses_of(name: str, body: Sequence[ast.stmt]) -> tuple[bool, list[ast.expr]]:
    """Whether statements bind a name, and where they read it other than for its shape."""
    nodes = [node for each in body for node in nodes_in(each)]
    asked = {id(each.value) for each in nodes if isinstance(each, ast.Attribute) and each.attr in _ABOUT_SHAPE}
    named = [each for each in nodes if isinstance(each, ast.Name) and each.id == name]
    read = [each for each in named if isinstance(each.ctx, ast.Load)]
    return len(read) < len(named), [each for each in read if id(each) not in asked]


def _rearranged(node: ast.expr, statement: ast.stmt) -> str:
    """What the code around an expression does to it."""
    nodes = nodes_in(statement)
    for _step in range(_MOST_STEPS):
        owner = next((each for each in nodes if isinstance(each, ast.Attribute) and each.value is node), None)
        if owner is not None and owner.attr in ("T", "mT"):
            return PERMUTES
        call = next((each for each in nodes if isinstance(each, ast.Call) and _is_operand(node, owner, each)), None)
        if call is None:
            return SPREADS if any(_joins(each, node) for each in nodes) else ""
        name = (dotted_name(call.func) or "").rpartition(".")[2] if owner is None else owner.attr
        if name in _PERMUTING:
            return PERMUTES
        if name in _REDUCING and any(True for _ in _dimensions(call, int(owner is None))):
            return SPREADS
        if name not in _KEEPING:
            return ""
        node = call
    return ""


def _is_operand(node: ast.expr, owner: ast.Attribute | None, call: ast.Call) -> bool:
    """Whether a call is that of a method of a tensor, or of a function of torch with it as the first argument."""
    if owner is not None:
        return call.func is owner
    return bool(call.args) and call.args[0] is node and (dotted_name(call.func) or "").startswith("torch.")


def _joins(call: ast.AST, node: ast.expr) -> bool:
    """Whether ``torch.cat`` joins a tensor with others, along another dimension than the first."""
    if not isinstance(call, ast.Call) or dotted_name(call.func) not in _JOINING or not call.args:
        return False
    parts = call.args[0]
    if not isinstance(parts, (ast.List, ast.Tuple)) or len(parts.elts) < _SEVERAL or node not in parts.elts:
        return False
    return any(_is_later(each) for each in _dimensions(call, 1))


def _is_later(dimension: ast.expr) -> bool:
    """Whether a dimension is not the first one, unless it is the only one: ``1``, ``-1``."""
    if isinstance(dimension, ast.UnaryOp) and isinstance(dimension.op, ast.USub):
        return isinstance(dimension.operand, ast.Constant)
    return isinstance(dimension, ast.Constant) and type(dimension.value) is int and dimension.value > 0


def _dimensions(call: ast.Call, at: int) -> Iterator[ast.expr]:
    yield from call.args[at:]
    yield from (each.value for each in call.keywords if each.arg in ("dim", "axis"))


_ABOUT_SHAPE = frozenset(["device", "dim", "dtype", "ndim", "shape", "size"])
_JOINING = ("torch.cat", "torch.concat", "torch.stack")
_KEEPING = ("flatten", "squeeze", "unsqueeze")
"""What passes a gradient back with its strides: that of ``reshape`` may be copied."""
_MOST_STEPS = 4
_PERMUTING = ("movedim", "permute", "swapaxes", "swapdims", "t", "transpose")
_REDUCING = ("mean", "sum")
_SEVERAL = 2
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)
