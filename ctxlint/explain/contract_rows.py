"""The rows of a contract: inputs, outputs, what backward returns, what is saved, what is kept on ctx.

Whatever the code leaves open is ``unknown`` or None here, never a guess. Positions count from 0, as
``needs_input_grad`` and ``saved_tensors`` do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctxlint.source.source import Span


@dataclass(frozen=True)
class PlaceRow:
    """A stretch of a file. The path is that of the file at hand, or of another one that holds a base class.

    In a notebook ``span`` counts in the module that its cells are together; ``in_cell`` counts in its cell, number
    ``cell``. Elsewhere ``in_cell`` is ``span``.
    """

    path: str
    span: Span
    in_cell: Span
    cell: int | None = None

    @property
    def line(self) -> int:
        """The line it starts on, in its cell where it is in one."""
        return self.in_cell.start.line

    @property
    def where(self) -> str:
        """``line 12``; ``cell 3, line 12`` in a notebook."""
        return f"line {self.line}" if self.cell is None else f"cell {self.cell}, line {self.line}"


@dataclass(frozen=True)
class Reason:
    """Why an input is a tensor or not, in words that complete "it is …" or stand alone.

    ``tensor`` is what it speaks for; None for what only shows that None may be passed, or that the type is asked for.
    ``weight`` is ``proof``,
    ``strong``, ``fair`` or ``hint``; hints alone decide nothing.
    """

    text: str
    tensor: bool | None
    weight: str
    place: PlaceRow | None


@dataclass(frozen=True)
class StepRow:
    """A statement that computes or changes something, as one line of code."""

    text: str
    place: PlaceRow | None


@dataclass(frozen=True)
class GuardRow:
    """A test of ``ctx.needs_input_grad`` that must hold for a gradient to be computed.

    ``input`` is the position of the input whose flag it asks; None where it asks the flags something else.
    """

    text: str
    input: int | None
    place: PlaceRow | None


@dataclass(frozen=True)
class SlotRow:
    """One element of what backward returns.

    ``text`` is its code, None where that is not known. ``none`` says whether it is None: ``yes``, ``no``, ``sometimes``
    (there is a way through the code, whether it can be taken or not) or ``unknown``. ``starred`` ones stand for any
    number of elements, so that the positions behind them are unknown. ``input`` is the position of the input whose
    gradient it is, and ``input_name`` its name; both None where that is unknown or there is none. ``place`` is where
    the code stands, ``written_here`` whether that is in the ``return`` itself. ``computed`` are the statements that
    compute it, where it is a name; ``guards`` the flags without which it is not computed.
    """

    position: int | None
    text: str | None
    none: str
    starred: bool
    input: int | None
    input_name: str | None
    place: PlaceRow | None
    written_here: bool
    computed: tuple[StepRow, ...] = ()
    guards: tuple[GuardRow, ...] = ()


@dataclass(frozen=True)
class ReturnRow:
    """One ``return`` of backward; ``slots`` is None where the number of elements is unknown."""

    text: str
    place: PlaceRow | None
    guards: tuple[GuardRow, ...]
    slots: tuple[SlotRow, ...] | None


@dataclass(frozen=True)
class Gradient:
    """What one return of backward gives to one input.

    ``state`` is ``returned``, ``missing`` (the return is too short) or ``unknown``; ``slot`` is there for ``returned``.
    """

    state: str
    of: ReturnRow
    slot: SlotRow | None = None


@dataclass(frozen=True)
class InputRow:
    """One input of forward; ``kind`` is ``tensor``, ``optional-tensor``, ``non-tensor`` or ``unknown``.

    ``variadic`` marks the ``*args`` that take all positions from ``position`` on.
    """

    position: int
    name: str
    kind: str
    evidence: tuple[Reason, ...]
    gradients: tuple[Gradient, ...]
    guards: tuple[GuardRow, ...]
    required: bool
    variadic: bool
    place: PlaceRow | None


@dataclass(frozen=True)
class OutputRow:
    """One output of forward.

    ``expressions`` are its codes, one for each different return; none where unknown. A ``starred`` one stands for any
    number of outputs from ``position`` on. ``differentiable`` is ``yes``,
    ``no`` or ``unknown``, ``because`` says why not. ``parameter`` is backward's parameter that receives its gradient.
    """

    position: int
    expressions: tuple[StepRow, ...]
    starred: bool
    differentiable: str
    because: str | None
    parameter: str | None
    parameter_place: PlaceRow | None


@dataclass(frozen=True)
class ReadRow:
    """A place where a saved tensor is taken; ``name`` is what it is bound to there, None where to nothing.

    ``whole`` says that several are taken at once there, ``uses`` are the places that use it by that name.
    """

    name: str | None
    method: str
    whole: bool
    place: PlaceRow | None
    uses: tuple[PlaceRow, ...] = ()


@dataclass(frozen=True)
class SaveRow:
    """One saved tensor. ``index`` is its position in ``saved_tensors``, None where a star stands before it.

    ``reads`` is None where it is unknown which reads take it.
    """

    call: str
    index: int | None
    expression: str
    starred: bool
    place: PlaceRow | None
    reads: tuple[ReadRow, ...] | None


@dataclass(frozen=True)
class AttributeUse:
    """A place where an attribute of ctx is set or read; ``text`` is the code of what it is set to, where known."""

    method: str
    place: PlaceRow | None
    text: str | None = None


@dataclass(frozen=True)
class AttributeRow:
    """An attribute of ctx."""

    name: str
    set: tuple[AttributeUse, ...]
    read: tuple[AttributeUse, ...]


@dataclass(frozen=True)
class MethodRow:
    """A method that autograd calls: its parameters as written, and where its name stands."""

    name: str
    parameters: str
    place: PlaceRow | None
    inherited: bool


@dataclass(frozen=True)
class Contract:
    """All that is known of one Function.

    ``place`` is its name, ``body`` all of its code. ``notes`` say, in sentences, why something is unknown.
    """

    name: str
    qualname: str
    style: str
    place: PlaceRow
    body: Span
    methods: tuple[MethodRow, ...]
    inputs: tuple[InputRow, ...]
    outputs: tuple[OutputRow, ...]
    outputs_known: bool
    """Whether the number of outputs is known and the same for every return."""
    returns: tuple[ReturnRow, ...]
    positions_known: bool
    """Whether what backward returns goes to forward's inputs one for one, with nothing in between."""
    saves: tuple[SaveRow, ...]
    attributes: tuple[AttributeRow, ...]
    notes: tuple[str, ...]

    def method(self, name: str) -> MethodRow | None:
        """One of the methods."""
        return next((each for each in self.methods if each.name == name), None)
