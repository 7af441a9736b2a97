"""In-place modifications that a later one reverts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.syntax import code_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.interpreter.events import Mutation


def lasting(mutations: tuple[Mutation, ...]) -> Iterator[Mutation]:
    """The in-place modifications that no later one reverts: not ``x.sub_(y)`` followed by ``x.add_(y)``."""
    steps = [each for each in mutations if each.how in _INVERSE]
    gone: set[int] = set()
    for at, later in enumerate(steps):
        for earlier in steps[:at]:
            if (earlier.target, earlier.guards, _INVERSE[earlier.how]) == (later.target, later.guards, later.how):
                if _operand(earlier) == _operand(later) != "":
                    gone |= {earlier.order, later.order}
    return (each for each in mutations if each.order not in gone)


_PAIRS = (
    ("add_", "sub_"),
    ("mul_", "div_"),
    ("+=", "-="),
    ("*=", "/="),
    ("[...] +=", "[...] -="),
    ("[...] *=", "[...] /="),
)
_INVERSE = dict((*_PAIRS, *((second, first) for first, second in _PAIRS)))


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
