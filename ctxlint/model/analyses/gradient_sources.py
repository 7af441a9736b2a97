"""Where the gradients that backward returns come from: the statements that compute them, and the flags around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.flags import literal_flag
from ctxlint.model.interpreter.events import Assigned, Mutation, Question
from ctxlint.model.interpreter.values import NONE, UNKNOWN, NeedsInputGrad, Tri, Value, is_none
from ctxlint.model.syntax import code_of, names_in
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ctxlint.model.interpreter.events import Guard
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Slot


@record
class Computed:
    """A statement that ``binds`` a gradient, or else modifies it, before it is returned.

    ``guards`` are its path condition.
    """

    node: cst.CSTNode
    guards: tuple[Guard, ...]
    binds: bool


@record
class FlagTest:
    """A test of ``ctx.needs_input_grad`` that guards a gradient.

    ``index`` is the input whose flag it tests, None if it tests the flags in another way. ``holds`` is its outcome
    where the gradient is computed.
    """

    test: cst.BaseExpression
    index: int | None
    holds: bool


def computed_by(method: Method, slot: Slot) -> list[Computed]:
    """The statements that compute the content of a slot of backward's return, in order; none unless it is a name."""
    if not isinstance(slot.node, cst.Name):
        return []
    name = slot.node.value
    options = [option for option in slot.value.options() if option not in (NONE, UNKNOWN)]
    mutations = [each for each in method.facts.of(Mutation) if each.name == name]
    events = sorted((*method.assignments.get(name, ()), *mutations), key=lambda each: each.order)
    bindings = [each for each in events if isinstance(each, Assigned) and not each.augmented]
    reaching = [each for each in bindings if _may_be(each.value, options)]
    if not reaching:
        return []
    used = {id(each) for each in reaching}
    for later in reaching:
        more = [each for each in _feeding(later, name, bindings) if id(each) not in used]
        reaching += more
        used.update(map(id, more))
    first = min(each.order for each in reaching)
    found: dict[int, Computed] = {}
    for each in events:
        if isinstance(each, Assigned) and not each.augmented and id(each) not in used:
            continue
        if each.order < first:
            continue
        node = each.statement if each.statement is not None else each.node
        found.setdefault(id(node), Computed(node, each.guards, id(each) in used))
    return list(found.values())


def _feeding(later: Assigned, name: str, bindings: list[Assigned]) -> list[Assigned]:
    """The bindings of a name that may flow into a later one, as in ``g = f(x); g = g * 2``."""
    value = getattr(later.statement, "value", None)
    if value is None or name not in names_in(value):
        return []
    before = [each for each in bindings if later.may_follow(each)]
    certain = max((each.order for each in before if later.implies(each)), default=-1)
    return [each for each in before if each.order >= certain and not _is_nothing(each)]


def _is_nothing(event: Assigned) -> bool:
    return event.value is not None and is_none(event.value) is Tri.YES


def _may_be(value: Value | None, options: list[Value]) -> bool:
    return value is not None and any(each in options for each in value.options())


def flag_tests(guards: Iterable[Guard]) -> Iterator[FlagTest]:
    """The tests of flags in a path condition."""
    for guard in guards:
        if guard.test is None:
            continue
        asks = guard.asks
        if asks is not None and asks.question is Question.NEEDS_INPUT_GRAD:
            index = asks.value.index if isinstance(asks.value, NeedsInputGrad) else None
            yield FlagTest(guard.test, index, guard.holds)
        elif guard.mentions("needs_input_grad") and not guard.has_parts:
            yield FlagTest(guard.test, None, guard.holds)


def conditional_flag(slot: Slot) -> FlagTest | None:
    """The test of flags in ``gradient if ctx.needs_input_grad[0] else None``."""
    node = slot.node
    if not isinstance(node, cst.IfExp) or "needs_input_grad" not in code_of(node.test):
        return None
    test, holds = node.test, True
    if isinstance(node.body, cst.Name) and node.body.value == "None":
        holds = False
    inner = test
    while isinstance(inner, cst.UnaryOperation) and isinstance(inner.operator, cst.Not):
        inner = inner.expression
    return FlagTest(test, literal_flag(inner), holds)
