"""The rows of a contract: inputs, outputs, what backward returns, what is saved, what is stored on ctx.

What is uncertain is ``unknown`` or None, never a guess. Positions count from 0, as in ``needs_input_grad`` and
``saved_tensors``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.records import record

if TYPE_CHECKING:
    from ctxlint.source.source import Span


@record
class PlaceRow:
    """A range of a file. The path is that of the current file, or of another one that contains a base class.

    In a notebook, ``span`` counts in the module that its cells form; ``in_cell`` counts in its cell, number ``cell``.
    Otherwise ``in_cell`` is ``span``.
    """

    path: str
    span: Span
    in_cell: Span
    cell: int | None = None

    @property
    def line(self) -> int:
        """The line it starts on, within its cell if there is one."""
        return self.in_cell.start.line

    @property
    def where(self) -> str:
        """``line 12``; ``cell 3, line 12`` in a notebook."""
        return f"line {self.line}" if self.cell is None else f"cell {self.cell}, line {self.line}"


@record
class Reason:
    """Why an input is a tensor or not, in words that complete "it is …" or can be used alone.

    ``tensor`` is the conclusion; None for evidence which only shows that None may be passed, or that the type is
    tested. ``weight`` is ``proof``, ``strong``, ``fair`` or ``hint``; hints alone decide nothing.
    """

    text: str
    tensor: bool | None
    weight: str
    place: PlaceRow | None


@record
class StepRow:
    """A statement that computes or modifies something, as one line of code."""

    text: str
    place: PlaceRow | None


@record
class GuardRow:
    """A test of ``ctx.needs_input_grad`` that must hold for a gradient to be computed.

    ``input`` is the position of the input whose flag it tests; None if it tests the flags in another way.
    """

    text: str
    input: int | None
    place: PlaceRow | None


@record
class SlotRow:
    """One element of what backward returns.

    ``text`` is its code, None if unknown. ``none`` tells whether it is None: ``yes``, ``no``, ``sometimes`` (on some
    path through the code, feasible or not) or ``unknown``. ``starred`` ones stand for any number of elements, so that
    the positions after them are unknown. ``input`` is the position of the input whose gradient it is, and
    ``input_name`` its name; both None if unknown. ``place`` is the location of the code, ``written_here`` whether that
    is in the ``return`` itself. ``computed`` are the statements that compute it, if it is a name; ``guards`` the flags
    without which it is not computed.
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


@record
class ReturnRow:
    """One ``return`` of backward; ``slots`` is None where the number of elements is unknown."""

    text: str
    place: PlaceRow | None
    guards: tuple[GuardRow, ...]
    slots: tuple[SlotRow, ...] | None


@record
class Gradient:
    """What one return of backward has for one input.

    ``state`` is ``returned``, ``missing`` (the return is too short) or ``unknown``; ``slot`` is set for ``returned``.
    """

    state: str
    of: ReturnRow
    slot: SlotRow | None = None


@record
class InputRow:
    """One input of forward; ``kind`` is ``tensor``, ``optional-tensor``, ``non-tensor`` or ``unknown``.

    ``variadic`` marks ``*args``, which takes all positions from ``position`` on.
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


@record
class OutputRow:
    """One output of forward.

    ``expressions`` are its code, one for each different return; empty if unknown. A ``starred`` one stands for any
    number of outputs from ``position`` on. ``differentiable`` is ``yes``, ``no`` or ``unknown``, ``because`` explains a
    no. ``parameter`` is backward's parameter that receives its gradient.
    """

    position: int
    expressions: tuple[StepRow, ...]
    starred: bool
    differentiable: str
    because: str | None
    parameter: str | None
    parameter_place: PlaceRow | None


@record
class ReadRow:
    """A place that reads a saved tensor; ``name`` is the name bound to it there, if any.

    ``whole``: several are read at once; ``uses`` are the places that use it by that name.
    """

    name: str | None
    method: str
    whole: bool
    place: PlaceRow | None
    uses: tuple[PlaceRow, ...] = ()


@record
class SaveRow:
    """One saved tensor. ``index`` is its position in ``saved_tensors``, None after a star.

    ``reads`` is None if it is unknown which reads refer to it.
    """

    call: str
    index: int | None
    expression: str
    starred: bool
    place: PlaceRow | None
    reads: tuple[ReadRow, ...] | None


@record
class AttributeUse:
    """A place that sets or reads an attribute of ctx; ``text`` is the code of the assigned value, if known."""

    method: str
    place: PlaceRow | None
    text: str | None = None


@record
class AttributeRow:
    """An attribute of ctx."""

    name: str
    set: tuple[AttributeUse, ...]
    read: tuple[AttributeUse, ...]


@record
class MethodRow:
    """A method that autograd calls: its parameters, and the location of its name."""

    name: str
    parameters: str
    place: PlaceRow | None
    inherited: bool


@record
class Contract:
    """Everything that is known of one Function.

    ``place`` is its name, ``body`` all of its code. ``notes`` explain, in sentences, why something is unknown.
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
    """Whether what backward returns corresponds to forward's inputs one to one."""
    saves: tuple[SaveRow, ...]
    attributes: tuple[AttributeRow, ...]
    notes: tuple[str, ...]

    def method(self, name: str) -> MethodRow | None:
        """One of the methods."""
        return next((each for each in self.methods if each.name == name), None)
