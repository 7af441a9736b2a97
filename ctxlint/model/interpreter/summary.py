"""What is known of a function of the project when it is called somewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.records import record

if TYPE_CHECKING:
    from ctxlint.model.interpreter.values import Value
    from ctxlint.source.source import Span


KERNEL = "kernel"
"""How a kernel writes."""


@record
class Step:
    """A place on the way from a call to what it does: in the file ``path``, with a note about it."""

    path: str
    span: Span
    note: str


@record
class Write:
    """The function certainly writes into ``target`` by ``how``. ``steps`` lead there, the statement is the last."""

    target: Value
    how: str
    steps: tuple[Step, ...]


@record
class Summary:
    """What a function does for certain arguments. ``returned`` is NEVER where it only raises."""

    returned: Value
    writes: tuple[Write, ...] = ()
