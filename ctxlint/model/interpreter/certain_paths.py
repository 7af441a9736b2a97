"""Whether something happens on all paths."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.syntax import parents_below
from ctxlint.patterns import pattern

if TYPE_CHECKING:
    from ctxlint.model.interpreter.events import Guard


def is_on_all_paths(paths: list[tuple[Guard, ...]]) -> bool:
    """Whether one of several events happens, whatever the outcomes of the tests on the paths to them."""
    if not all(paths):
        return True
    first = paths[0][0]
    arms: dict[str, list[tuple[Guard, ...]]] = {}
    for guard, *more in paths:
        if guard.block == first.block:
            arms.setdefault(guard.arm, []).append(tuple(more))
    return len(arms) == _number_of_arms(first) and all(map(is_on_all_paths, arms.values()))


def _number_of_arms(guard: Guard) -> int:
    """How many arms a statement has; an impossible number if that is unknown."""
    if guard.arm in ("True", "False"):
        return 2
    case = _CASE.fullmatch(guard.arm)
    return int(case["count"]) if case is not None else sys.maxsize


_CASE = pattern(r"case \d+ of (?P<count>\d+)")


def without_parts(guards: tuple[Guard, ...]) -> tuple[Guard, ...]:
    """The guards, except those that are parts of others: ``a`` of ``a and b``, and of ``not a``."""
    parts = {
        id(part)
        for each in guards
        if each.test is not None and (each.has_parts or isinstance(each.test, cst.UnaryOperation))
        for part in parents_below(each.test)
    }
    return tuple(each for each in guards if id(each.test) not in parts)
