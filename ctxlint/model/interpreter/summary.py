"""What is known of a function of the project when it is called somewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Mapping

    import libcst as cst

    from ctxlint.model.index.project import Definition
    from ctxlint.model.interpreter.values import Slot, Value
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


class Resolver(Protocol):
    """Resolves the names of a file to functions of the project, and knows what these do."""

    def callee(
        self, name: str, arguments: tuple[Slot, ...], keywords: Mapping[str, Slot], call: cst.Call
    ) -> tuple[Definition, Summary] | None:
        """A function and its summary for this call, in values of the caller; None where it is unknown."""

    def kernel(
        self, name: str, arguments: tuple[Slot, ...], keywords: Mapping[str, Slot]
    ) -> tuple[Definition, tuple[Write, ...]] | None:
        """A kernel and what it writes when it is launched with these arguments; None for anything else."""

    def only_reads(self, name: str, given: int | str) -> bool:
        """Whether a function certainly only reads attributes of what it is ``given`` there, by position or name."""
