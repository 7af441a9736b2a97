"""Gradients of which ``squeeze`` removes the only dimension if its size is 1: ``grad_output.sum(0).squeeze(0)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.flattened import is_matrix
from ctxlint.model.interpreter.values import NONE
from ctxlint.model.syntax import dotted, is_name, keywords_of, last_name, root_name, signed_integer, words_of
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method


@record
class Squeezed:
    """A call of ``squeeze`` on sums; with ``keeps``, those keep their dimensions, which it is there to remove.

    ``all`` are the calls of ``squeeze`` between and behind the sums. ``raising`` is what then raises.
    """

    call: cst.Call
    sums: cst.BaseExpression
    keeps: bool
    all: tuple[cst.Call, ...] = ()
    raising: cst.Call | None = None


def squeezed_gradients(fn: FunctionClass) -> Iterator[tuple[int, Squeezed]]:
    """The gradients, by input, that certainly have one dimension, which backward removes if its size is 1."""
    backward = fn.backward
    if backward is None or backward.inherited:
        return
    squeezes = {each for each in backward.nodes_of(cst.Call) if _method_of(each) == "squeeze"}
    for returned in fn.gradients if squeezes else ():
        if not returned.known or any(slot.starred for slot in returned.slots):
            continue
        for index, slot in enumerate(returned.slots[: len(fn.inputs)]):
            node = _written(backward, slot.node)
            found = None
            if isinstance(node, cst.Call) and node in squeezes:
                found = _squeezed(fn, backward, node) or _squeezed_between(fn, backward, node)
            if found is not None:
                yield index, found


def _written(method: Method, node: cst.BaseExpression | None) -> cst.BaseExpression | None:
    """The expression of a gradient: what its name is assigned, if that is one thing, or else None.

    What is added to it or subtracted from it has to fit, too.
    """
    if not isinstance(node, cst.Name):
        return node
    found = method.assignments.get(node.value, ())
    bound = [each for each in found if not (each.value == NONE or each.augmented)]
    return bound[0].value_node if len(bound) == 1 else None


def _squeezed(fn: FunctionClass, method: Method, call: cst.Call) -> Squeezed | None:
    """The squeeze, if sums in front of it leave one dimension, and it may remove that."""
    squeezed = call.func.value if isinstance(call.func, cst.Attribute) else call
    summed: list[int] = []
    keeping: list[bool] = []
    node = squeezed
    while isinstance(node, cst.Call) and _method_of(node) in ("sum", "mean"):
        dimensions, keeps = summed_dimensions(node), keeps_dimensions(node)
        if dimensions is None or keeps is None or (keeping and not (keeps and all(keeping))):
            return None
        summed += dimensions
        keeping.append(keeps)
        node = node.func.value if isinstance(node.func, cst.Attribute) else node
    before = _number_of_dimensions(fn, method, node, set(summed)) if summed else None
    if before is None or before - len(set(summed)) != 1 or _is_tested(fn, method, call, node):
        return None
    removed = signed_integer(call.args[0].value) if call.args else None
    if len(call.args) > 1 or (call.args and (keeping[0] or removed not in (0, -1))):
        return None
    return Squeezed(call, squeezed, keeping[0])


def _squeezed_between(fn: FunctionClass, method: Method, call: cst.Call) -> Squeezed | None:
    """The first squeeze that may remove the channels, if sums of a batch of images have others between them."""
    steps: list[tuple[cst.Call, list[int]]] = []
    node: cst.BaseExpression = call
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and _method_of(node) in _REDUCING:
        numbers = _numbers_given(node)
        if not numbers or (_method_of(node) == "squeeze" and len(numbers) > 1):
            return None
        steps.insert(0, (node, numbers))
        node = node.func.value
    squeezes = [each for each, _numbers in steps if _method_of(each) == "squeeze"]
    rank = 1 + sum(len(numbers) for each, numbers in steps if each not in squeezes)
    if rank < 4 or _remaining(steps, rank, None) != ([_CHANNELS], None, None) or _is_tested(fn, method, call, node):
        return None
    _left, removing, raising = _remaining(steps, rank, _CHANNELS)
    if removing is None or not isinstance(removing.func, cst.Attribute):
        return None
    return Squeezed(removing, removing.func.value, keeps=False, all=tuple(squeezes), raising=raising)


_REDUCING = ("sum", "mean", "squeeze")
_CHANNELS = 1
"""The dimension of the channels of a batch of images."""


def _numbers_given(call: cst.Call) -> list[int]:
    """The dimensions that a call names by position, if it has no other argument."""
    given = [each.value for each in call.args if each.keyword is None and not each.star]
    if len(given) != 1 or len(call.args) != 1:
        return []
    listed = [each.value for each in given[0].elements] if isinstance(given[0], (cst.Tuple, cst.List)) else given
    numbers = [signed_integer(each) for each in listed]
    known = [each for each in numbers if each is not None]
    return known if len(known) == len(numbers) else []


def _remaining(
    steps: list[tuple[cst.Call, list[int]]], rank: int, single: int | None
) -> tuple[list[int], cst.Call | None, cst.Call | None]:
    """The dimensions that are left if that number ``single`` has size 1, what removes it, and what raises."""
    left, removing = list(range(rank)), None
    for call, numbers in steps:
        if any(not -len(left) <= each < len(left) for each in numbers if left or each not in (0, -1)):
            return left, removing, call
        named = {left[each] for each in numbers if left}
        if _method_of(call) == "squeeze":
            removing = call if single in named else removing
            named &= {single}
        left = [each for each in left if each not in named]
    return left, removing, None


def _method_of(call: cst.Call) -> str | None:
    """The name of the method that a call calls; None for functions of torch."""
    func = call.func
    return func.attr.value if isinstance(func, cst.Attribute) and not is_name(func.value, "torch") else None


def summed_dimensions(call: cst.Call) -> list[int] | None:
    """The dimensions over which a call sums, counted from the first one."""
    given = [each.value for each in call.args if each.keyword is None or each.keyword.value in ("dim", "axis")]
    if not given:
        return None
    first = given[0]
    listed = [each.value for each in first.elements] if isinstance(first, (cst.Tuple, cst.List)) else given[:1]
    numbers = [signed_integer(each) for each in listed]
    known = [each for each in numbers if each is not None and each >= 0]
    return known if len(known) == len(numbers) else None


def keeps_dimensions(call: cst.Call) -> bool | None:
    """Whether a call has ``keepdim=True``; None if that is not written as a literal."""
    by_position = (each.value for each in call.args[1:] if each.keyword is None)
    given = keywords_of(call).get("keepdim") or next(by_position, None)
    written = dotted(given) if given is not None else "False"
    return {"True": True, "False": False}.get(written or "")


def _number_of_dimensions(
    fn: FunctionClass, method: Method, tensor: cst.BaseExpression, summed: set[int]
) -> int | None:
    """How many dimensions a tensor certainly has: a matrix, or a batch of images, summed over all but channels."""
    if len(summed) > 2:
        return max(summed) + 1
    return 2 if is_matrix(fn, method, tensor) or _is_multiplied(method, tensor) else None


def _is_multiplied(method: Method, tensor: cst.BaseExpression) -> bool:
    """Whether the method calls ``tensor.mm(...)`` or passes it to ``mm``, which takes only matrices."""
    name = dotted(tensor)
    products = (each for each in method.nodes_of(cst.Call) if isinstance(each.func, cst.Attribute))
    return name is not None and any(
        name in (dotted(each.func.value), *(dotted(argument.value) for argument in each.args))
        for each in products
        if isinstance(each.func, cst.Attribute) and each.func.attr.value == "mm"
    )


def _is_tested(fn: FunctionClass, method: Method, call: cst.Call, tensor: cst.BaseExpression) -> bool:
    """Whether the method asks for the number of dimensions of a tensor, or tests sizes around the call.

    Or whether one method cuts or joins tensors, as for quaternions: then there are several columns.
    """
    name = root_name(tensor)
    asked = (each for each in method.nodes_of(cst.Attribute) if each.attr.value in _NUMBERS)
    tests = (each.test for each in method.above(call) if isinstance(each, (cst.If, cst.IfExp)))
    if any(root_name(each) == name for each in asked) or any(_SIZES & {*words_of(test)} for test in tests):
        return True
    methods = (each for each in (fn.forward, method) if each is not None)
    return any(last_name(each.func) in _JOINING for one in methods for each in one.nodes_of(cst.Call))


_NUMBERS = frozenset({"dim", "ndim", "ndimension"})
_JOINING = frozenset(
    {"cat", "chunk", "concat", "concatenate", "hstack", "kron", "narrow", "repeat", "split", "stack", "tensor_split"}
)
_SIZES = frozenset({"shape", "size", "numel", "len", *_NUMBERS})
