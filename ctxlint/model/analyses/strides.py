"""Tensors of which a kernel gets some strides, but certainly not the last."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.index.kernel_parameters import gets_bare_address, reads_neighbours
from ctxlint.model.interpreter.events import ForeignStrides, LayoutAsked, MemoryRead
from ctxlint.model.interpreter.summary import KERNEL
from ctxlint.model.interpreter.values import Item, View, before_views
from ctxlint.model.syntax import last_name, signed_integer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ctxlint.model.interpreter.method import MethodFacts
    from ctxlint.model.interpreter.values import Value


def without_last_stride(facts: MethodFacts, read: MemoryRead) -> Value | None:
    """The tensor of which a kernel of Triton gets no stride but those of rows; None for anything else.

    Either the kernel adds a range to the address that nothing multiplies; or it gets ``g.view(-1, n)`` or
    ``g.reshape(-1, n)``. Even ``reshape`` does not copy a tensor that is expanded from one value, whose strides are 0.
    """
    into = read.parameter
    if read.how != KERNEL or into is None or not gets_bare_address(*into):
        return None
    asked = [(each, each.value.options()) for each in facts.of(LayoutAsked)]
    mine = [each for each, options in asked if read.value in options]
    if any(each.changed for each in mine):
        return None
    dimensions = [_dimension(each.node) for each in mine]
    view = read.value
    if not isinstance(view, View):
        passed = {arg.value for arg in _arguments(facts)}.union(*(each.strides for each in facts.of(MemoryRead)))
        of_rows = mine and all(each.node in passed for each in mine) and None not in dimensions and -1 not in dimensions
        return view if of_rows and into.name in reads_neighbours(into.kernel, into.aliases) else None
    sizes = _sizes(view)
    whole = view.of.of if isinstance(view.of, Item) else view.of
    if not sizes or signed_integer(sizes[-1]) == 1 or any({view.of, whole}.intersection(each) for _, each in asked):
        return None
    count = len(sizes)
    return view.of if all(each is not None and each % count != count - 1 for each in dimensions) else None


def foreign_strides(facts: MethodFacts) -> Iterator[ForeignStrides]:
    """Where a kernel addresses a tensor with strides of another, although nothing asks for its layout.

    Nor for that of the other one, except to pass it to kernels.
    """
    found = facts.of(ForeignStrides)
    if not found:
        return
    passed = {arg.value for arg in _arguments(facts)}.union(*(each.stride_nodes for each in found))
    asked: set[Value] = set()
    tested: set[Value] = set()
    for each in facts.of(LayoutAsked):
        if not each.changed:
            bases = {before_views(option) for option in each.value.options()}
            asked |= bases
            if each.node not in passed:
                tested |= bases
    for use in found:
        if before_views(use.value) not in asked and before_views(use.owner) not in tested:
            yield use


def _arguments(facts: MethodFacts) -> Iterable[cst.Arg]:
    """The arguments of all launches."""
    launches = {each.node for each in facts.of(MemoryRead) if each.how == KERNEL}
    return (arg for each in launches if isinstance(each, cst.Call) for arg in each.args)


def _sizes(view: View) -> list[cst.BaseExpression]:
    """The sizes that a view is made with, if each is certainly one."""
    node = view.node
    if not isinstance(node, cst.Call) or last_name(node.func) not in ("view", "reshape"):
        return []
    if not isinstance(node.func, cst.Attribute) or any(each.star or each.keyword for each in node.args):
        return []
    sizes = [each.value for each in node.args]
    return sizes if len(sizes) > 1 or [signed_integer(each) for each in sizes] == [-1] else []


def _dimension(node: cst.CSTNode) -> int | None:
    """``0`` of ``x.stride(0)``; None for anything else."""
    if not isinstance(node, cst.Call) or last_name(node.func) != "stride" or len(node.args) != 1:
        return None
    return signed_integer(node.args[0].value)
