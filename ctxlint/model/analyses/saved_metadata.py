"""Saved tensors whose values backward never reads, although it names them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.analyses.saved_state import single_save, unpackings_of
from ctxlint.model.analyses.saved_state_uses import uses_of_name
from ctxlint.model.analyses.second_order import is_certain_tensor
from ctxlint.model.syntax import root_name
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Slot


@record
class Unvalued:
    """The saved tensor at a position: only ``asked`` for its shape and the like, or for nothing, by a view of it."""

    position: int
    slot: Slot
    asked: tuple[str, ...]


def unvalued_saves(fn: FunctionClass) -> Iterator[Unvalued]:
    """The saved tensors that certainly are tensors, and whose values no method reads."""
    unpackings = unpackings_of(fn)
    if not unpackings or any(unpacking.by for _, unpacking in unpackings):
        return
    for position, slot in enumerate(single_save(fn) or ()):
        names = {(method.name, each.names[position]): method for method, each in unpackings}
        asked = set[str]()
        for (_, name), method in names.items():
            found = _metadata(fn, method, name) if name is not None and is_certain_tensor(fn, slot.value) else None
            if found is None:
                break
            asked |= found
        else:
            if any(name in method.facts.names_read for (_, name), method in names.items()):
                yield Unvalued(position, slot, tuple(sorted(asked)))


def _metadata(fn: FunctionClass, method: Method, name: str) -> set[str] | None:
    """What a method asks of a saved tensor; None if it may read its values, or compare the object."""
    others = [each for each in method.assignments.get(name, ()) if each.value_node is not None]
    if len(method.binders.get(name, ())) != len(others) + 1 or any(
        root_name(each.value_node) != name for each in others
    ):
        return None
    uses = uses_of_name(fn, method, name)
    if not uses.only_metadata or uses.unread or uses.tests or uses.custom or uses.put_away:
        return None
    return uses.metadata if uses.metadata <= _ASKED else None


_ASKED = frozenset(["shape", "dtype", "device"])
"""What can be kept in place of a tensor."""
