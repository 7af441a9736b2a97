"""Gradients without a factor of the output: forward multiplies by ``ctx.scale``, and backward returns what it gets."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.flattened import before_copies
from ctxlint.model.analyses.undefined_attributes import attributes_known
from ctxlint.model.interpreter.events import ContextRead, Mutation
from ctxlint.model.interpreter.values import NONE, before_views, is_input
from ctxlint.model.syntax import dotted
from ctxlint.patterns import pattern
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass, Returned
    from ctxlint.model.interpreter.events import ContextWrite
    from ctxlint.model.interpreter.method import Method


@record
class MissingFactor:
    """An input, by ``index``, that forward multiplies or divides by the input called ``factor``, unlike backward.

    ``returned`` are the incoming gradients that backward returns for it, and ``write`` keeps the factor on ctx.
    """

    index: int
    factor: str
    divides: bool
    product: cst.BaseExpression
    write: ContextWrite
    returned: tuple[cst.Name, ...]


@record
class _Product:
    """The names of the operands of a product."""

    node: cst.BaseExpression
    operands: tuple[str, str]
    divides: bool


def missing_factors(fn: FunctionClass) -> Iterator[MissingFactor]:
    """The inputs whose gradient is the incoming one as it is, although the output is a product with a kept number."""
    backward, forward = fn.counted_backward, fn.forward
    if backward is None or forward is None or forward.inherited or len(fn.inputs) < 2 or not fn.outputs:
        return
    passed = dict(_passed_on(fn, backward))
    products = [_product(forward, each) for each in fn.outputs] if passed else []
    first = products[0] if products else None
    if first is None or len(set(first.operands)) == 1:
        return
    if any(each is None or (each.operands, each.divides) != (first.operands, first.divides) for each in products):
        return
    if not attributes_known(fn) or fn.called_directly or backward.facts.of(Mutation) or _passes_straight(fn):
        return
    read = {each.attribute for method in fn.methods.values() for each in method.facts.of(ContextRead)}
    for index, returned in passed.items():
        name = fn.inputs[index].name
        other = next((each for each in first.operands if each != name), name)
        write = _kept(fn, other) if name in first.operands else None
        if write is None or write.attribute in read or (first.divides and name != first.operands[0]):
            continue
        yield MissingFactor(index, other, first.divides, first.node, write, returned)


def _passed_on(fn: FunctionClass, backward: Method) -> Iterator[tuple[int, tuple[cst.Name, ...]]]:
    """The inputs that get the incoming gradient, or a copy of it, wherever they get one, with the names of it."""
    if len(backward.own_params) != 1 or any(not each.known for each in fn.gradients):
        return
    incoming = backward.own_params[0].name
    if incoming in backward.assignments:
        return
    for index in range(len(fn.inputs)):
        given = [each.slots[index] for each in fn.gradients if index < len(each.slots)]
        names = [_name_behind(backward, slot.node) for slot in given if slot.value != NONE]
        if names and all(each is not None and each.value == incoming for each in names):
            yield index, tuple(filter(None, names))


def _passes_straight(fn: FunctionClass) -> bool:
    """Whether the class says that it passes gradients on as they are."""
    return _STRAIGHT.search(fn.commented_text()) is not None


_STRAIGHT = pattern(
    r"straight|pass\w*[ _-]*through|unchanged|unscaled|n[o']t scal|on purpose|intention|deliberate|identity|as[ -]is"
    r"|\bSTE\b|(?-i:STE)",
    re.IGNORECASE,
)


def _name_behind(method: Method, node: cst.BaseExpression | None) -> cst.Name | None:
    """The name of a tensor that an expression is, or is a copy of: ``g`` of ``grad = g.clone()``."""
    found = _assigned(method, node)
    return found if isinstance(found, cst.Name) else None


def _assigned(method: Method, node: cst.BaseExpression | None, hops: int = 4) -> cst.BaseExpression | None:
    """What an expression is a copy of, through names that are only assigned once."""
    found = before_copies(node) if node is not None else None
    if not isinstance(found, cst.Name) or not hops:
        return found
    bound = method.assignments.get(found.value, ())
    if len(bound) != 1 or bound[0].augmented or bound[0].in_loop or bound[0].value_node is None:
        return found if not bound else None
    return _assigned(method, bound[0].value_node, hops - 1)


def _product(forward: Method, returned: Returned) -> _Product | None:
    """The product of two names that forward returns as its only output."""
    if returned.count != 1 or returned.slots[0].starred:
        return None
    node = _assigned(forward, returned.slots[0].node)
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Multiply, cst.Divide)):
        operands, divides = (node.left, node.right), isinstance(node.operator, cst.Divide)
    elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and not any(a.keyword for a in node.args):
        values = [each.value for each in node.args]
        values = values if dotted(node.func.value) == "torch" else [node.func.value, *values]
        if len(values) != 2 or node.func.attr.value not in ("mul", "div"):
            return None
        operands, divides = (values[0], values[1]), node.func.attr.value == "div"
    else:
        return None
    names = [_name_behind(forward, each) for each in operands]
    if names[0] is None or names[1] is None:
        return None
    return _Product(node, (names[0].value, names[1].value), divides)


def _kept(fn: FunctionClass, name: str) -> ContextWrite | None:
    """The only attribute of ctx that keeps an input, which nothing else keeps."""
    saved = (before_views(slot.value) for call in fn.saves for slot in call.arguments)
    if any(is_input(each) and fn.inputs[each.index].name == name for each in saved):
        return None
    found = [
        write
        for writes in fn.writes_by_attribute.values()
        for write in writes
        if is_input(write.value) and write.value.name == name
    ]
    return found[0] if len(found) == 1 and not found[0].by and not found[0].guards else None
