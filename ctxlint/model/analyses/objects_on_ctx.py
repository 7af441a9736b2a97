"""The objects of project classes that forward keeps on ctx, for the methods that read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.interpreter.events import ContextRead, ContextWrite, Escape
from ctxlint.model.interpreter.values import ContextAttribute, ProjectObject, is_input

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Value


def objects_on_ctx(methods: Iterable[Method], declared: Mapping[Value, ProjectObject]) -> dict[Value, ProjectObject]:
    """What each attribute of ctx certainly holds, if it is an object of a project class.

    ``declared`` are objects that the caller passes. Only the class of an object is known: others may have changed it.
    """
    every = tuple(methods)
    if any(each for method in every for each in method.facts.of(Escape)):
        return {}
    writes: dict[str, list[Value | None]] = {}
    for method in every:
        for write in method.facts.of(ContextWrite):
            writes.setdefault(write.attribute, []).append(write.value)
    found: dict[Value, ProjectObject] = {}
    for name, values in writes.items():
        value = values[0] if len(values) == 1 else None
        known = declared.get(value) if value is not None else None
        known = value if isinstance(value, ProjectObject) else known
        if known is not None:
            found[ContextAttribute(name)] = ProjectObject(known.definition, (), ContextAttribute(name))
    return found


def inputs_on_ctx(methods: Iterable[Method]) -> dict[str, Value]:
    """The inputs that attributes of ctx hold, by their names."""
    values = (write.value for method in methods for write in method.facts.of(ContextWrite))
    return {each.name: each for each in values if is_input(each)}


def reads_any(method: Method, objects: Mapping[Value, ProjectObject]) -> bool:
    """Whether a method reads one of these attributes of ctx."""
    return any(ContextAttribute(each.attribute) in objects for each in method.facts.of(ContextRead) if not each.own)
