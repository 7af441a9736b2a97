"""Tests in backward that attributes of ctx decide, because forward always sets these to the same constant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.events import Assigned, ContextWrite
from ctxlint.model.interpreter.values import Constant, is_input
from ctxlint.model.syntax import dotted, literal_text

if TYPE_CHECKING:
    from ctxlint.model.function import FunctionClass, Method
    from ctxlint.model.interpreter.events import Guard
    from ctxlint.model.interpreter.values import Value


def outcome(fn: FunctionClass, method: Method, test: cst.BaseExpression) -> bool | None:
    """The outcome of a test in a method, if what forward always keeps on ctx decides it; None if that is unknown."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        inner = outcome(fn, method, test.expression)
        return None if inner is None else not inner
    if isinstance(test, cst.BooleanOperation):
        found = {outcome(fn, method, test.left), outcome(fn, method, test.right)}
        decisive = isinstance(test.operator, cst.Or)
        return decisive if decisive in found else None if None in found else not decisive
    if isinstance(test, cst.Comparison):
        return _compared(fn, method, test) if len(test.comparisons) == 1 else None
    found = {_truth(fn, value) for value in _values(fn, method, test)}
    return found.pop() if len(found) == 1 else None


def _compared(fn: FunctionClass, method: Method, test: cst.Comparison) -> bool | None:
    """The outcome of ``ctx.mode == "a"``, ``ctx.q is not None``."""
    part = test.comparisons[0]
    right = _literal(part.comparator)
    if right is None:
        return None
    found = {_compared_to(part.operator, left, right) for left in _values(fn, method, test.left)}
    return found.pop() if len(found) == 1 else None


def _compared_to(operator: cst.BaseCompOp, left: Value, right: Constant) -> bool | None:
    if not isinstance(left, Constant):
        return None
    if isinstance(operator, (cst.Is, cst.IsNot)):
        same: bool = left.value is right.value
        return same is isinstance(operator, cst.Is) if None in (left.value, right.value) else None
    if isinstance(operator, (cst.Equal, cst.NotEqual)):
        return (left.value == right.value) is isinstance(operator, cst.Equal)
    return None


def _truth(fn: FunctionClass, value: Value) -> bool | None:
    """The truth of a constant, or of an input with which forward only returns if it is true, or false."""
    if isinstance(value, Constant):
        return bool(value.value)
    forward = fn.forward
    if not is_input(value) or forward is None or not fn.outputs:
        return None
    if any(each.name == value.name for each in forward.facts.of(Assigned)):
        return None
    tests = [{each.holds for each in out.event.guards if _is_named(each, value.name)} for out in fn.outputs]
    return tests[0].pop() if len(tests[0]) == 1 and all(each == tests[0] for each in tests) else None


def _is_named(guard: Guard, name: str) -> bool:
    return isinstance(guard.test, cst.Name) and guard.test.value == name


def _literal(node: cst.BaseExpression) -> Constant | None:
    if isinstance(node, cst.Name) and node.value in _NAMED:
        return Constant(_NAMED[node.value], "")
    if isinstance(node, cst.Integer):
        return Constant(node.evaluated_value, "int")
    return Constant(literal_text(node), "str") if isinstance(node, cst.SimpleString) else None


_NAMED = {"None": None, "True": True, "False": False}


def _values(fn: FunctionClass, method: Method, node: cst.BaseExpression) -> tuple[Value, ...]:
    """What ``ctx.name``, a local name for it, or ``getattr(ctx, "name", default)`` may be; empty if that is unknown."""
    if isinstance(node, cst.Name):
        bound = method.bound_to(node.value)
        return _values(fn, method, bound) if isinstance(bound, (cst.Attribute, cst.Call)) else ()
    if isinstance(node, cst.Attribute):
        return _kept(fn, node.attr.value) if dotted(node.value) == method.ctx_name else ()
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Name) or len(node.args) < 2:
        return ()
    owner, named, *default = (each.value for each in node.args)
    name = literal_text(named) if isinstance(named, cst.SimpleString) and dotted(owner) == method.ctx_name else None
    if not isinstance(name, str) or not _is_known(fn, name):
        return ()
    kept = fn.writes_by_attribute.get(name)
    if node.func.value == "hasattr" and not kept:
        return (Constant(False, "bool"),)
    if node.func.value != "getattr" or len(default) != 1:
        return ()
    if kept:
        return _kept(fn, name)
    otherwise = _literal(default[0])
    return (otherwise,) if otherwise is not None else ()


def _kept(fn: FunctionClass, name: str) -> tuple[Value, ...]:
    """What forward sets an attribute to."""
    values = [write.value for write in fn.writes_by_attribute.get(name, ())] if _is_known(fn, name) else []
    return tuple(value for value in values if value is not None) if None not in values else ()


def _is_known(fn: FunctionClass, name: str) -> bool:
    """Whether nothing but forward sets an attribute."""
    later = (each for method in fn.reading_methods for each in method.facts.of(ContextWrite))
    return not fn.escapes and not any(each.attribute == name for each in later)
