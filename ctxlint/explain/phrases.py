"""Phrases that the terminal and the editor share to describe a contract."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ctxlint.report.visible import visible

if TYPE_CHECKING:
    from ctxlint.explain.contract_rows import Contract, Gradient, InputRow, OutputRow, PlaceRow, SaveRow, SlotRow


def at(contract: Contract, place: PlaceRow | None) -> str:
    """``line 12``, or ``base.py:12`` in another file; empty where the place is unknown."""
    if place is None:
        return ""
    if place.path == contract.place.path:
        return place.where
    name = os.path.basename(place.path)
    return f"{name}:{place.line}" if place.cell is None else f"{name}, {place.where}"


def whole_place(contract: Contract) -> str:
    """Where a contract is: ``ops.py:12``, or ``ops.ipynb:cell 3:12``, without control characters."""
    cell = "" if contract.place.cell is None else f"cell {contract.place.cell}:"
    return visible(f"{contract.place.path}:{cell}{contract.place.line}")


def with_place(text: str, contract: Contract, place: PlaceRow | None) -> str:
    """``text (line 12)``; the text alone if it mentions the line itself, or the place is unknown."""
    where = at(contract, place)
    return f"{text} ({where})" if where and where not in text else text


def label_of(row: InputRow) -> str:
    """The name of an input, with its star."""
    return f"*{row.name}" if row.variadic else row.name


def gradient_text(gradient: Gradient) -> str:
    """The gradient in one return: its code, ``None``, ``missing`` or ``unknown``."""
    return slot_text(gradient.slot) if gradient.slot is not None else gradient.state


def unknown_source(gradient: Gradient) -> str | None:
    """The code that an unknown gradient comes from: the whole returned expression; None if the gradient is known."""
    known = gradient.state == "missing" or (gradient.slot is not None and gradient.slot.text is not None)
    return None if known or not gradient.of.text else gradient.of.text


def place_of_gradient(gradient: Gradient) -> PlaceRow | None:
    """The location of a gradient, or of its return."""
    return gradient.slot.place or gradient.of.place if gradient.slot is not None else gradient.of.place


def slot_text(slot: SlotRow) -> str:
    """The code of a slot, ``unknown`` if there is none to show."""
    text = slot.text if slot.text is not None else "unknown"
    return f"{text} or None" if slot.none == "sometimes" and "None" not in text else text


def output_text(output: OutputRow) -> str:
    """The code of an output."""
    text = " or ".join(each.text for each in output.expressions) or "unknown"
    return f"any number: {text}" if output.starred else text


def differentiability(output: OutputRow) -> str:
    """Whether an output gets a gradient."""
    if output.because is not None:
        return f"not differentiable: {output.because}"
    return {"yes": "differentiable", "no": "not differentiable"}.get(output.differentiable, "")


def save_index(save: SaveRow) -> str:
    """The position of a saved tensor; ``?`` if unknown."""
    return "?" if save.index is None else str(save.index)
