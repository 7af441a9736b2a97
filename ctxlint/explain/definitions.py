"""From an attribute of ctx to where it is set, from an unpacked name to the saved tensor, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.explain.contract import contracts_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ctxlint.explain.contract_rows import Contract, PlaceRow
    from ctxlint.model.function import SourceFile


class _Group:
    """Places that belong together: where something is stored, and where it is used."""

    def __init__(self, stores: Iterable[PlaceRow | None], used: Iterable[PlaceRow | None]) -> None:
        self.kept = [each for each in stores if each is not None]
        self.used = [each for each in used if each is not None]

    def holds(self, path: str, line: int, column: int) -> bool:
        return any(points_at(each, path, line, column) for each in (*self.kept, *self.used))


def definition(file: SourceFile, line: int, column: int) -> tuple[PlaceRow, ...]:
    """Where the value at a position was stored: ``ctx.a`` set, a tensor saved. Empty for anything else.

    Line and column are 1-based, the column counts characters. There may be several places, and places in other files.
    """
    return _ordered(place for group in _groups_at(file, line, column) for place in group.kept)


def references(file: SourceFile, line: int, column: int, include_definition: bool = True) -> tuple[PlaceRow, ...]:
    """Every use of the value at a position: reads of ``ctx.a``, a saved tensor where it is unpacked and used.

    ``include_definition`` adds the places that ``definition`` returns.
    """
    groups = list(_groups_at(file, line, column))
    used = [place for group in groups for place in group.used]
    stores = [place for group in groups for place in group.kept] if include_definition else []
    return _ordered((*stores, *used))


def points_at(place: PlaceRow | None, path: str, line: int, column: int) -> bool:
    """Whether a position is on a place, or right after it, which still counts for a cursor."""
    if place is None or place.path != path:
        return False
    return place.span.start <= (line, column) <= place.span.end


def _groups_at(file: SourceFile, line: int, column: int) -> Iterator[_Group]:
    for contract in contracts_at(file, line, line):
        for group in _groups(contract):
            if group.holds(file.source.path, line, column):
                yield group


def _groups(contract: Contract) -> Iterator[_Group]:
    for attribute in contract.attributes:
        yield _Group((each.place for each in attribute.set), (each.place for each in attribute.read))
    for save in contract.saves:
        yield _Group([save.place], (place for each in save.reads or () for place in (each.place, *each.uses)))


def _ordered(places: Iterable[PlaceRow]) -> tuple[PlaceRow, ...]:
    return tuple(sorted(set(places), key=lambda each: (each.path, each.span)))
