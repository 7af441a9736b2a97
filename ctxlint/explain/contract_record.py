"""A contract as plain data for programs; ``docs/explain.schema.json`` describes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ctxlint.report.paths import absolute

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ctxlint.explain.contract_rows import (
        AttributeUse,
        Contract,
        Gradient,
        GuardRow,
        InputRow,
        OutputRow,
        PlaceRow,
        ReadRow,
        ReturnRow,
        SaveRow,
        SlotRow,
        StepRow,
    )

VERSION = 1
"""Incremented when a key is removed or changes its meaning; new keys may be added at any time."""


def document(contracts: Iterable[Contract]) -> dict[str, Any]:
    """The whole document."""
    return {"version": VERSION, "functions": [record(each) for each in contracts]}


def record(contract: Contract) -> dict[str, Any]:
    """One Function."""
    return {
        "class": contract.qualname,
        "file": absolute(contract.place.path),
        "cell": contract.place.cell,
        "line": contract.place.line,
        "style": contract.style,
        "methods": [
            {
                "name": each.name,
                "parameters": each.parameters,
                "inherited": each.inherited,
                "location": _location(each.place),
            }
            for each in contract.methods
        ],
        "inputs": [_input(contract, each) for each in contract.inputs],
        "outputs": [_output(each) for each in contract.outputs],
        "outputs_known": contract.outputs_known,
        "positions_known": contract.positions_known,
        "returns": [_return(each) for each in contract.returns],
        "saves": [_save(each) for each in contract.saves],
        "attributes": [
            {"name": each.name, "set": [_use(use) for use in each.set], "read": [_use(use) for use in each.read]}
            for each in contract.attributes
        ],
        "notes": list(contract.notes),
    }


def _location(place: PlaceRow | None) -> dict[str, Any] | None:
    if place is None:
        return None
    start, end = place.in_cell
    return {
        "file": absolute(place.path),
        "cell": place.cell,
        "line": start.line,
        "column": start.column,
        "end_line": end.line,
        "end_column": end.column,
    }


def _input(contract: Contract, row: InputRow) -> dict[str, Any]:
    return {
        "position": row.position,
        "name": row.name,
        "kind": row.kind,
        "required": row.required,
        "variadic": row.variadic,
        "evidence": [
            {"text": each.text, "tensor": each.tensor, "weight": each.weight, "location": _location(each.place)}
            for each in row.evidence
        ],
        "gradients": [_gradient(contract, each) for each in row.gradients],
        "guards": [_guard(each) for each in row.guards],
        "location": _location(row.place),
    }


def _gradient(contract: Contract, gradient: Gradient) -> dict[str, Any]:
    return {
        "return": contract.returns.index(gradient.of),
        "state": gradient.state,
        "expression": gradient.slot.text if gradient.slot is not None else None,
    }


def _guard(guard: GuardRow) -> dict[str, Any]:
    return {"test": guard.text, "input": guard.input, "location": _location(guard.place)}


def _step(step: StepRow) -> dict[str, Any]:
    return {"code": step.text, "location": _location(step.place)}


def _output(output: OutputRow) -> dict[str, Any]:
    return {
        "position": output.position,
        "expressions": [_step(each) for each in output.expressions],
        "starred": output.starred,
        "differentiable": output.differentiable,
        "reason": output.because,
        "backward_parameter": output.parameter,
        "location": _location(output.parameter_place),
    }


def _return(row: ReturnRow) -> dict[str, Any]:
    return {
        "expression": row.text,
        "guards": [_guard(each) for each in row.guards],
        "slots": [_slot(each) for each in row.slots] if row.slots is not None else None,
        "location": _location(row.place),
    }


def _slot(slot: SlotRow) -> dict[str, Any]:
    return {
        "position": slot.position,
        "expression": slot.text,
        "none": slot.none,
        "starred": slot.starred,
        "input": slot.input,
        "input_name": slot.input_name,
        "computed": [_step(each) for each in slot.computed],
        "guards": [_guard(each) for each in slot.guards],
        "location": _location(slot.place),
    }


def _save(save: SaveRow) -> dict[str, Any]:
    return {
        "method": save.call,
        "index": save.index,
        "expression": save.expression,
        "starred": save.starred,
        "reads": [_read(each) for each in save.reads] if save.reads is not None else None,
        "location": _location(save.place),
    }


def _read(read: ReadRow) -> dict[str, Any]:
    return {"name": read.name, "method": read.method, "whole": read.whole, "location": _location(read.place)}


def _use(use: AttributeUse) -> dict[str, Any]:
    return {"method": use.method, "expression": use.text, "location": _location(use.place)}
