"""In-place modifications that a later one reverts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.values import storage
from ctxlint.model.syntax import code_of, dotted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.interpreter.events import Mutation
    from ctxlint.model.interpreter.values import Value


def lasting(mutations: tuple[Mutation, ...]) -> Iterator[Mutation]:
    """The in-place modifications that no later one reverts: not ``x.sub_(y)`` followed by ``x.add_(y)``."""
    gone = {each.order for pair in reverted(mutations) for each in pair}
    return (each for each in mutations if each.order not in gone)


def reverted(mutations: tuple[Mutation, ...]) -> Iterator[tuple[Mutation, Mutation]]:
    """The in-place modifications that a later one reverts, each with that one."""
    steps = [each for each in mutations if each.how in INVERSE]
    for at, later in enumerate(steps):
        for earlier in steps[:at]:
            if (earlier.guards, INVERSE[earlier.how]) == (later.guards, later.how) and _is_same(earlier, later):
                if _operand(earlier) == _operand(later) != "":
                    yield earlier, later


def _is_same(earlier: Mutation, later: Mutation) -> bool:
    """Whether both modify one tensor: ``x.data`` is a new view each time."""
    if earlier.target == later.target or earlier.target is None or later.target is None:
        return earlier.target == later.target
    nodes = (earlier.target_node, later.target_node)
    named = [dotted(each) for each in nodes if each is not None]
    return len(named) == 2 and named[0] is not None and named[0] == named[1] and _storages(earlier) == _storages(later)


def _storages(mutation: Mutation) -> Value | None:
    return storage(mutation.target) if mutation.target is not None else None


_PAIRS = (
    ("add_", "sub_"),
    ("mul_", "div_"),
    ("+=", "-="),
    ("*=", "/="),
    ("[...] +=", "[...] -="),
    ("[...] *=", "[...] /="),
)
INVERSE = dict((*_PAIRS, *((second, first) for first, second in _PAIRS)))


def reverts(later: Mutation, earlier: Mutation) -> bool:
    """Whether the operation is the inverse of an earlier one: ``sub_`` of ``add_``, or ``add_(-y)`` of ``add_(y)``."""
    negated = [_operand(each).startswith("-") for each in (later, earlier)]
    if negated[0] != negated[1]:
        return later.how == earlier.how and later.how in ("add_", "sub_")
    return INVERSE.get(later.how) == earlier.how


def _operand(mutation: Mutation) -> str:
    """The only argument of an in-place method, or what an augmented assignment changes, and by what; else empty."""
    node = mutation.node
    if isinstance(node, cst.Call):
        return code_of(node.args[0]) if len(node.args) == 1 else ""
    line = mutation.statement.body if isinstance(mutation.statement, cst.SimpleStatementLine) else ()
    for each in line:
        if isinstance(each, cst.AugAssign) and (each is node or each.target is node):
            return f"{code_of(each.target)}: {code_of(each.value)}"
    return ""
