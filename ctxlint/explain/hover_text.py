"""Hover texts for editors: the contract of a class, of a parameter, of a returned gradient."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ctxlint.explain import markdown
from ctxlint.explain.contract import contracts_at
from ctxlint.explain.definitions import points_at
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ctxlint.explain.contract_rows import Contract, PlaceRow
    from ctxlint.model.function import SourceFile
    from ctxlint.source.source import Span


@record
class Hover:
    """Markdown to show, and the range of its code."""

    markdown: str
    span: Span


def hover(file: SourceFile, line: int, column: int) -> Hover | None:
    """The hover text for the code at a position; None for code outside of contracts.

    Line and column are 1-based, the column counts characters. Of nested ranges, the smallest counts; of several classes
    that share an inherited method, the one that contains it.
    """
    path = file.source.path
    best: tuple[tuple[int, int, bool], Callable[[], str], Span] | None = None
    for contract in contracts_at(file, line, line):
        for place, text in _subjects(contract):
            if place is None or not points_at(place, path, line, column):
                continue
            inside = contract.body.start <= (line, column) <= contract.body.end
            start, end = place.span
            size = (end.line - start.line, end.column - start.column, not inside)
            if best is None or size < best[0]:
                best = (size, text, place.span)
    return Hover(best[1](), best[2]) if best is not None else None


def _subjects(contract: Contract) -> Iterator[tuple[PlaceRow | None, Callable[[], str]]]:
    """The ranges with a hover text, and their texts."""
    yield contract.place, partial(markdown.of_class, contract)
    for method in contract.methods:
        yield method.place, partial(markdown.of_class, contract)
    for entry in contract.inputs:
        yield entry.place, partial(markdown.of_input, contract, entry)
    for output in contract.outputs:
        yield output.parameter_place, partial(markdown.of_output, contract, output)
    for row in contract.returns:
        for slot in row.slots or ():
            same = [each for each in row.slots or () if each.place == slot.place]
            yield slot.place, partial(markdown.of_slots, contract, same)
    for save in contract.saves:
        yield save.place, partial(markdown.of_save, contract, [save])
        for read in save.reads or ():
            mine = [each for each in contract.saves if read in (each.reads or ())]
            yield read.place, partial(markdown.of_save, contract, mine)
    for attribute in contract.attributes:
        for use in (*attribute.set, *attribute.read):
            yield use.place, partial(markdown.of_attribute, contract, attribute)
