"""What forward saves and stores on ctx, and where it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.explain.contract_rows import AttributeRow, AttributeUse, ReadRow, SaveRow
from ctxlint.explain.locations import one_line, place_of
from ctxlint.model.analyses.saved_reads import ReadBack, read_backs, uses_of
from ctxlint.model.interpreter.events import ContextRead, ContextWrite
from ctxlint.model.interpreter.values import Parameter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.events import ContextCall

_SAVING = ("save_for_backward", "save_for_forward")


def save_rows(fn: FunctionClass) -> Iterator[SaveRow]:
    """One row for each tensor of each saving call."""
    reads = read_backs(fn)
    for name in _SAVING:
        calls = fn.context_calls(name)
        counts = {_count(call) for call in calls}
        for call in calls:
            others = counts - {_count(call)}
            taken = [each for each in reads if each.call == name and (each.count is None or each.count not in others)]
            yield from _rows_of(fn, call, taken)


def _count(call: ContextCall) -> int | None:
    """The number of tensors that a call saves; None if a star makes it unknown."""
    return len(call.arguments) if call.exact else None


def _rows_of(fn: FunctionClass, call: ContextCall, reads: list[ReadBack]) -> Iterator[SaveRow]:
    stars = [at for at, slot in enumerate(call.arguments) if slot.starred]
    first_star = stars[0] if stars else len(call.arguments)
    count = _count(call)
    for at, slot in enumerate(call.arguments):
        node = slot.node
        known = at < first_star or (at == first_star == len(call.arguments) - 1)
        yield SaveRow(
            call=call.method,
            index=at if at <= first_star else None,
            expression=_expression(fn, call, at),
            starred=slot.starred,
            place=place_of(fn, node) if node is not None else place_of(fn, call.node),
            reads=tuple(_read_rows(fn, reads, at, count, slot.starred)) if known else None,
        )


def _expression(fn: FunctionClass, call: ContextCall, at: int) -> str:
    """The code of a saved tensor; for one in ``*inputs``, the name of the input or its index."""
    slot = call.arguments[at]
    if slot.node is None:
        return "?"
    code = one_line(fn, slot.node)
    if slot.starred:
        return f"*{code}"
    arguments = call.node.args if isinstance(call.node, cst.Call) else ()
    if not any(each.star == "*" and each.value is slot.node for each in arguments):
        return code
    if isinstance(slot.value, Parameter):
        return slot.value.name
    return f"{code}[{sum(other.node is slot.node for other in call.arguments[:at])}]"


def _read_rows(
    fn: FunctionClass, reads: list[ReadBack], at: int, count: int | None, starred: bool
) -> Iterator[ReadRow]:
    """The reads of the tensor at ``at``, or, if it is ``starred``, of any from there on."""
    for each in reads:
        index = each.index
        if index is None:
            several = each.start <= at and (count is None or at < count - each.behind)
            if not several and not starred:
                continue
        else:
            if index < 0:
                index = index + count if count is not None else None
            if index is None or not (index >= at if starred else index == at):
                continue
        uses = tuple(place for node in uses_of(each) if (place := place_of(fn, node)) is not None)
        yield ReadRow(each.name, each.method.name, each.index is None, place_of(fn, each.node), uses)


def attribute_rows(fn: FunctionClass) -> Iterator[AttributeRow]:
    """One row for each attribute of ctx that a method sets or reads, in order of appearance."""
    uses: dict[str, tuple[list[AttributeUse], list[AttributeUse]]] = {}
    seen: set[tuple[int, str]] = set()
    for name in _ORDER:
        method = fn.methods.get(name)
        for event in method.facts.events if method is not None else ():
            if not isinstance(event, (ContextWrite, ContextRead)) or (id(event.node), event.attribute) in seen:
                continue
            seen.add((id(event.node), event.attribute))
            written, read = uses.setdefault(event.attribute, ([], []))
            place = place_of(fn, event.node if event.by else _name_of_attribute(event.node))
            if isinstance(event, ContextWrite):
                if not event.deletes:
                    text = one_line(fn, event.value_node) if event.value_node is not None else None
                    written.append(AttributeUse(name, place, text))
            else:
                read.append(AttributeUse(name, place))
    for attribute, (written, read) in uses.items():
        read.sort(key=lambda use: (_ORDER[use.method], use.place.span if use.place is not None else ()))
        yield AttributeRow(attribute, tuple(written), tuple(read))


def _name_of_attribute(node: cst.CSTNode) -> cst.CSTNode:
    """The ``a`` of ``ctx.a`` and ``ctx.a(...)``; the whole node for ``getattr(ctx, "a")``."""
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        return node.func.attr
    return node.attr if isinstance(node, cst.Attribute) else node


_ORDER = {name: at for at, name in enumerate(("forward", "setup_context", "backward", "vjp", "jvp", "vmap"))}
