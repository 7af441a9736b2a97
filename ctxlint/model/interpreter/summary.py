"""The summary of a project function, for its callers."""

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
"""The ``how`` of a kernel's writes."""

OPERATOR = "operator"
"""The ``how`` of a custom operator's writes."""


@record
class Step:
    """A step on the way from a call to the actual operation: a position in the file ``path``, with a note about it."""

    path: str
    span: Span
    note: str


@record
class Write:
    """The function certainly writes to ``target`` by ``how``. ``steps`` lead there; the statement is the last."""

    target: Value
    how: str
    steps: tuple[Step, ...]


@record
class Summary:
    """The effect of a function for certain arguments. ``returned`` is NEVER if it always raises."""

    returned: Value
    writes: tuple[Write, ...] = ()


class Resolver(Protocol):
    """Resolves the names of a file to project functions and their summaries."""

    def callee(
        self, name: str, arguments: tuple[Slot, ...], keywords: Mapping[str, Slot], call: cst.Call
    ) -> tuple[Definition, Summary] | None:
        """A function and its summary for this call, in values of the caller; None if unknown."""

    def kernel(
        self, name: str, arguments: tuple[Slot, ...], keywords: Mapping[str, Slot]
    ) -> tuple[Definition, tuple[Write, ...]] | None:
        """A kernel and its writes when launched with these arguments; None for anything else."""

    def operator(
        self, name: str, arguments: tuple[Slot, ...], keywords: Mapping[str, Slot]
    ) -> tuple[str, tuple[Write, ...]] | None:
        """A custom operator of the project and its writes for these arguments; None for anything else."""

    def only_reads(self, name: str, given: int | str) -> bool:
        """Whether a function certainly only reads attributes of its argument ``given``, by position or name."""
