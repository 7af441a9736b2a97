"""Inputs that forward returns as they are, and saves: torch refuses to save them in ``setup_context``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.interpreter.values import Alias, Parameter, View, is_input

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.values import Value


def saved_and_returned(fn: FunctionClass) -> list[Parameter]:
    """The inputs that are saved and that may be returned as they are, the very objects; none if any is marked dirty."""
    if fn.context_calls("mark_dirty"):
        return []
    returned = {parameter for value in fn.outputs_values() for parameter in _inputs_as_they_are(value)}
    saved = (argument.value for save in fn.saves for argument in save.arguments) if returned else ()
    return [parameter for value in saved for parameter in _inputs_as_they_are(value) if parameter in returned]


def is_always_returned(fn: FunctionClass, entry: Parameter) -> bool:
    """Whether every return of forward may contain an input as it is: not only one before a loop has changed it."""
    return all(any(entry in _inputs_as_they_are(slot.value) for slot in returned.slots) for returned in fn.outputs)


def _inputs_as_they_are(value: Value) -> Iterator[Parameter]:
    """The inputs that a value may be: ``x``, ``x.contiguous()``."""
    for option in value.options():
        origin = option
        while isinstance(origin, View) and origin.alias is not Alias.ALWAYS:
            origin = origin.of
        if is_input(origin):
            yield origin
