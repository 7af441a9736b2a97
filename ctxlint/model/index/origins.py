"""From which tensor the arguments of a call are computed: those from the same one need a gradient together."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ctxlint.source.ast_tree import nodes_in
from ctxlint.torch_api.operations import FLOAT_CONVERSIONS, FLOAT_METHODS, KIND_KEEPING, VIEW_METHODS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ctxlint.model.index.results import CallPlace


def origins(place: CallPlace, arguments: Sequence[ast.expr]) -> tuple[str, ...]:
    """For each argument, the name of the only tensor that it is computed from; empty if that is unknown.

    Names are those at the call. Only the statements before the call in the same block are read.
    """
    if sum(isinstance(each, (ast.Name, ast.Call, ast.BinOp, ast.Subscript)) for each in arguments) < 2:
        return ()
    known: dict[str, str] = {}
    for statement in place.before:
        _follow(statement, known)
    found = tuple(_origin(each, known) or "" for each in arguments)
    return found if len(set(filter(None, found))) < sum(map(bool, found)) else ()


def _follow(statement: ast.stmt, known: dict[str, str]) -> None:
    """Update the origins of names by a statement."""
    for name, origin in list(_bindings(statement, known)):
        if origin != name:  # those from the former tensor of this name
            known.update({each: "" for each in known if known[each] == name})
        known[name] = origin


def _bindings(statement: ast.stmt, known: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The names that a statement binds, or may set a flag of, with their origins."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, value = statement.targets[0], statement.value
        several = isinstance(value, ast.Call) and _called(value) in _SEVERAL
        if isinstance(target, ast.Name):
            yield target.id, "" if several else _origin(value, known) or ""
            return
        if several and isinstance(target, ast.Tuple):
            yield from ((each.id, _origin(value, known) or "") for each in target.elts if isinstance(each, ast.Name))
            return
    for node in nodes_in(statement):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id, ""
        elif isinstance(node, ast.Attribute) and node.attr in _FLAGS and isinstance(node.value, ast.Name):
            yield node.value.id, ""


def _origin(node: ast.expr, known: Mapping[str, str]) -> str | None:
    """The only tensor that an expression is computed from; None for a number, empty if unknown."""
    if isinstance(node, ast.Name):
        return known.get(node.id, node.id)
    if isinstance(node, ast.Constant):
        return None if isinstance(node.value, (int, float)) else ""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _origin(node.operand, known)
    if isinstance(node, ast.BinOp):
        return _joined([_origin(node.left, known), _origin(node.right, known)])
    if isinstance(node, ast.Subscript):
        return _origin(node.value, known) if _slices(node.slice) else ""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return ""
    operands = [node.func.value] if not _is_torch(node.func.value) else []
    if node.func.attr in _ELEMENTS:
        operands += [*node.args, *(each.value for each in node.keywords)]
    elif node.func.attr in _LAYOUTS:
        operands += node.args[: not operands]
    else:
        return ""
    return _joined([_origin(each, known) for each in operands])


def _joined(found: Sequence[str | None]) -> str | None:
    tensors = {each for each in found if each is not None}
    return None if not tensors else tensors.pop() if len(tensors) == 1 else ""


def _is_torch(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "torch"


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _slices(node: ast.expr) -> bool:
    """Whether an index is one that only tensors take: ``x[..., 0]``, ``x[:, 1]``."""
    return isinstance(node, ast.Tuple) or (isinstance(node, ast.Constant) and node.value is Ellipsis)


_FLAGS = ("requires_grad", "requires_grad_", "detach_")
_SEVERAL = frozenset(["unbind", "chunk", "split", "tensor_split"])
_LAYOUTS = (VIEW_METHODS - {"detach"}) | _SEVERAL | {"contiguous", "reshape", "clone", "to"} | FLOAT_CONVERSIONS
"""Methods whose other arguments are sizes and the like."""
_ELEMENTS = (FLOAT_METHODS | KIND_KEEPING | frozenset(["add", "sub", "mul", "pow", "neg", "abs"])) - _LAYOUTS
_ELEMENTS -= {each for each in _ELEMENTS if each.startswith("new") or each.endswith("_like")}
"""Methods whose result has a gradient if one of the tensors among receiver and arguments has one."""
