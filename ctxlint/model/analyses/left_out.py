"""Launches of kernels that leave out the last elements of what a function returns, or go beyond them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.index.fitting_sizes import FITTING, RESHAPING, SIZES
from ctxlint.model.interpreter.events import CutGrid, LeftOut, Mutation
from ctxlint.model.interpreter.values import Fresh, Sequence, before_views
from ctxlint.model.syntax import kept, last_name, names_in, parents_below, words_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import MethodFacts
    from ctxlint.model.interpreter.values import Value
    from ctxlint.model.syntax import Parents


def left_out_by(function: cst.FunctionDef, facts: MethodFacts) -> Iterator[tuple[CutGrid, LeftOut]]:
    """The launches, in a function or in those that it calls, that leave out elements which nothing else writes.

    And those that write beyond a tensor.
    """
    returned: set[Value] | None = None
    for event in facts.of(CutGrid):
        if event.found is not None and event.found.beyond:
            yield event, event.found
            continue
        if event.found is None or event.by:
            if event.found is not None and _is_handed_on_only(function, event.node):
                yield event, event.found
            continue
        returned = _returned(facts) if returned is None else returned
        pairs = zip(event.found.names, event.tensors)
        left = [(name, value) for name, value in pairs if value in returned and not _other_writes(facts, event, value)]
        zeros = all(_holds_zeros(value) for _name, value in left)  # uninitialized memory is worse
        names = tuple(name for name, value in left if _holds_zeros(value) == zeros)
        if names:
            yield event, replace(event.found, names=names, zeros=zeros)


def _is_handed_on_only(function: cst.FunctionDef, call: cst.CSTNode) -> bool:
    """Whether the result of a call, or what it is bound to, is only returned, saved, or asked for its sizes."""
    parents = parents_below(function)
    bound = parents.get(call)
    if not isinstance(bound, cst.Assign):
        return _is_returned(parents, call)
    plain = all(isinstance(each.target, (cst.Name, cst.Tuple)) for each in bound.targets)
    names = {name for each in bound.targets for name in names_in(each.target)}
    uses = (each for each in parents if isinstance(each, cst.Name) and each.value in names)
    return plain and all(_is_returned(parents, each) or _is_target(parents, each) for each in uses)


def _is_returned(parents: Parents, node: cst.CSTNode) -> bool:
    """Whether a value is returned, alone or in a tuple, saved for backward, or asked for a size."""
    above = _above_tuples(parents, node)
    if isinstance(above, cst.Arg):
        call = parents.get(above)
        return isinstance(call, cst.Call) and last_name(call.func) == "save_for_backward"
    return isinstance(above, cst.Return) or (isinstance(above, cst.Attribute) and above.attr.value in SIZES)


def _is_target(parents: Parents, name: cst.Name) -> bool:
    return isinstance(_above_tuples(parents, name), cst.AssignTarget)


def _above_tuples(parents: Parents, node: cst.CSTNode) -> cst.CSTNode | None:
    """What a node is in, apart from tuples."""
    above = parents.get(node)
    while isinstance(above, (cst.Element, cst.Tuple)):
        above = parents.get(above)
    return above


def _holds_zeros(value: Value) -> bool:
    call = value.node if isinstance(value, Fresh) else None
    return isinstance(call, cst.Call) and "zeros" in last_name(call.func)


def _returned(facts: MethodFacts) -> set[Value]:
    found: set[Value] = set()
    for event in facts.returns:
        for option in event.value.options() if event.value is not None else ():
            parts = [each.value for each in option.slots] if isinstance(option, Sequence) else [option]
            found.update(before_views(one) for part in parts for one in part.options())
    return found


def _other_writes(facts: MethodFacts, launch: CutGrid, value: Value) -> bool:
    """Whether something else than a launch writes to a tensor."""
    for each in facts.of(Mutation):
        if each.node is not launch.node and each.target is not None:
            if any(before_views(option) == value for option in each.target.options()):
                return True
    return False


def sizes_may_fit(fn: FunctionClass) -> bool:
    """Whether a method of a Function, or code around a call of it, seems to make the sizes fit."""
    return any(may_fit_sizes(each.node) for each in fn.methods.values()) or any(each.may_fit_sizes for each in fn.calls)


def may_fit_sizes(function: cst.FunctionDef) -> bool:
    """Whether a function computes remainders, tests sizes, or seems to pad, group or check: they may fit then."""
    return kept(function, _may_fit_sizes)


def _may_fit_sizes(function: cst.FunctionDef) -> bool:
    return any(_may_fit(node) for node in parents_below(function))


def _may_fit(node: cst.CSTNode) -> bool:
    if isinstance(node, cst.Name):
        return bool(FITTING.search(node.value))
    if isinstance(node, cst.BinaryOperation):
        remainder = isinstance(node.operator, cst.Modulo) and not isinstance(node.left, cst.BaseString)  # of a format
        masked = isinstance(node.operator, cst.BitAnd) and isinstance(node.right, (cst.Integer, cst.BinaryOperation))
        return remainder or masked
    if isinstance(node, (cst.If, cst.IfExp, cst.While, cst.Assert)):
        return not SIZES.isdisjoint(words_of(node.test))
    if isinstance(node, cst.Call):
        return last_name(node.func) in RESHAPING and any(_is_group(each.value) for each in node.args)
    return isinstance(node, cst.Expr) and _may_refuse(node.value)


def _may_refuse(statement: cst.BaseExpression) -> bool:
    """Whether a statement calls a function by its name, for what it does with its arguments: it may raise an error."""
    return isinstance(statement, cst.Call) and isinstance(statement.func, cst.Name) and bool(statement.args)


def _is_group(size: cst.BaseExpression) -> bool:
    """Whether a new size is a number, a name in capitals, or computed with ``//``."""
    if isinstance(size, cst.Integer):
        return size.evaluated_value > 1
    if isinstance(size, cst.Name):
        return size.value.isupper()
    parts = size.elements if isinstance(size, (cst.Tuple, cst.List)) else ()
    divided = isinstance(size, cst.BinaryOperation) and isinstance(size.operator, cst.FloorDivide)
    return divided or any(_is_group(each.value) for each in parts)
