"""Kernels that get a multiple of an incoming gradient, which has the strides of a transposed one."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.analyses.layout_uses import LayoutUse, given_elsewhere, is_of_one_element, keeps_arguments
from ctxlint.model.analyses.merged_dimensions import dimensions_of_gradient
from ctxlint.model.index.kernel_parameters import gets_bare_address
from ctxlint.model.index.result_layouts import results_of
from ctxlint.model.interpreter.events import GenericCall, LayoutAsked, MemoryRead
from ctxlint.model.interpreter.summary import KERNEL
from ctxlint.model.interpreter.values import Constant, ContextAttribute, Fresh, Parameter, Scalar, Tri, View, is_input
from ctxlint.model.syntax import code_of, keywords_of, last_name, passed_for
from ctxlint.source.ast_tree import nodes_in, positional_names
from ctxlint.torch_api.operations import BUFFERS, FLOAT_CONVERSIONS, LAYOUT_KEEPING_FACTORIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method, Param
    from ctxlint.model.interpreter.values import Value

_CONVERTING = FLOAT_CONVERSIONS | {"to", "type_as"}
_MAX_HOPS = 4


def uses_of_multiples(fn: FunctionClass) -> Iterator[LayoutUse]:
    """The first launch for each gradient of which a kernel takes a multiple to be contiguous, or one in another dtype.

    Only for gradients with several dimensions. None if backward asks for a layout, or a function
    of the project gets the gradient, which may do so.
    """
    backward = fn.backward
    reads = backward.facts.of(MemoryRead) if backward is not None else ()
    launched = [each for each in reads if each.how == KERNEL and isinstance(each.value, (Fresh, View))]
    if backward is None or not launched or not keeps_arguments(backward):
        return
    asked = {option for each in backward.facts.of(LayoutAsked) for option in each.value.options()}
    followed = {each.node for each in backward.facts.of(GenericCall) if _argument_with_its_layout(each)}
    elsewhere = asked | given_elsewhere(backward, followed)
    seen: set[str] = set()
    for read in launched:
        certain = read.parameter is not None and gets_bare_address(*read.parameter) and not is_of_one_element(read)
        if not certain or read.alike or read.others or read.is_for_a_shape or read.value in elsewhere:
            continue
        gradient = _gradient_behind(fn, backward, read.value)
        if gradient is None or gradient.name in seen or read.value_node is None:
            continue
        position = backward.positional.index(gradient)
        handled = any(isinstance(each, Parameter) and each.name == gradient.name for each in elsewhere)
        known = dimensions_of_gradient(fn, position, gradient.name) >= _OF_A_MATRIX or _takes_matrices(backward, read)
        if handled or not known:
            continue
        if not _meets_another_layout(fn, backward, read):
            continue
        seen.add(gradient.name)
        way = (KERNEL, read.reader, read.by, read.through)
        yield LayoutUse(
            read.value_node, gradient.name, *way, silent=True, position=position, passed=code_of(read.value_node)
        )


_OF_A_MATRIX = 2
_CONTIGUOUS = BUFFERS - LAYOUT_KEEPING_FACTORIES


def _meets_another_layout(fn: FunctionClass, backward: Method, read: MemoryRead) -> bool:
    """Whether the kernel gets a tensor of forward, or a new contiguous one: else each element meets its own place."""
    given = read.node.args if isinstance(read.node, cst.Call) else ()
    return any(_argument_has_own_layout(fn, backward, each.value) for each in given)


def _argument_has_own_layout(fn: FunctionClass, backward: Method, node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "contiguous":
        node = node.func.value
    value = backward.value_of(node.value) if isinstance(node, cst.Name) else None
    return value is not None and _has_own_layout(fn, value)


def _has_own_layout(fn: FunctionClass, value: Value) -> bool:
    if isinstance(value, Fresh) and isinstance(value.node, cst.Call):
        return last_name(value.node.func) in _CONTIGUOUS
    kept = kept_value(fn, value)
    return kept is not value and (is_input(kept) or isinstance(kept, (Fresh, View)))


def _gradient_behind(fn: FunctionClass, backward: Method, value: Value) -> Param | None:
    """The incoming gradient that a tensor has the elements of, times a number: ``2 * g``, ``g.float()``."""
    node = value.node if isinstance(value, (Fresh, View)) else None
    inside = isinstance(node, cst.BaseExpression) and node in backward.parents
    return _behind(fn, backward, node) if inside and isinstance(node, cst.BaseExpression) else None


def _behind(fn: FunctionClass, backward: Method, node: cst.BaseExpression, hops: int = _MAX_HOPS) -> Param | None:
    if isinstance(node, cst.Name):
        bound = backward.binders.get(node.value, ())
        line = _line_around(backward, node)
        if all(line is not None and _line_around(backward, each) is line for each in bound):  # ``g = g * 2``
            return next((each for each in backward.positional if each.name == node.value), None)
        value = backward.bound_to(node.value)
        return _behind(fn, backward, value, hops - 1) if value is not None and hops else None
    if isinstance(node, cst.UnaryOperation):
        return _behind(fn, backward, node.expression, hops) if isinstance(node.operator, cst.Minus) else None
    if isinstance(node, cst.BinaryOperation):
        if isinstance(node.operator, (cst.Multiply, cst.Divide)) and _is_number(fn, backward, node.right):
            return _behind(fn, backward, node.left, hops)
        by_left = isinstance(node.operator, cst.Multiply) and _is_number(fn, backward, node.left)
        return _behind(fn, backward, node.right, hops) if by_left else None
    if not isinstance(node, cst.Call) or "memory_format" in keywords_of(node):
        return None
    if isinstance(node.func, cst.Attribute) and node.func.attr.value in _CONVERTING:
        return _behind(fn, backward, node.func.value, hops)
    called = next((each for each in backward.facts.of(GenericCall) if each.node is node), None)
    given = _argument_with_its_layout(called) if called is not None and hops else None
    return _behind(fn, backward, given, hops - 1) if given is not None else None


def _argument_with_its_layout(called: GenericCall) -> cst.BaseExpression | None:
    """The argument of a function of the project that certainly returns a tensor with its layout: ``scaled(g)``."""
    function, node = _function_called(called), called.node
    if function is None or not isinstance(node, cst.Call) or function.decorator_list:
        return None
    name = _parameter_with_its_layout(function)
    return passed_for(node, positional_names(function.args), name) if name else None


@lru_cache(maxsize=64)
def _parameter_with_its_layout(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """The parameter whose layout the result of a function certainly has; empty if there is none."""
    attributes = (each.attr for each in nodes_in(function) if isinstance(each, ast.Attribute))
    if any("contiguous" in each or "stride" in each for each in attributes):
        return ""
    returned = results_of(function, {each: each for each in positional_names(function.args)}, frozenset())
    kept = {"" if laid is None or laid.order else laid.order_of for each in returned.returns for _at, laid in each}
    single = len(kept) == 1 and all(len(each) == 1 for each in returned.returns) and returned.complete
    return kept.pop() if single else ""


def _function_called(called: GenericCall) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The function of the project that a call certainly means."""
    found = called.definition
    record = found.unit.index.functions.get(found.qualname) if found is not None and not called.replaceable else None
    return record.node if record is not None and record.certain else None


