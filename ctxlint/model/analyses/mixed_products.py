"""Matrix products in backward of an incoming gradient with a tensor that certainly has another dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.autocast_products import mentions
from ctxlint.model.analyses.conditional_code import Runs, runs
from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.analyses.output_dtypes import SHAPING, dtype_of, dtype_shown, only_dtype
from ctxlint.model.interpreter.method import Binding
from ctxlint.model.syntax import code_of, is_name, last_name
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method


@record
class MixedProduct:
    """A product ``node`` of ``gradient``, that of an output of one dtype, and ``other``, which has another."""

    node: cst.BaseExpression
    gradient: str
    has: str
    other: cst.BaseExpression
    wants: str


def mixed_products(fn: FunctionClass) -> Iterator[MixedProduct]:
    """Such products, if nothing in backward sets autocast, which would convert both."""
    forward, backward = fn.forward, fn.backward
    if forward is None or backward is None or not (_is_plain(backward) and fn.signature_judgeable):
        return
    for node in (*backward.nodes_of(cst.BinaryOperation), *backward.nodes_of(cst.Call)):
        sides = _factors(node) or ()
        if sides and (runs(backward, node) is not Runs.ALWAYS or not _is_outside_of_contexts(backward, node)):
            continue
        for one, other in (sides, sides[::-1]) if sides else ():
            at = _gradient(backward, one)
            has = only_dtype(fn, at) if at is not None else ""
            wants = _dtype(fn, backward, other) if has else ""
            if at is not None and has != wants and wants:
                yield MixedProduct(node, backward.positional[at].name, has, other, wants)


def _is_outside_of_contexts(method: Method, node: cst.CSTNode) -> bool:
    """Whether nothing is entered around a node that may set autocast, or handles what it raises."""
    around = [each for each in method.above(node) if isinstance(each, (cst.Try, cst.TryStar, cst.With))]
    return all(
        isinstance(each, cst.With) and all(code_of(item.item) in _GRAD_MODES for item in each.items) for each in around
    )


_GRAD_MODES = ("torch.no_grad()", "torch.enable_grad()")


def _is_plain(method: Method) -> bool:
    """Whether a method has no decorator that may set autocast, and mentions neither that nor ``.data``."""
    known = all((each.name or "").endswith(("staticmethod", "once_differentiable")) for each in method.decorators)
    data = any(each.attr.value == "data" for each in method.nodes_of(cst.Attribute))
    return known and method.binding is Binding.STATIC and not data and not mentions(method, "autocast", "cast")


def _factors(node: cst.BaseExpression) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """The two factors of a matrix product; None for anything else."""
    if isinstance(node, cst.BinaryOperation):
        return (node.left, node.right) if isinstance(node.operator, cst.MatrixMultiply) else None
    if not isinstance(node, cst.Call) or last_name(node.func) not in _PRODUCTS:
        return None
    if any(each.keyword is not None or each.star for each in node.args):
        return None
    on, given = node.func.value if isinstance(node.func, cst.Attribute) else None, [each.value for each in node.args]
    factors = given if on is None or is_name(on, "torch") else [on, *given]
    return (factors[0], factors[1]) if on is not None and len(factors) == 2 else None


_PRODUCTS = frozenset(("mm", "matmul", "bmm"))


def _gradient(backward: Method, node: cst.BaseExpression) -> int | None:
    """The incoming gradient that a factor is, as it came but for its shape; None for anything else."""
    node = backward.behind_name(_shaped(node)) or node
    node = _shaped(node)
    if not isinstance(node, cst.Name) or node.value in backward.binders:
        return None
    return next((at for at, each in enumerate(backward.positional) if each.name == node.value), None)


def _shaped(node: cst.BaseExpression) -> cst.BaseExpression:
    """The tensor of which ``x.t()``, ``x.reshape(-1, n)`` or ``x.mT`` has the elements."""
    while True:
        func = node.func if isinstance(node, cst.Call) else node
        if not isinstance(func, cst.Attribute) or func.attr.value not in (SHAPING if func is not node else ("T", "mT")):
            return node
        node = func.value


def _dtype(fn: FunctionClass, backward: Method, node: cst.BaseExpression) -> str:
    """The dtype of the other factor: that of a conversion there, or of what forward has saved; empty if unknown."""
    saved = _shaped(node)
    kept = kept_value(fn, backward.value_of(saved.value)) if isinstance(saved, cst.Name) else None
    if kept is not None and fn.forward is not None:
        return dtype_of(fn.forward, kept, dtype_shown)
    return dtype_shown(backward, node)
