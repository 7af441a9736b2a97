"""The code of the functions that some code calls: what they do for their caller, as set a device, or refuse a size."""

from __future__ import annotations

import ast
from itertools import chain
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.index.device_choices import sets_device
from ctxlint.model.index.scopes import Scope, dotted_name, resolve_certainly
from ctxlint.model.interpreter.events import GenericCall, MethodCall
from ctxlint.model.syntax import kept, last_name, literal_integer, parents_below, words_of
from ctxlint.source.ast_tree import nodes_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.index.module_unit import Unit
    from ctxlint.model.index.project import Definition, Project
    from ctxlint.model.interpreter.method import Method, MethodFacts


def called_functions(facts: MethodFacts, home: Unit | None) -> Iterator[cst.FunctionDef]:
    """The functions of the project that some code calls, as they are now where their file is ``home``."""
    calls: list[GenericCall | MethodCall] = [*facts.of(GenericCall), *facts.of(MethodCall)]
    for call in calls:
        definition = call.definition
        if definition is not None:
            unit = home if home is not None and home.path == definition.unit.path else definition.unit
            node = unit.slices.find_bare_function(definition.qualname)
            if node is not None:
                yield node


def texts_named(project: Project, definition: Definition) -> Iterator[str]:
    """The text of a function of the project, and of those that it calls by their names: nodes would cost more."""
    unit, qualname = definition.unit, definition.qualname
    own = unit.index.functions[qualname]
    yield _text(unit, own.node)
    scope = Scope("function", qualname, own.scope)
    calls = (each for each in nodes_in(own.node) if isinstance(each, ast.Call))
    for name in dict.fromkeys(dotted_name(each.func) for each in calls):
        meant = resolve_certainly(name, scope) if name is not None else None
        called = project.certainly(unit, meant) if meant is not None else None
        record = called.unit.index.functions.get(called.qualname) if called is not None else None
        if called is not None and record is not None:
            yield _text(called.unit, record.node)


def _text(unit: Unit, function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    return unit.source.lines(function.lineno, function.end_lineno or function.lineno)


def calls_what_sets_device(method: Method) -> bool:
    """Whether a method calls a function that may set the current device and leave it set."""
    return any(map(sets_device, _called_by(method)))


def limits_all(fn: FunctionClass) -> bool:
    """Whether a Function, a function that it calls or all callers treat large tensors in another way, or none."""
    calls = [each for each in fn.calls if each.applies]
    return (bool(calls) and all(each.limits_elements for each in calls)) or any(
        limits_elements(function)
        for method in fn.own_protocol_methods
        for function in (method.node, *_called_by(method))
    )


def _called_by(method: Method) -> Iterator[cst.FunctionDef]:
    return called_functions(method.facts, method.home.unit if method.home is not None else None)


def limits_elements(function: cst.FunctionDef) -> bool:
    """Whether a function compares a number of elements with a limit for large tensors."""
    return bool(kept(function, _limits_elements))


def _limits_elements(function: cst.FunctionDef) -> bool:
    compared = (each for each in parents_below(function) if isinstance(each, cst.Comparison))
    return any(isinstance(each.comparisons[0].operator, _ORDERS) and _is_limited(each) for each in compared)


def _is_limited(test: cst.Comparison) -> bool:
    """Whether one side is a large number, or the name of a constant next to a number of elements on the other side."""
    sides = (test.left, test.comparisons[0].comparator)
    return any(map(_is_large, sides)) or (
        any(map(_is_constant, sides)) and not _MEASURES.isdisjoint(chain(*map(words_of, sides)))
    )


def _is_large(node: cst.BaseExpression) -> bool:
    """``2**31``, ``1 << 31 - 1``, ``2147483647`` or ``torch.iinfo(torch.int32).max``."""
    if isinstance(node, cst.Integer):
        return (literal_integer(node) or 0) >= 1 << _BITS
    if isinstance(node, cst.BinaryOperation):
        if isinstance(node.operator, (cst.Power, cst.LeftShift)):
            exponent = node.right
            bits = literal_integer(exponent) if isinstance(exponent, cst.Integer) else None
            return bits is not None and bits >= _BITS
        return any(map(_is_large, (node.left, node.right)))
    return (
        isinstance(node, cst.Attribute) and isinstance(node.value, cst.Call) and last_name(node.value.func) == "iinfo"
    )


def _is_constant(node: cst.BaseExpression) -> bool:
    return last_name(node).isupper()


_ORDERS = (cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual)
_BITS = 24
"""A power of 2 that no number of rows, columns or threads gets to."""
_MEASURES = frozenset({"element_size", "nbytes", "nelement", "numel", "prod", "stride", "untyped_storage"})