def _takes_matrices(backward: Method, read: MemoryRead) -> bool:
    """Whether the function that launches a kernel unpacks the shape of what it gets into several names."""
    called = next((each for each in backward.facts.of(GenericCall) if each.node is read.node), None)
    function = _function_called(called) if called is not None else None
    if function is None or not isinstance(read.node, cst.Call):
        return False
    names = positional_names(function.args)
    return any(
        passed_for(read.node, names, name) is read.value_node and sizes >= _OF_A_MATRIX
        for name, sizes in _unpacked(function)
    )


def _unpacked(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, int]]:
    """The names whose shapes a function unpacks, with the numbers of sizes: ``m, n = x.shape``."""
    for each in nodes_in(function):
        target = each.targets[0] if isinstance(each, ast.Assign) else None
        if isinstance(each, ast.Assign) and isinstance(target, ast.Tuple) and isinstance(each.value, ast.Attribute):
            owner, starred = each.value.value, any(isinstance(one, ast.Starred) for one in target.elts)
            if each.value.attr == "shape" and isinstance(owner, ast.Name) and not starred:
                yield owner.id, len(target.elts)


def _line_around(backward: Method, node: cst.CSTNode) -> cst.SimpleStatementLine | None:
    """The line of a node, if it has one statement."""
    lines = (each for each in backward.above(node) if isinstance(each, cst.SimpleStatementLine))
    line = next(lines, None)
    return line if line is not None and len(line.body) == 1 else None


def _is_number(fn: FunctionClass, backward: Method, node: cst.BaseExpression) -> bool:
    """Whether an expression is certainly a number: written as one, or what forward keeps."""
    if isinstance(node, cst.Name):
        return _is_kept_number(fn, backward.value_of(node.value))
    if backward.is_on_ctx(node) and isinstance(node, cst.Attribute):
        return _is_kept_number(fn, ContextAttribute(node.attr.value))
    return isinstance(node, (cst.Integer, cst.Float))


def _is_kept_number(fn: FunctionClass, value: Value | None) -> bool:
    kept = kept_value(fn, value) if isinstance(value, ContextAttribute) else value
    if is_input(kept) and kept.index < len(fn.inputs):
        entry = fn.inputs[kept.index]
        return entry.is_tensor is Tri.NO and not entry.is_container
    return isinstance(kept, Constant) or (isinstance(kept, Scalar) and kept.sort in ("int", "float", "number"))
