"""Statements of ``forward`` that only write to ctx, and do so independently of when they run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.events import ContextWrite
from ctxlint.model.interpreter.values import Tri, is_tensor
from ctxlint.model.syntax import single_index

if TYPE_CHECKING:
    from ctxlint.fixes.method_code import MethodCode

_TAKING_TENSORS = frozenset({"save_for_backward", "save_for_forward", "mark_dirty", "mark_non_differentiable"})
_INVARIANT_METHODS = frozenset(
    {
        "dim",
        "element_size",
        "get_device",
        "is_contiguous",
        "is_floating_point",
        "ndimension",
        "numel",
        "size",
        "stride",
    }
)
"""Methods that return invariant properties of a tensor."""
_OF_THE_GRAPH = frozenset({"grad", "grad_fn", "is_leaf", "requires_grad", "_version", "output_nr"})
"""Attributes that torch sets between forward and the end of ``apply``."""


def concerns_ctx_alone(code: MethodCode, line: cst.CSTNode) -> bool:
    """Whether a line only saves, marks, or sets attributes of ctx from names, possibly under a test."""
    if isinstance(line, cst.SimpleStatementLine):
        return all(_writes_to_ctx(code, each) for each in line.body)
    if not isinstance(line, cst.If) or not _is_plain(code, line.test, computing=True):
        return False
    if not isinstance(line.body, cst.IndentedBlock) or not _all_concern_ctx(code, line.body):
        return False
    other = line.orelse
    if isinstance(other, cst.If):
        return concerns_ctx_alone(code, other)
    return other is None or (isinstance(other.body, cst.IndentedBlock) and _all_concern_ctx(code, other.body))


def marks_alone(line: cst.CSTNode) -> bool:
    """Whether a line only calls ``mark_dirty`` or ``mark_non_differentiable``, independent of the tensors' contents."""
    return isinstance(line, cst.SimpleStatementLine) and all(
        isinstance(each, cst.Expr)
        and isinstance(each.value, cst.Call)
        and isinstance(each.value.func, cst.Attribute)
        and each.value.func.attr.value.startswith("mark_")
        for each in line.body
    )


def _all_concern_ctx(code: MethodCode, block: cst.IndentedBlock) -> bool:
    return all(concerns_ctx_alone(code, each) for each in block.body)


def _writes_to_ctx(code: MethodCode, statement: cst.BaseSmallStatement) -> bool:
    if isinstance(statement, cst.Expr) and isinstance(statement.value, cst.Call):
        call = statement.value
        if not isinstance(call.func, cst.Attribute) or not _is_ctx(code, call.func.value):
            return False
        if any(each.star or each.keyword is not None for each in call.args):
            return False
        if call.func.attr.value == "set_materialize_grads":
            return all(isinstance(each.value, cst.Name) for each in call.args)
        return call.func.attr.value in _TAKING_TENSORS and all(isinstance(each.value, cst.Name) for each in call.args)
    if not isinstance(statement, cst.Assign) or len(statement.targets) != 1:
        return False
    target = statement.targets[0].target
    if not isinstance(target, cst.Attribute) or not _is_ctx(code, target.value):
        return False
    writes = [each for each in code.method.facts.of(ContextWrite) if each.node is target]
    number = len(writes) == 1 and writes[0].value is not None and is_tensor(writes[0].value) is Tri.NO
    return _is_plain(code, statement.value, computing=number)


def _is_ctx(code: MethodCode, node: cst.CSTNode) -> bool:
    ctx = code.method.ctx
    return ctx is not None and isinstance(node, cst.Name) and node.value == ctx.name


def _is_plain(code: MethodCode, node: cst.BaseExpression, *, computing: bool) -> bool:
    """Whether an expression consists only of names and invariant properties of tensors.

    ``computing`` allows operators too: their result is not a tensor.
    """
    if _is_ctx(code, node):
        return False
    if isinstance(node, (cst.Name, cst.Integer, cst.Float, cst.SimpleString)):
        return True
    if isinstance(node, cst.Attribute):
        if _is_ctx(code, node.value):
            return node.attr.value == "needs_input_grad"
        return node.attr.value not in _OF_THE_GRAPH and _is_plain(code, node.value, computing=computing)
    if isinstance(node, cst.Subscript):
        index = single_index(node)
        if index is None or not _is_plain(code, node.value, computing=computing):
            return False
        return _is_plain(code, index, computing=computing)
    if isinstance(node, (cst.Tuple, cst.List)):
        return all(isinstance(each, cst.Element) for each in node.elements) and all(
            _is_plain(code, each.value, computing=computing) for each in node.elements
        )
    if isinstance(node, cst.Call):
        return _is_invariant_call(code, node, computing=computing)
    return computing and _is_computed(code, node)


def _is_invariant_call(code: MethodCode, call: cst.Call, *, computing: bool) -> bool:
    """Whether a call is ``x.size(0)``, ``len(x)`` or ``isinstance(x, T)``."""
    if any(each.star or not _is_plain(code, each.value, computing=computing) for each in call.args):
        return False
    if isinstance(call.func, cst.Name):
        return call.func.value in ("bool", "float", "int", "isinstance", "len", "tuple") and not code.binds(
            call.func.value
        )
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in _INVARIANT_METHODS:
        return False
    return _is_plain(code, call.func.value, computing=computing)


def _is_computed(code: MethodCode, node: cst.BaseExpression) -> bool:
    if isinstance(node, (cst.BinaryOperation, cst.BooleanOperation)):
        return _is_plain(code, node.left, computing=True) and _is_plain(code, node.right, computing=True)
    if isinstance(node, cst.UnaryOperation):
        return _is_plain(code, node.expression, computing=True)
    if isinstance(node, cst.IfExp):
        return all(_is_plain(code, each, computing=True) for each in (node.test, node.body, node.orelse))
    if isinstance(node, cst.Comparison):
        parts = [node.left, *(each.comparator for each in node.comparisons)]
        return all(_is_plain(code, each, computing=True) for each in parts)
    return False
