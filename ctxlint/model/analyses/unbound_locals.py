"""Locals that a method certainly reads unbound: before anything binds them, or after one branch that does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.decided_tests import never_runs, outcome
from ctxlint.model.analyses.flags import stored_flags
from ctxlint.model.interpreter.events import MaybeUnbound
from ctxlint.model.interpreter.local_names import times_bound
from ctxlint.model.interpreter.values import Constant, Tri, is_none
from ctxlint.model.syntax import is_name, last_name, leaves, words_of
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.events import Assigned
    from ctxlint.model.interpreter.method import Method


@record
class UnboundBranch:
    """A branch of an ``if`` that continues without the name of ``use``, which all others bind.

    ``test`` is that of the branch; for ``else`` that of the only ``if``, None after ``elif``. ``body`` is None if there
    is no ``else``. ``binds`` are the names that it binds.
    """

    use: MaybeUnbound
    body: cst.BaseSuite | None
    test: cst.BaseExpression | None
    is_else: bool
    binds: frozenset[str] = frozenset()


def read_too_early(fn: FunctionClass, method: Method) -> Iterator[MaybeUnbound]:
    """The reads of locals that nothing has bound wherever they run, in order."""
    for use in method.facts.of(MaybeUnbound):
        assigned = method.assignments.get(use.name, [])
        if assigned and not any(_may_precede(each, use) for each in assigned) and _is_judgeable(method, use):
            if not never_runs(fn, method, use.node):
                yield use


def _may_precede(assigned: Assigned, use: MaybeUnbound) -> bool:
    """Whether an assignment may come before a read, also in an earlier iteration of a loop that skips the read."""
    return use.may_follow(assigned) or (use.in_loop and assigned.in_loop and not assigned.implies(use))


def unbound_branches(fn: FunctionClass, method: Method) -> Iterator[UnboundBranch]:
    """The reads of locals after a branch that binds what the others bind, but not this name, in order.

    Or after an ``if`` without ``else`` that is made to be skipped: by default, or as it changes what was bound before.
    """
    for use in method.facts.of(MaybeUnbound):
        assigned = method.assignments.get(use.name, [])
        if not assigned or use.in_loop or any(len(each.guards) <= len(use.guards) for each in assigned):
            continue
        choice = _choice_before(method, use, assigned) if _is_judgeable(method, use) else None
        found = _incomplete(fn, method, use, choice) if choice is not None else None
        if found is not None:
            yield found


def _is_judgeable(method: Method, use: MaybeUnbound) -> bool:
    """Whether a read is in the method itself, nothing catches what it raises, and all that binds the name is known."""
    if use.tried or not method.facts.modelled or len(method.assignments[use.name]) != len(method.binders[use.name]):
        return False
    return not any(isinstance(each, _APART) and each is not method.node for each in method.above(use.node))


_APART = (cst.Lambda, cst.FunctionDef, cst.ClassDef, cst.BaseComp, cst.Try, cst.TryStar)


def _choice_before(method: Method, use: MaybeUnbound, assigned: list[Assigned]) -> cst.If | None:
    """The ``if`` that contains all assignments to a name which a later statement of its block certainly reads."""
    around: list[cst.CSTNode] = [use.node, *method.above(use.node)]
    line = next(at for at, each in enumerate(around) if isinstance(each, _STATEMENTS))
    if any(isinstance(each, (cst.IfExp, cst.BooleanOperation, cst.Comparison)) for each in around[:line]):
        return None
    block = around[line + 1] if isinstance(around[line], cst.SimpleStatementLine) else None
    if not isinstance(block, cst.IndentedBlock):
        return None
    within = {each.node: set(method.above(each.node)) for each in assigned}
    for at, choice in enumerate(block.body):
        if isinstance(choice, cst.If) and all(choice in above for above in within.values()):
            after = block.body[at + 1 :]
            between = after[: after.index(around[line])] if around[line] in after else None
            left = any(_leaving(method, each) for each in between) if between is not None else True
            return choice if not left and choice not in around else None
    return None


_STATEMENTS = (cst.BaseCompoundStatement, cst.SimpleStatementLine)


def _leaving(method: Method, statement: cst.CSTNode) -> bool:
    """Whether a statement may leave the method."""
    return any(statement in method.above(each) for kind in (cst.Return, cst.Raise) for each in method.nodes_of(kind))


def _incomplete(fn: FunctionClass, method: Method, use: MaybeUnbound, choice: cst.If) -> UnboundBranch | None:
    """The branch that does not bind a name, if all others certainly do, or leave."""
    branches: list[tuple[cst.BaseSuite, cst.BaseExpression | None]] = []
    at: cst.If | cst.Else | None = choice
    while isinstance(at, cst.If):
        branches.append((at.body, at.test))
        at = at.orelse
    if at is None:
        return _skipped(fn, method, use, choice) if len(branches) == 1 else None
    branches.append((at.body, choice.test if len(branches) == 1 else None))
    tests = [test for _body, test in branches if test is not None]
    bound = [times_bound(body) for body, _test in branches]
    found = None
    for number, (body, test) in enumerate(branches):
        if use.name in bound[number]:
            if not any(_binds(method, body, node) for node in method.binders[use.name]):
                return None
        elif not _ends(body):
            others = {name for other in bound[:number] + bound[number + 1 :] for name in other}
            if found is not None or others.isdisjoint(bound[number]) or never_runs(fn, method, body.body[0]):
                return None
            found = UnboundBranch(use, body, test, body is at.body, frozenset(bound[number]))
    return found if found is not None and not is_asked_elsewhere(method, choice, tests) else None


def _skipped(fn: FunctionClass, method: Method, use: MaybeUnbound, choice: cst.If) -> UnboundBranch | None:
    """The ``if`` without ``else`` after which a name is not bound, if it is made to be skipped."""
    if not any(_binds(method, choice.body, node) for node in method.binders[use.name]):
        return None
    if not _is_false_by_default(method, choice.test) and not _refines(fn, method, choice):
        return None
    if outcome(fn, method, choice.test) is True or is_asked_elsewhere(method, choice, [choice.test]):
        return None
    return UnboundBranch(use, None, choice.test, is_else=True)


def _is_false_by_default(method: Method, test: cst.BaseExpression) -> bool:
    """Whether a test of a parameter fails if the parameter has its default: a flag, or ``x is not None``."""
    flag, holds = _flag(test)
    param = next((each for each in method.own_params if is_name(flag, each.name)), None)
    if flag is None or param is None or not method.holds_argument(param.name, flag):
        return False
    if isinstance(test, cst.Comparison):
        return param.default is not None and is_none(param.default) is (Tri.YES if holds else Tri.NO)
    return isinstance(param.default, Constant) and bool(param.default.value) is not holds


def _flag(test: cst.BaseExpression) -> tuple[cst.BaseExpression | None, bool]:
    """``flag`` of ``flag``, ``not flag``, ``flag is None`` and ``flag is not None``, and whether it is to hold."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        flag, holds = _flag(test.expression)
        return flag, not holds
    if (
        isinstance(test, cst.Comparison)
        and len(test.comparisons) == 1
        and is_name(test.comparisons[0].comparator, "None")
    ):
        operator = test.comparisons[0].operator
        return (test.left if isinstance(operator, (cst.Is, cst.IsNot)) else None), isinstance(operator, cst.IsNot)
    return (test if isinstance(test, (cst.Name, cst.Attribute)) else None), True


