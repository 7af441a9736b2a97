"""Conditions that only decide which memory values are in: ``y = x if inplace else x.clone()``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.syntax import code_of, only_target

if TYPE_CHECKING:
    from collections.abc import Mapping


def gives_the_same_values(condition: cst.If | cst.IfExp) -> bool:
    """Whether both branches certainly give all names the same values, in the same memory or in another one."""
    if isinstance(condition, cst.IfExp):
        return _value(condition.body, {}) == _value(condition.orelse, {})
    if isinstance(condition.orelse, cst.If):
        return False
    first = _bound_in(condition.body)
    second = _bound_in(condition.orelse.body) if condition.orelse is not None else {}
    if first is None or second is None:
        return False
    return all(first.get(name, name) == second.get(name, name) for name in (*first, *second))


def _bound_in(block: cst.BaseSuite) -> dict[str, str] | None:
    """The values that the statements of a block give to names; None if it does anything else."""
    found: dict[str, str] = {}
    for statement in block.body:
        if not isinstance(statement, cst.SimpleStatementLine):
            return None
        for small in statement.body:
            bound = _bound_by(small, found)
            if bound is None:
                return None
            found.update(bound)
    return found


def _bound_by(small: cst.BaseSmallStatement, known: Mapping[str, str]) -> dict[str, str] | None:
    """The same for one statement: an assignment, a method in place, a mark."""
    if isinstance(small, cst.Pass):
        return {}
    target = only_target(small)
    if isinstance(target, cst.Name) and isinstance(small, cst.Assign):
        return {target.value: _value(small.value, known)}
    call = small.value if isinstance(small, cst.Expr) else None
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
        return None
    if call.func.attr.value == "mark_dirty":
        return {}
    changed = call.func.value
    return {changed.value: _value(call, known)} if isinstance(changed, cst.Name) and _is_in_place(call.func) else None


def _value(node: cst.BaseExpression, known: Mapping[str, str]) -> str:
    """Code for the value of an expression, without copies, and with methods that create a tensor for those in place."""
    if isinstance(node, cst.Name):
        return known.get(node.value, node.value)
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return code_of(node)
    method = node.func.attr.value
    if method in _COPYING and not node.args:
        return _value(node.func.value, known)
    if isinstance(node.func.value, (cst.Name, cst.Call)):
        given = ", ".join(code_of(each.with_changes(comma=cst.MaybeSentinel.DEFAULT)) for each in node.args)
        return f"{_value(node.func.value, known)}.{method.removesuffix('_')}({given})"
    return code_of(node)


def _is_in_place(called: cst.Attribute) -> bool:
    return called.attr.value.endswith("_") and not called.attr.value.endswith("__")


_COPYING = frozenset({"clone", "contiguous", "detach"})
"""Methods whose result has the values of the tensor."""
