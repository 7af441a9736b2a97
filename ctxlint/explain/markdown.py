"""A contract, or a part of it, as Markdown for editors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.explain.phrases import (
    at,
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
from ctxlint.patterns import pattern
from ctxlint.report.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ctxlint.explain.contract_rows import (
        AttributeRow,
        Contract,
        Gradient,
        GuardRow,
        InputRow,
        OutputRow,
        ReadRow,
        ReturnRow,
        SaveRow,
        SlotRow,
    )

_UNNAMED = ("unknown", "missing")
"""Words that are not code."""


def section(contract: Contract) -> str:
    """The contract as a part of a document: a heading with its place, then all of it."""
    return f"### {code(contract.qualname)} ({code(whole_place(contract))})\n\n{_tables(contract)}"


def of_class(contract: Contract) -> str:
    """The whole contract of a class, under its name."""
    return "\n\n".join(filter(None, (f"**{contract.name}**: contract with autograd", _tables(contract))))


def _tables(contract: Contract) -> str:
    blocks: list[str] = []
    if contract.inputs:
        returns = _different_returns(contract)
        rows = [
            (
                *(str(each.position), code(label_of(each)), each.kind),
                *(_gradients(each, of) for of in returns.values()),
                _tests(each.guards),
            )
            for each in contract.inputs
        ]
        heads = ("gradient",) if len(returns) == 1 else tuple(f"gradient, {where}" for where in returns)
        blocks.append(_table(("", "input", "kind", *heads, "only if"), rows))
    if contract.outputs:
        outputs = [
            (str(each.position), _code_or_word(output_text(each)), _receiver(each), differentiability(each))
            for each in contract.outputs
        ]
        blocks.append(_table(("", "output", "its gradient is passed as", ""), outputs))
    if contract.saves:
        saves = [(save_index(each), code(each.expression), _reads(contract, each)) for each in contract.saves]
        blocks.append(_table(("", "saved", "read back as"), saves))
    if contract.attributes:
        blocks.append("\n".join(f"- {_attribute_line(contract, each)}" for each in contract.attributes))
    blocks.extend(f"*{note}*" for note in contract.notes)
    return "\n\n".join(blocks)


def of_input(contract: Contract, row: InputRow) -> str:
    """An input of forward: its kind, and why; its gradient."""
    lines = [f"**input {row.position}** of {code(contract.name)}: {code(label_of(row))}, {row.kind}"]
    lines += [f"- {with_place(each.text, contract, each.place)}" for each in row.evidence]
    if row.gradients:
        lines.append("")
    for gradient in dict.fromkeys(row.gradients):
        lines.append(f"gradient: {with_place(_gradient(gradient), contract, place_of_gradient(gradient))}")
        lines.append("")
        if gradient.slot is not None:
            lines += _steps(contract, gradient.slot)
    if row.guards:
        lines.append(f"computed only if {_tests(row.guards)}")
    return "\n".join(lines).rstrip()


def of_slots(contract: Contract, slots: list[SlotRow]) -> str:
    """What backward returns at one position: for which inputs, and how it is computed."""
    named = [each for each in slots if each.input_name is not None]
    kinds = {each.position: each.kind for each in contract.inputs if not each.variadic}
    whom = " and ".join(
        f"**input {each.input}**, {code(each.input_name or '')}"
        + (f" ({kinds[each.input]})" if each.input in kinds else "")
        for each in named
    )
    first = slots[0]
    lines = [f"gradient for {whom}" if whom else "gradient for an unknown input"]
    lines += ["", _code_or_word(slot_text(first))]
    lines += ["", *_steps(contract, first)]
    if first.guards:
        lines += ["", f"computed only if {_tests(first.guards)}"]
    return "\n".join(lines).rstrip()


def of_output(contract: Contract, output: OutputRow) -> str:
    """A parameter of backward: the output whose gradient it receives."""
    shown = " or ".join(with_place(code(each.text), contract, each.place) for each in output.expressions)
    lines = [f"gradient of **output {output.position}** of {code(contract.name)}" + (f": {shown}" if shown else "")]
    said = differentiability(output)
    if said:
        lines += ["", said]
    return "\n".join(lines)


def of_save(contract: Contract, saves: list[SaveRow]) -> str:
    """A saved tensor: where it is saved, and where it is read."""
    lines = []
    for save in saves:
        place = with_place(code(save.expression), contract, save.place)
        lines.append(f"**saved tensor {save_index(save)}**: {place}, by {code(save.call)}")
        lines.append(f"read back: {_reads(contract, save)}")
    return "\n\n".join(dict.fromkeys(lines))


def of_attribute(contract: Contract, attribute: AttributeRow) -> str:
    """An attribute of ctx: where it is set and read."""
    return _attribute_line(contract, attribute)


# Pieces


def code(text: str) -> str:
    """``text`` as code, whatever backticks and control characters it holds."""
    text = visible(text)
    if "`" not in text:
        return f"`{text}`"
    fence = "`" * (max(map(len, _BACKTICKS.findall(text))) + 1)
    return f"{fence} {text} {fence}"


_BACKTICKS = pattern("`+")


def _code_or_word(text: str) -> str:
    return text if text in _UNNAMED else code(text)


def _different_returns(contract: Contract) -> dict[str, tuple[ReturnRow, ...]]:
    """The returns of backward by their first line; merged if they return the same."""
    said = {tuple(_gradients(each, (of,)) for each in contract.inputs) for of in contract.returns}
    if len(said) <= 1:
        return {"": contract.returns}
    found: dict[str, tuple[ReturnRow, ...]] = {}
    for each in contract.returns:
        where = at(contract, each.place) or "elsewhere"
        found[where] = (*found.get(where, ()), each)
    return found


def _gradients(row: InputRow, returns: tuple[ReturnRow, ...]) -> str:
    """What these returns have for an input, without duplicates."""
    gradients = (each for each in row.gradients if each.of in returns)
    return " or ".join(dict.fromkeys(map(_gradient, gradients))) or "unknown"


def _gradient(gradient: Gradient) -> str:
    source = unknown_source(gradient)
    return _code_or_word(gradient_text(gradient)) if source is None else f"unknown, from {code(source)}"


def _tests(guards: Iterable[GuardRow]) -> str:
    return " and ".join(dict.fromkeys(code(each.text) for each in guards))


def _steps(contract: Contract, slot: SlotRow) -> Iterator[str]:
    for step in slot.computed:
        yield f"- {with_place(code(step.text), contract, step.place)}"


def _receiver(output: OutputRow) -> str:
    return code(output.parameter) if output.parameter is not None else "unknown"


def _reads(contract: Contract, save: SaveRow) -> str:
    if save.reads is None:
        return "unknown"
    shown = [with_place(_name_of_read(each), contract, each.place) for each in save.reads]
    return ", ".join(shown) or "nowhere"


def _name_of_read(read: ReadRow) -> str:
    if read.name is not None:
        return code(f"*{read.name}" if read.whole else read.name)
    return "all at once" if read.whole else "in an expression"


def _attribute_line(contract: Contract, attribute: AttributeRow) -> str:
    codes = [(code(each.text) if each.text is not None else "a value", each.place) for each in attribute.set]
    written = ", ".join(with_place(text, contract, place) for text, place in codes)
    read = ", ".join(dict.fromkeys(with_place(each.method, contract, each.place) for each in attribute.read))
    name = code(f"ctx.{attribute.name}")
    return f"{name}: set to {written or 'an unknown value'}; read in {read or 'no known method'}"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    used = [at for at in range(len(head)) if any(row[at] for row in rows)]
    lines = [[head[at] for at in used], ["---"] * len(used)]
    lines += [[row[at].replace("|", "\\|") for at in used] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
