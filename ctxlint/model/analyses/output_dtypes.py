"""The dtypes of outputs, to which torch converts each incoming gradient, and those that methods assert."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.outputs import output_values
from ctxlint.model.interpreter.values import CONVERTING, NONE, Alias, Fresh, View
from ctxlint.model.syntax import CHECKING, dotted, last_name, root_name, words_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Value

    _Told = Callable[[Method, cst.BaseExpression], str]
    """The dtype that an expression tells: ``dtype_shown``, or also by what operands have."""


def has_another_dtype(fn: FunctionClass, index: int, dtype: str) -> bool:
    """Whether an output certainly has another dtype than the one with this name in torch, unless it is None."""
    found = _dtypes(fn, index, _written)
    return bool(found) and found.isdisjoint(("", dtype))


def only_dtype(fn: FunctionClass, index: int) -> str:
    """The dtype that conversions show an output to have, unless it is None; empty if it is unknown, or not one."""
    found = _dtypes(fn, index, dtype_shown)
    return found.pop() if len(found) == 1 else ""


def _dtypes(fn: FunctionClass, index: int, told: _Told) -> set[str]:
    """The dtypes that an output has on some path, as far as its code tells."""
    values = output_values(fn, index) or ()
    options = [option for value in values for option in value.options() if option != NONE]
    return {dtype_of(fn.forward, each, told) for each in options} if fn.forward is not None else set()


def dtype_of(method: Method, value: Value, told: _Told) -> str:
    """The name of the dtype of a value, as a conversion or its code tells; empty if it is unknown."""
    while isinstance(value, View) and value.alias in (Alias.ALWAYS, Alias.USUALLY) and value.kind is None:
        value = value.of
    if isinstance(value, View) and value.alias in CONVERTING:
        return str(value.alias.value)
    node = value.node if isinstance(value, (Fresh, View)) and value.node in method.parents else None
    return told(method, node) if isinstance(node, cst.BaseExpression) else ""


def dtype_shown(method: Method, node: cst.BaseExpression) -> str:
    """The dtype of an expression that is a conversion, views of one, or computed from such by operators alone."""
    node = method.behind_name(node) or node
    if isinstance(node, cst.BinaryOperation):
        found = {dtype_shown(method, each) for each in (node.left, node.right) if not _is_literal(each)}
        return found.pop() if len(found) == 1 else ""
    if isinstance(node, cst.Attribute) and node.attr.value in ("T", "mT"):
        return dtype_shown(method, node.value)
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return ""
    if node.func.attr.value in SHAPING:
        return dtype_shown(method, node.func.value)
    converts = node.func.attr.value in _CONVERTING or node.func.attr.value in ("to", "type")
    return _written(method, node) if converts else ""


SHAPING = frozenset(str.split("clone contiguous detach flatten permute reshape squeeze t transpose unsqueeze view"))
"""Methods whose result has the dtype and the elements of the tensor."""


def asserts_a_dtype(method: Method) -> bool:
    """Whether a method may raise for some dtypes: it asserts something about one, or calls a function that checks."""
    if any("dtype" in word for test in method.raising_tests for word in words_of(test)):
        return True
    return any(CHECKING.search(last_name(each.func)) for each in method.nodes_of(cst.Call))


def _written(forward: Method, node: cst.BaseExpression) -> str:
    """The dtype of an expression: a conversion or ``dtype=`` names it, or all operands of an operation have it."""
    node = forward.behind_name(node) or node
    if isinstance(node, cst.BinaryOperation):
        return _common(forward, (node.left, node.right))
    if not isinstance(node, cst.Call):
        return ""
    name, given = last_name(node.func), [each.value for each in node.args]
    asked = [each.value for each in node.args if each.keyword is not None and each.keyword.value == "dtype"]
    if asked:
        return _dtype_named(asked[0])
    if name in _CONVERTING:
        return _CONVERTING[name] if not given else ""
    if name in ("to", "type", "type_as"):
        return next(filter(None, map(_dtype_named, given)), "")
    on = node.func.value if isinstance(node.func, cst.Attribute) else None
    of = [] if on is None or root_name(on) in _MODULES else [on]
    return _common(forward, (*of, *(each.value for each in node.args if each.keyword is None)))


def _common(forward: Method, operands: tuple[cst.BaseExpression, ...]) -> str:
    """The dtype that all operands have, but numbers."""
    found = {_written(forward, each) for each in operands if not _is_literal(each)}
    return found.pop() if len(found) == 1 else ""


def _dtype_named(node: cst.BaseExpression) -> str:
    """The dtype that ``torch.half`` is; empty for what is no floating one."""
    package, _, name = (dotted(node) or "").rpartition(".")
    return _CONVERTING.get(name, name if name in _CONVERTING.values() else "") if package == "torch" else ""


def _is_literal(node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.UnaryOperation):
        return _is_literal(node.expression)
    known = isinstance(node, (cst.Integer, cst.Float, cst.BaseString, cst.Tuple))  # an imaginary number is complex
    return known or dotted(node) in ("None", "True", "False")


_CONVERTING = {"float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16"}
"""The methods that convert, which are names of dtypes as well."""

_MODULES = ("torch", "F", "nn", "functional")
"""The usual names of modules whose functions compute a tensor."""
