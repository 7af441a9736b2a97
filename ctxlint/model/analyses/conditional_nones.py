"""Names that are None on one arm of a conditional expression, and whose attribute is read without its test."""

from __future__ import annotations

from itertools import pairwise, takewhile
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.absent_inputs import default_of_caller, may_be_absent
from ctxlint.model.analyses.decided_tests import never_runs, outcome
from ctxlint.model.analyses.kept_values import kept_value
from ctxlint.model.analyses.unbound_locals import is_asked_elsewhere
from ctxlint.model.analyses.untested_nones import may_be_asserted
from ctxlint.model.interpreter.events import Assigned, MaybeNone
from ctxlint.model.interpreter.values import ContextAttribute, is_input
from ctxlint.model.syntax import code_of, is_name, last_name, names_in
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ctxlint.model.function import FunctionClass, Input
    from ctxlint.model.interpreter.method import Method


@record
class ConditionalNone:
    """A read of an attribute of a name that is None where ``test`` is not ``holds``."""

    use: MaybeNone
    test: cst.BaseExpression
    holds: bool


def conditional_nones(fn: FunctionClass, method: Method) -> Iterator[ConditionalNone]:
    """The reads that no other test decides than those around ``name = value if x is not None else None``, in order.

    Only if that test asks whether an input is None, which it may be: many tests are never needed.
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
        tests = [part for each in _parts(node.test, holds) if (part := _asked_for_none(each, holds)) is not None]
        if not tests or outcome(fn, method, node.test) is holds or never_runs(fn, method, use.node):
            continue
        if not any(_may_be_none(fn, method, code_of(each), use, node) for each in tests):
            continue
        if not is_asked_elsewhere(method, node, [node.test]) and not _may_be_checked(method, use.name, use, node):
            yield ConditionalNone(use, node.test, holds)


_APART = (cst.Lambda, cst.FunctionDef, cst.ClassDef, cst.BaseComp, cst.Try, cst.TryStar)


def _may_be_none(fn: FunctionClass, method: Method, tested: str, use: MaybeNone, node: cst.IfExp) -> bool:
    """Whether what is tested is an input, or kept of it, that may certainly be None where a name is read."""
    head, _, attribute = tested.partition(".")
    if attribute:
        value = kept_value(fn, ContextAttribute(attribute)) if head == method.ctx_name else None
    elif method in fn.earlier_methods and tested not in method.binders:
        named = next((each for each in fn.inputs if each.name == tested), None)
        return named is not None and _is_optional(fn, named, tested, method, use, node)
    else:
        value = kept_value(fn, method.value_of(tested))
    entry = fn.inputs[value.index] if is_input(value) and value.index < len(fn.inputs) else None
    return entry is not None and _is_optional(fn, entry, tested, method, use, node)


def _is_optional(fn: FunctionClass, entry: Input, tested: str, method: Method, use: MaybeNone, node: cst.IfExp) -> bool:
    """Whether a call, a default or another test says that an input may be None, and nothing refuses that."""
    if _may_be_checked(method, tested, use, node):
        return False
    said = any(each.node is None or node not in method.above(each.node) for each in entry.may_be_none) or (
        default_of_caller(entry.index, fn.calls) is not None
    )
    return (
        said and may_be_absent(fn, entry) and not any(_is_given_away(each, entry.name) for each in fn.earlier_methods)
    )


def _is_given_away(method: Method, name: str) -> bool:
    """Whether a method calls a function for nothing but what it does with a name: it may refuse None."""
    named = ((each, [*method.above(each)]) for each in method.named.get(name, ()))
    return any(may_be_asserted(method, each) and not _is_guarded(each, above, name) for each, above in named)


def _may_be_checked(method: Method, name: str, use: MaybeNone, node: cst.IfExp) -> bool:
    """Whether a call gets a name before it is read, or its attribute is: that may raise if it is None."""
    statement = method.statement_around(use.node)
    for each in method.named.get(name, ()):
        above = [*takewhile(lambda outer: outer is not method.node, method.above(each))]
        if node in above or method.statement_around(each) is statement or not method.is_written_before(each, use.node):
            continue
        if not _is_guarded(each, above, name) and any(isinstance(outer, _RAISING) for outer in above):
            return True
    return False


_RAISING = (cst.Arg, cst.Attribute, cst.Subscript, cst.BinaryOperation, cst.UnaryOperation, cst.Assert, cst.While)


def _is_guarded(node: cst.CSTNode, above: list[cst.CSTNode], name: str) -> bool:
    """Whether a test with the same name decides whether an expression is evaluated, or ctx only keeps it."""
    for inner, outer in pairwise((node, *above)):
        if (
            isinstance(outer, (cst.If, cst.IfExp, cst.While))
            and inner is not outer.test
            and name in names_in(outer.test)
        ):
            return True
        if isinstance(outer, cst.Call) and last_name(outer.func) == "save_for_backward":
            return True
    return False


def _parts(test: cst.BaseExpression, holds: bool) -> Iterator[cst.BaseExpression]:
    """The conditions each of which is necessary for a test to be as ``holds`` says."""
    wanted = cst.And if holds else cst.Or
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, wanted):
        yield from _parts(test.left, holds)
        yield from _parts(test.right, holds)
    else:
        yield test


def _asked_for_none(test: cst.BaseExpression, holds: bool) -> cst.BaseExpression | None:
    """What a test asks for None: ``x`` of ``x is not None``, or of ``x is None`` if it is not to hold."""
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return None
    operator = test.comparisons[0].operator
    asks = is_name(test.comparisons[0].comparator, "None") and isinstance(operator, cst.IsNot if holds else cst.Is)
    return test.left if asks else None


def names_from(method: Method, names: Iterable[str]) -> frozenset[str]:
    """These names, and those that statements compute from them, at least in part."""
    found = frozenset(names)
    values = [(each.name, names_in(_assigned(method, each))) for each in method.facts.of(Assigned)]
    while more := {name for name, read in values if name not in found and not found.isdisjoint(read)}:
        found |= more
    return found


def _assigned(method: Method, event: Assigned) -> cst.CSTNode:
    """The expression that a name gets its value from; the whole statement where that is not known."""
    statement = method.statement_around(event.node) or event.node
    return event.value_node or (statement.value if isinstance(statement, cst.Assign) else statement)
