"""How setup_context uses the inputs that it unpacks, as evidence of whether they are tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.input_uses import Uses

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctxlint.model.function import Evidence
    from ctxlint.model.interpreter.method import Method


def evidence_in_setup(
    setup: Method, count: int, canonical: Callable[[cst.BaseExpression], str | None]
) -> tuple[list[Evidence], ...]:
    """The evidence for each of forward's ``count`` inputs, where the body begins with ``x, weight = inputs``."""
    nothing: tuple[list[Evidence], ...] = tuple([] for _ in range(count))
    if not setup.positional:
        return nothing
    statements = setup.node.body.body
    for at, statement in enumerate(statements):
        names = _unpacked(statement, setup.positional[0].name)
        if names is None:
            continue
        if len(names) != count or len(set(names) - {"_"}) + names.count("_") != count:
            return nothing
        uses = Uses(set(names) - {"_"}, canonical)
        for later in statements[at + 1 :]:
            uses.walk(later)
        return tuple(uses.evidence.get(name, []) for name in names)
    return nothing


def _unpacked(statement: cst.CSTNode, holder: str) -> list[str] | None:
    """The names of ``x, weight = inputs``; None for any other statement."""
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return None
    assign = statement.body[0]
    if not isinstance(assign, cst.Assign) or len(assign.targets) != 1:
        return None
    target = assign.targets[0].target
    if not isinstance(assign.value, cst.Name) or assign.value.value != holder or not isinstance(target, cst.Tuple):
        return None
    names = [element.value.value for element in target.elements if isinstance(element.value, cst.Name)]
    plain = all(isinstance(element, cst.Element) for element in target.elements)
    return names if plain and len(names) == len(target.elements) else None
