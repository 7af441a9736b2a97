"""Gradients in memory that backward allocates and writes only under one condition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.decided_tests import never_runs, outcome
from ctxlint.model.analyses.unwritten_gradients import allocates
from ctxlint.model.interpreter.values import Fresh, before_star
from ctxlint.model.syntax import words_of
from ctxlint.records import record
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method


@record
class PartlyWritten:
    """The gradient in ``slot`` of a return, a ``name`` for new memory that is used only in the body of ``choice``."""

    slot: int
    node: cst.Name
    choice: cst.If


def partly_written(fn: FunctionClass, backward: Method) -> Iterator[PartlyWritten]:
    """The gradients that certainly are arbitrary where the only condition under which backward writes them is false."""
    for returned in fn.gradients:
        if not returned.known or any(guard.test is not None for guard in returned.event.guards):
            continue
        for at, slot in enumerate(before_star(returned.slots)):
            made = slot.value.node if isinstance(slot.value, Fresh) else None
            if isinstance(slot.node, cst.Name) and isinstance(made, cst.Call) and allocates(made):
                choice = _only_choice(fn, backward, slot.node, made)
                if choice is not None:
                    yield PartlyWritten(at, slot.node, choice)


def _only_choice(fn: FunctionClass, backward: Method, gradient: cst.Name, made: cst.Call) -> cst.If | None:
    """The ``if`` without ``else`` that contains all uses of new memory, if it may be skipped before the return."""
    uses = backward.named[gradient.value]
    bound = [each for each in uses if made in _values(backward, each)]
    used = [each for each in uses if each not in bound and not _is_harmless(backward, each)]
    if len(bound) != 1 or len(backward.binders[gradient.value]) != 1 or not used:
        return None
    outer = _conditions(backward, used[0])
    choice = outer[-1] if outer and not _conditions(backward, bound[0]) else None
    if not isinstance(choice, cst.If) or choice.orelse is not None or not _is_of_call(backward, choice.test):
        return None
    if not all(choice.body in backward.above(each) for each in used) or choice in backward.above(gradient):
        return None
    if _varies(backward, choice) or _is_settled(fn, backward, choice, made):
        return None
    return choice if _compares(choice.test) else None


def _conditions(method: Method, node: cst.CSTNode) -> list[cst.CSTNode]:
    """What may skip a node, other than loops, the innermost first."""
    return [each for each in method.above(node) if isinstance(each, _MAYBE) and each is not method.node]


_MAYBE = (
    *(cst.If, cst.Match, cst.Try, cst.TryStar, cst.FunctionDef, cst.Lambda, cst.ClassDef),
    *(cst.IfExp, cst.BaseComp, cst.BooleanOperation),
)
"""Nodes with parts that may not run, other than loops."""


def _values(method: Method, name: cst.Name) -> Iterator[cst.BaseExpression]:
    """The value of the statement that binds a name."""
    target = method.parents[name]
    statement = method.parents[target] if isinstance(target, cst.AssignTarget) else None
    if isinstance(statement, cst.Assign):
        yield statement.value


def _is_harmless(method: Method, use: cst.Name) -> bool:
    """Whether a name is returned there, or not asked for its values."""
    above = method.parents[use]
    if isinstance(above, cst.Attribute) and above.attr.value in operations.SCALAR_ATTRIBUTES:
        return True
    above = method.parents[above] if isinstance(above, cst.Element) else above
    return isinstance(above, cst.Return) or isinstance(method.parents[above], cst.Return)


def _is_of_call(method: Method, test: cst.BaseExpression) -> bool:
    """Whether a test asks for nothing but what the method binds, or gets."""
    own = {*method.binders, *(each.name for each in method.params), "len"}
    return all(each.value in own for each in method.variables if each is test or test in method.above(each))


def _varies(method: Method, choice: cst.If) -> bool:
    """Whether a test may hold in one round of a loop around it and not in another."""
    loops = [each for each in method.above(choice) if isinstance(each, (cst.For, cst.While))]
    asked = {*words_of(choice.test)}
    changes = any(
        loop in method.above(node) for loop in loops for name in asked for node in method.binders.get(name, ())
    )
    asks = (each for kind in _OF_STATE for each in method.nodes_of(kind))
    return changes or (bool(loops) and any(choice.test in method.above(each) for each in asks))


_OF_STATE = (cst.Attribute, cst.Call, cst.Subscript)
"""What may have another value although no name is bound again."""


def _compares(test: cst.BaseExpression) -> bool:
    """Whether a test compares, but neither tells that there is something to write, nor asks for what rarely differs."""
    comparison = test.comparisons[0] if isinstance(test, cst.Comparison) and len(test.comparisons) == 1 else None
    words = {*words_of(test)}
    if comparison is None or not words.isdisjoint(_SURROUNDINGS) or "0" in words:
        return False
    sized = isinstance(comparison.operator, (cst.GreaterThanEqual, cst.LessThan)) and "1" in words
    return isinstance(comparison.operator, _OPERATORS) and not sized


_OPERATORS = (
    *(cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual),
    *(cst.Equal, cst.NotEqual),
)

_SURROUNDINGS = frozenset(
    ["device", "dim", "is_cuda", "ndim", "ndimension", "numel", "platform", "requires_grad", "type", "version"]
)
"""Words in tests of what a program that runs at all usually has, or of whether there are elements."""


def _is_settled(fn: FunctionClass, backward: Method, choice: cst.If, made: cst.Call) -> bool:
    """Whether a test is decided, by the size or by what may leave a method too, which is about the same names."""
    if outcome(fn, backward, choice.test) is not None or never_runs(fn, backward, choice):
        return True
    asked = {*words_of(choice.test)} - _ANYWHERE - {backward.ctx_name}
    if not asked.isdisjoint(words_of(made)):
        return True
    tests = [*backward.raising_tests, *_leaving(backward)]
    tests += [each for method in fn.earlier_methods for each in (*method.raising_tests, *_leaving(method))]
    return any(not asked.isdisjoint(words_of(test)) for test in tests if not _divides(test))


_ANYWHERE = frozenset(["self", "ctx", "size", "shape"])


def _leaving(method: Method) -> Iterator[cst.BaseExpression]:
    """The tests of each ``if`` with a ``return`` in it."""
    for node in method.nodes_of(cst.Return):
        yield from (each.test for each in method.above(node) if isinstance(each, cst.If))


def _divides(test: cst.BaseExpression) -> bool:
    """Whether a test is ``a % b == 0``, which decides no other test."""
    return (
        isinstance(test, cst.Comparison)
        and isinstance(test.left, cst.BinaryOperation)
        and isinstance(test.left.operator, cst.Modulo)
    )
