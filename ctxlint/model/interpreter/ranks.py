"""Collectives that write to the tensor of some processes only, and tests of the rank that tell which ones run them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.conditions import certain_parts, held_test
from ctxlint.model.interpreter.values import Constant, Scalar
from ctxlint.model.syntax import parents_below, words_of
from ctxlint.torch_api import operations

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ctxlint.model.interpreter.values import Slot
    from ctxlint.model.interpreter.walk import Walk


def only_reads_here(walk: Walk, how: str, positional: tuple[Slot, ...], keywords: Mapping[str, Slot]) -> bool:
    """Whether a collective leaves its tensor as it is under the tests on the way: ``if rank == 0: broadcast(x, 0)``."""
    root = operations.ROOTS.get(how)
    if root is None:
        return False
    passed = [keywords[name] for name in (root.name, f"group_{root.name}") if name in keywords]
    return is_sent_by(walk, how, (*positional[1:2], *passed))


def raises_for_group(walk: Walk, keywords: Mapping[str, Slot]) -> bool:
    """Whether a collective gets a number as its group, which raises before anything is written.

    A number is what is known as one, or what a test on the way compares with one: ``if world_size > 1:``.
    """
    group = keywords.get("group")
    if group is None or group.node is None:
        return False
    value, words = group.value, tuple(words_of(group.node))
    number = isinstance(value, Constant) and isinstance(value.value, int)
    if number or (isinstance(value, Scalar) and value.sort in ("int", "number")):
        return True
    tests = ((guard.test, guard.holds) for guard in walk.state.guards if guard.test is not None)
    parts = (part for test, holds in tests for part, _outcome in certain_parts(test, holds))
    return any(
        isinstance(part, cst.Comparison)
        and isinstance(part.comparisons[0].comparator, cst.Integer)
        and tuple(words_of(part.left)) == words
        for part in parts
    )


def is_sent_by(walk: Walk, how: str, possible: Iterable[Slot]) -> bool:
    """Whether a helper's collective leaves its tensor as it is; any of the helper's arguments may be the root."""
    root = operations.ROOTS.get(how)
    return root is not None and any(
        _is_tested(walk, each.node, root.writes) for each in possible if each.node is not None
    )


def _is_tested(walk: Walk, root: cst.BaseExpression, differs: bool) -> bool:
    """Whether the code runs only where the rank is ``root``; with ``differs``, only where it is another one.

    A rank in the group may be tested: ``if group.rank() == 0: broadcast(x, get_global_rank(group, 0))``.
    """
    if not walk.state.guards:
        return False
    parts = [root, *(each for each in parents_below(root) if isinstance(each, cst.BaseExpression))]
    roots = {tuple(words_of(each)) for each in parts}
    return any(
        _names_rank(one, other, roots)
        for guard in walk.state.guards
        if guard.test is not None
        for one, other, equal in _compared(walk, guard.test, guard.holds)
        if equal is not differs
    )


def _compared(
    walk: Walk, test: cst.BaseExpression, holds: bool
) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression, bool]]:
    """What a test that has this outcome compares, and whether it is equal."""
    for part, outcome in certain_parts(test, holds):
        held = held_test(walk, part, walk.peek(part)) if isinstance(part, cst.Name) else None
        if held is not None:
            yield from _compared(walk, held, outcome)
        elif isinstance(part, cst.Comparison) and len(part.comparisons) == 1:
            operator, other = part.comparisons[0].operator, part.comparisons[0].comparator
            if isinstance(operator, (cst.Equal, cst.NotEqual)):
                yield part.left, other, isinstance(operator, cst.Equal) is outcome


def _names_rank(one: cst.BaseExpression, other: cst.BaseExpression, roots: set[tuple[str, ...]]) -> bool:
    """Whether one of two operands is the root; a number is one only next to a rank."""
    for root, rank in ((one, other), (other, one)):
        if tuple(words_of(root)) in roots:
            if not isinstance(root, cst.Integer) or any("rank" in word.lower() for word in words_of(rank)):
                return True
    return False
