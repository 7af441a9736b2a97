"""What a method returns, as autograd interprets it: how many outputs or gradients, and which."""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from ctxlint.model.function import Method, MethodFacts, Returned
from ctxlint.model.interpreter.events import ContextCall
from ctxlint.model.interpreter.values import (
    NONE,
    UNKNOWN,
    Item,
    Mapping,
    Sequence,
    Slot,
    TensorTuple,
    Tri,
    Value,
    Variadic,
    is_container,
    join_all,
)
from ctxlint.model.syntax import names_in


def returned_by(method: Method) -> list[Returned]:
    """What autograd gets from each return of a method: one entry for each alternative.

    What the method saves is a tensor, or None: one output.
    """
    found: list[Returned] = []
    if not method.facts.modelled:
        return found
    saves = [each for each in method.facts.of(ContextCall) if each.method == "save_for_backward"]
    saved = [slot.value for each in saves for slot in each.arguments if not slot.starred and slot.value != UNKNOWN]
    for event in method.returns:
        written = event.node.value if isinstance(event.node, cst.Return) else None
        for value in event.value.options():
            slots, known = _slots(value, written if value is event.value else None)
            if not known and value in saved:
                slots, known = (Slot(value, written if value is event.value else None),), True
            exact = known and not any(slot.starred for slot in slots)
            found.append(Returned(event.node, event, value, slots, known, exact))
    return found


def _slots(value: Value, written: cst.BaseExpression | None) -> tuple[tuple[Slot, ...], bool]:
    """The elements that autograd sees, and whether their number is known."""
    if isinstance(value, Sequence) and value.kind == "tuple":
        return value.slots, True
    if isinstance(value, (Variadic, TensorTuple)):
        return (Slot(value, written, starred=True),), True
    if isinstance(value, (Sequence, Mapping)) or is_container(value) is Tri.NO:
        return (Slot(value, written),), True
    return (), False


def with_every_gradient(gradients: tuple[Returned, ...], forward: Method | None) -> tuple[Returned, ...]:
    """What backward returns, with each of the gradients in a tuple like ``(*grads, None)`` by itself.

    There are as many as outputs, if all returns of forward have the same number.
    """
    starred = forward is not None and forward.signature_known and any(map(_has_all_gradients, gradients))
    counts = {each.count for each in returned_by(forward)} if starred and forward is not None else set()
    count = counts.pop() if len(counts) == 1 else None
    return gradients if count is None else tuple(_spread(each, count) for each in gradients)


def _has_all_gradients(returned: Returned) -> bool:
    whole = isinstance(returned.value, Sequence) and returned.value.slots
    return any(slot.starred and _all_gradients(slot.value) is not None for slot in whole or ())


def _all_gradients(value: Value) -> Variadic | None:
    """The tuple of a ``*grads`` parameter, if a value is that."""
    return value if isinstance(value, Variadic) and value.role == "gradient" else None


def _spread(returned: Returned, count: int) -> Returned:
    if not _has_all_gradients(returned):
        return returned
    slots: list[Slot] = []
    for slot in returned.slots:
        grads = _all_gradients(slot.value) if slot.starred else None
        if grads is None:
            slots.append(slot)
        else:
            slots += [Slot(Item(grads, at), slot.node) for at in range(count - grads.start)]
    return replace(returned, slots=tuple(slots), exact=not any(slot.starred for slot in slots))


def joined(facts: MethodFacts) -> Value:
    """The join of all returns of a walk."""
    if not facts.complete:
        return UNKNOWN
    values = [event.value for event in facts.returns]
    if facts.falls_through is not Tri.NO:
        values.append(NONE)
    return join_all(values)


def names_behind_returns(method: Method) -> set[str]:
    """The names that what a method returns is computed from, by assignments."""
    found: set[str] = set()
    todo = {name for each in method.nodes_of(cst.Return) if each.value is not None for name in names_in(each.value)}
    while todo:
        name = todo.pop()
        found.add(name)
        bound = (each.value_node for each in method.assignments.get(name, ()))
        todo |= {word for node in bound if node is not None for word in names_in(node)} - found
    return found
