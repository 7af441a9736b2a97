"""A contract for the terminal: plain text in columns, between 80 and 120 characters wide."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from ctxlint.explain.phrases import (
    differentiability,
    gradient_text,
    label_of,
    output_text,
    place_of_gradient,
    save_index,
    slot_text,
    unknown_source,
    whole_place,
    with_place,
)
from ctxlint.report.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.explain.contract_rows import (
        AttributeRow,
        Contract,
        InputRow,
        OutputRow,
        ReadRow,
        ReturnRow,
        SaveRow,
        SlotRow,
    )
    from ctxlint.report.style import TextStyle

_LONGEST_NAME = 28
_LONGEST_CODE = 160

Row = tuple[list[str], list[tuple[str, str]]]
"""The cells of the first columns, and the lines of the last one with their labels."""


def render(contract: Contract, width: int, style: TextStyle) -> str:
    """The whole contract, ending with a newline."""
    lines = [f"{style.bold(contract.qualname)}  {style.frame(whole_place(contract))}"]
    for method in contract.methods:
        signature = f"{'inherited ' if method.inherited else ''}{method.name}({method.parameters.rstrip(', ')})"
        lines += _wrapped("  ", with_place(signature, contract, method.place), width)
    sections = (
        ("inputs", [_input(contract, each) for each in contract.inputs]),
        (
            "outputs" if contract.outputs_known else "outputs (number unknown)",
            [_output(contract, each) for each in contract.outputs],
        ),
        ("backward returns", [_return(contract, each) for each in contract.returns]),
        ("saved", [_save(contract, each) for each in contract.saves]),
        ("stored on ctx", [_attribute(contract, each) for each in contract.attributes]),
    )
    for title, rows in sections:
        if rows:
            lines += ["", f"  {style.bold(title)}", *_columns(rows, width)]
    if contract.notes:
        lines += ["", f"  {style.bold('unknown')}"]
        for note in contract.notes:
            lines += _wrapped("    ", note, width)
    return "\n".join(lines) + "\n"


# Rows: a position, a name, a kind, and then labelled lines


def _input(contract: Contract, row: InputRow) -> Row:
    details: list[tuple[str, str]] = []
    for gradient in row.gradients:
        text, source = gradient_text(gradient), unknown_source(gradient)
        if source is not None:
            text = f"unknown, from {source}"
        text = with_place(_cut(text), contract, place_of_gradient(gradient))
        details.append(("gradient", text))
        steps = gradient.slot.computed if gradient.slot is not None else ()
        details += [("", with_place(_cut(each.text), contract, each.place)) for each in steps]
    if not row.gradients:
        details.append(("gradient", "unknown"))
    if row.guards:
        details.append(("only if", " and ".join(dict.fromkeys(each.text for each in row.guards))))
    reasons = [with_place(each.text, contract, each.place) for each in row.evidence]
    if reasons:
        details.append(("evidence", ", ".join(reasons)))
    return [str(row.position), label_of(row), row.kind], list(dict.fromkeys(details))


def _output(contract: Contract, output: OutputRow) -> Row:
    details: list[tuple[str, str]] = []
    text = _cut(output_text(output))
    short = len(text) <= _LONGEST_NAME
    if not short:
        details.append(("is", text))
    receiver = output.parameter or "unknown"
    details.append(("gradient as", with_place(receiver, contract, output.parameter_place)))
    if differentiability(output):
        details.append(("", differentiability(output)))
    return [str(output.position), text if short else ""], details


def _return(contract: Contract, row: ReturnRow) -> Row:
    line = with_place("", contract, row.place).strip().strip("()") or "return"
    guards = [("only if", " and ".join(each.text for each in row.guards))] if row.guards else []
    if row.slots is None:
        return [line], [("unknown", _cut(row.text)), *guards]
    return [line], [*((_input_name(contract, each), _cut(slot_text(each))) for each in row.slots), *guards]


def _input_name(contract: Contract, slot: SlotRow) -> str:
    """The name of the input that gets a gradient."""
    if slot.input_name is not None:
        return slot.input_name
    certain = not slot.starred and slot.position is not None and contract.positions_known
    return "not an input" if certain else "unknown"


def _save(contract: Contract, save: SaveRow) -> Row:
    text = _cut(save.expression)
    short = len(text) <= _LONGEST_NAME
    details = [] if short else [("is", text)]
    details.append(("by", with_place(save.call, contract, save.place)))
    if save.reads is None:
        details.append(("read as", "unknown"))
    else:
        names = [with_place(_read_name(each), contract, each.place) for each in save.reads]
        details.append(("read as", ", ".join(names) or "nothing"))
    return [save_index(save), text if short else ""], details


def _read_name(read: ReadRow) -> str:
    if read.name is not None:
        return f"*{read.name}" if read.whole else read.name
    return "one of all" if read.whole else "part of an expression"


def _attribute(contract: Contract, attribute: AttributeRow) -> Row:
    details = [("set to", with_place(_cut(each.text or "a value"), contract, each.place)) for each in attribute.set]
    read = ", ".join(dict.fromkeys(with_place(each.method, contract, each.place) for each in attribute.read))
    details.append(("read in", read or "no method"))
    return [f"ctx.{attribute.name}"], details


# Layout


def _columns(rows: list[Row], width: int) -> Iterator[str]:
    """Rows in columns; the last one is wrapped."""
    count = max(len(cells) for cells, _ in rows)
    widths = [max(len(cells[at]) for cells, _ in rows if at < len(cells)) for at in range(count)]
    widths = [min(each, _LONGEST_NAME) for each in widths]
    labels = max((len(label) for _, details in rows for label, _ in details), default=0)
    labels = min(labels, _LONGEST_NAME)
    for cells, details in rows:
        head = "    " + "  ".join(cell.ljust(size) for cell, size in zip(cells, widths))
        blank = " " * (4 + sum(widths) + 2 * (count - 1))
        if len(head) > len(blank):  # a long name gets a line of its own
            yield head.rstrip()
            head = blank
        for label, text in details:
            yield from _wrapped(f"{head}  {label.ljust(labels)}  ", text, width)
            head = blank


def _wrapped(opening: str, text: str, width: int) -> list[str]:
    """``text`` after ``opening``, wrapped, with the further lines aligned to its beginning."""
    indent = " " * len(opening) if opening.strip() else opening + "  "
    return textwrap.wrap(
        visible(text),
        width,
        initial_indent=opening,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [opening.rstrip()]


def _cut(code: str) -> str:
    return code if len(code) <= _LONGEST_CODE else f"{code[: _LONGEST_CODE - 3]}..."
