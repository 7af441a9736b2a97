"""Names that are None on one arm of a conditional expression, and whose attribute is read without its test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.decided_tests import never_runs, outcome
from ctxlint.model.analyses.unbound_locals import is_asked_elsewhere
from ctxlint.model.interpreter.events import MaybeNone
from ctxlint.model.syntax import is_name
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method


@record
class ConditionalNone:
    """A read of an attribute of a name that is None where ``test`` is not ``holds``."""

    use: MaybeNone
    test: cst.BaseExpression
    holds: bool


def conditional_nones(fn: FunctionClass, method: Method) -> Iterator[ConditionalNone]:
    """The reads that no other test decides than those around ``name = value if x is not None else None``, in order.

    Only if that test asks for None: it then says that there are calls in which it fails.
    """
    for use in method.facts.of(MaybeNone):
        assigned = method.assignments.get(use.name, [])
        if len(assigned) != 1 or len(method.binders.get(use.name, ())) != 1 or not use.how.startswith("."):
            continue
        node = assigned[0].value_node
        if not isinstance(node, cst.IfExp) or use.tried or not use.implies(assigned[0]):
            continue
        holds = is_name(node.orelse, "None")
        if holds is is_name(node.body, "None") or not set(use.guards) <= set(assigned[0].guards):
            continue
        if any(isinstance(each, _APART) and each is not method.node for each in method.above(use.node)):
            continue
        asked = any(_asks_for_none(each, holds) for each in _parts(node.test, holds))
        if not asked or outcome(fn, method, node.test) is holds or never_runs(fn, method, use.node):
            continue
        if not is_asked_elsewhere(method, node, [node.test]):
            yield ConditionalNone(use, node.test, holds)


_APART = (cst.Lambda, cst.FunctionDef, cst.ClassDef, cst.BaseComp, cst.Try, cst.TryStar)


def _parts(test: cst.BaseExpression, holds: bool) -> Iterator[cst.BaseExpression]:
    """The conditions each of which is necessary for a test to be as ``holds`` says."""
    wanted = cst.And if holds else cst.Or
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, wanted):
        yield from _parts(test.left, holds)
        yield from _parts(test.right, holds)
    else:
        yield test


def _asks_for_none(test: cst.BaseExpression, holds: bool) -> bool:
    """Whether a test is ``x is not None``, or ``x is None`` if it is not to hold."""
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return False
    operator = test.comparisons[0].operator
    return is_name(test.comparisons[0].comparator, "None") and isinstance(operator, cst.IsNot if holds else cst.Is)