def _refines(fn: FunctionClass, method: Method, choice: cst.If) -> bool:
    """Whether a block under a flag, other than one about gradients, binds a name again that was bound before it."""
    flag, _holds = _flag(choice.test)
    if (
        flag is None
        or any("grad" in word for word in words_of(flag))
        or f"{fn.reading_ctx}.{last_name(flag)}" in stored_flags(fn)
    ):
        return False
    params = {each.name for each in method.params}
    return any(
        name in params or any(method.is_written_before(each, choice) for each in method.binders[name])
        for name in times_bound(choice.body)
    )


def _ends(body: cst.BaseSuite) -> bool:
    """Whether a block does not continue behind it."""
    return isinstance(body, cst.IndentedBlock) and any(map(leaves, body.body))


def _binds(method: Method, body: cst.BaseSuite, node: cst.CSTNode) -> bool:
    """Whether a block certainly binds a name where it contains the node that does."""
    for each in method.above(node):
        if each is body:
            return True
        if isinstance(each, (cst.Try, cst.TryStar)):
            if each.finalbody is not None or not all(_ends(handler.body) for handler in each.handlers):
                return False
        elif isinstance(each, _MAYBE):
            return False
    return False


_MAYBE = (
    *(cst.If, cst.For, cst.While, cst.Match, cst.FunctionDef, cst.ClassDef, cst.Else),
    *(cst.ExceptHandler, cst.ExceptStarHandler, cst.BaseComp, cst.IfExp),
)
"""Nodes with parts that may not run."""


def is_asked_elsewhere(method: Method, choice: cst.CSTNode, tests: list[cst.BaseExpression]) -> bool:
    """Whether a test elsewhere that may leave the method, or an ``assert``, is about the same as one of the tests."""
    asked = {word for test in tests for word in words_of(test)} - {method.ctx_name}
    leaving = [
        around.test
        for kind in (cst.Return, cst.Raise)
        for node in method.nodes_of(kind)
        for around in method.above(node)
        if isinstance(around, cst.If) and around is not choice and choice not in method.above(around)
    ]
    leaving += [each.test for each in method.nodes_of(cst.Assert)]
    return any(not asked.isdisjoint(words_of(test)) for test in leaving)
