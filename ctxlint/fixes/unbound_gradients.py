"""Binding gradients to None before the tests under which they are computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fix import Applicability
from ctxlint.fixes.method_code import code_of_method
from ctxlint.model.analyses.flags import flags_asked, flags_of, stored_flags, unbound_uses
from ctxlint.model.interpreter.events import Assigned, Question
from ctxlint.model.interpreter.values import NeedsInputGrad

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ctxlint.fix import Edit, Fix
    from ctxlint.fixes.method_code import MethodCode, Statement
    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.events import Guard, MaybeUnbound
    from ctxlint.model.interpreter.method import Method


def bind_none_first(fn: FunctionClass, method: Method, name: str) -> Fix | None:
    """Bind a gradient to None before the tests, in one statement with all others of the same applicability.

    Offered if the name is nothing but a gradient: where it is unbound, it is only returned, for the input under whose
    flag it is bound. Safe if that flag alone suffices to bind it: torch does not need the gradient if it stays None.
    """
    code = code_of_method(fn, method)
    if code is None:
        return None
    flags = stored_flags(fn)
    found: dict[str, tuple[Applicability, Statement]] = {}
    uses: dict[str, list[MaybeUnbound]] = {}
    for use, _flags in unbound_uses(fn, method):
        uses.setdefault(use.name, []).append(use)
    for other, its in uses.items():
        applicability = _applicability(code, other, its, flags)
        place = None if applicability is None else _before_all(code, other, its)
        if applicability is not None and place is not None:
            found[other] = (applicability, place)
    if name not in found:
        return None
    applicability, place = found[name]
    block = code.block(place)
    together = [other for other, (its, where) in found.items() if its is applicability and code.block(where) is block]
    first = min((found[other][1] for other in together), key=code.start)
    names = ", ".join(f"`{other}`" for other in together)
    return code.fix(f"Bind {names} to `None` first", [_bound(code, first, together)], applicability)


# ---------------------------------------------------------------------------------------------------------------------
# Nothing but a gradient


def _applicability(
    code: MethodCode, name: str, uses: list[MaybeUnbound], flags: Mapping[object, int]
) -> Applicability | None:
    """The applicability of None as the gradient where the name is unbound; None if it is not certain."""
    bindings = code.method.assignments.get(name, [])
    if len({each.node for each in bindings}) != len(code.bindings(name)) or any(each.in_loop for each in bindings):
        return None
    if not all(code.in_own_scope(each) for each in code.uses(name)):
        return None
    safe = True
    for use in uses:
        slot = returned_position(code, use.node)
        if slot is None or use.in_loop or not any(slot in flags_asked(each.guards, flags) for each in bindings):
            return None
        if any(flags_of(each.guards, flags) - flags_of(use.guards, flags) - {slot} for each in bindings):
            return None  # the flag of another input decides: None would hide that the gradient is missing
        safe = safe and any(_depends_on_flag(each, slot, use.guards) for each in bindings)
    return Applicability.SAFE if safe else Applicability.UNSAFE


def _depends_on_flag(binding: Assigned, slot: int, guards: Iterable[Guard]) -> bool:
    """Whether a binding depends only on one input's flag, on the path that leads to a use."""
    ways = set(guards)
    return all(guard in ways or _is_flag(guard, slot) for guard in binding.guards)


def _is_flag(guard: Guard, slot: int) -> bool:
    """Whether a guard holds if one input needs a gradient."""
    return any(
        asks.question is Question.NEEDS_INPUT_GRAD
        and asks.answer
        and isinstance(asks.value, NeedsInputGrad)
        and asks.value.index == slot
        for asks in (guard.asks, *guard.one_of)
        if asks is not None
    )


def returned_position(code: MethodCode, node: cst.CSTNode) -> int | None:
    """The position at which a ``return`` has a name; None for every other use."""
    parent = code.parents[node]
    if isinstance(parent, cst.Return):
        return 0
    if not isinstance(parent, cst.Element):
        return None
    display = code.parents[parent]
    if not isinstance(display, cst.Tuple) or not isinstance(code.parents[display], cst.Return):
        return None
    before = list(display.elements[: list(display.elements).index(parent)])
    return None if any(isinstance(each, cst.StarredElement) for each in before) else len(before)


# ---------------------------------------------------------------------------------------------------------------------
# The statement


def _before_all(code: MethodCode, name: str, uses: list[MaybeUnbound]) -> Statement | None:
    """The statement that contains the first binding, in the block around all bindings and uses; no loop repeats it."""
    bindings = [each.node for each in code.method.assignments.get(name, ())]
    nodes = [*bindings, *(use.node for use in uses)]
    shared = [each for each in code.above(nodes[0]) if all(each in code.above(node) for node in nodes[1:])]
    block = next((each for each in shared if isinstance(each, cst.IndentedBlock)), None)
    if block is None or any(isinstance(each, (cst.For, cst.While)) for each in shared):
        return None
    return code.statement_in(block, min(nodes, key=code.layout.start))


def _bound(code: MethodCode, place: Statement, names: list[str]) -> Edit | None:
    """``a = b = None`` before a statement; the names are added to such a statement above in the block, if any."""
    chain = _chain_above(code, place)
    text = "".join(f"{name} = " for name in names)
    if chain is not None:
        return code.layout.insert(code.layout.start(chain.value), text)
    return code.before(place, f"{text}None")


def _chain_above(code: MethodCode, place: Statement) -> cst.Assign | None:
    """The last ``a = b = None`` above a statement, in its block and on a line of its own."""
    line = place if isinstance(place, cst.BaseCompoundStatement) else code.parents[place]
    siblings = list(getattr(code.parents[line], "body", ()))
    above = siblings[: siblings.index(line)] if line in siblings else []
    return next((each for each in map(_chain_in, reversed(above)) if each is not None), None)


def _chain_in(line: cst.CSTNode) -> cst.Assign | None:
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        return None
    statement = line.body[0]
    if not isinstance(statement, cst.Assign) or len(statement.targets) < 2:
        return None
    if not isinstance(statement.value, cst.Name) or statement.value.value != "None" or statement.value.lpar:
        return None
    plain = all(isinstance(each.target, cst.Name) for each in statement.targets)
    return statement if plain else None
