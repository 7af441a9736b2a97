"""Every Function has a contract, and an editor can request every place in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ctxlint.explain.contract import contracts_at, contracts_of
from ctxlint.explain.contract_record import document
from ctxlint.explain.definitions import definition, references
from ctxlint.explain.hover_text import hover
from ctxlint.explain.inlay_hints import inlay_hints
from ctxlint.explain.terminal_text import render
from ctxlint.report.style import TextStyle
from tests.explain.contracts import hints_of
from tests.fixture_reader import PROGRAMS, RULE_FIXTURES, fenced_blocks, read_marks
from tests.model.models import read
from tests.test_messages import NAMES_OF_THE_MODEL

if TYPE_CHECKING:
    from pathlib import Path

    from ctxlint.explain.contract_rows import Contract, PlaceRow

SOURCES = [*sorted(PROGRAMS.glob("*/*.py")), *sorted(RULE_FIXTURES.glob("*.md"))]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_fixture_can_be_shown(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    blocks = [block.text for block in fenced_blocks(text) if block.language == "py"] if path.suffix == ".md" else [text]
    for block in blocks:
        file = read(read_marks(block).text)
        contracts = contracts_of(file)
        assert len(document(contracts)["functions"]) == len(file.functions)
        for contract in contracts:
            shown = render(contract, 100, TextStyle(on=False))
            assert contract.qualname in shown
            assert not NAMES_OF_THE_MODEL.search(shown)
            starts = {place.span.start for place in _places(contract) if place.path == file.source.path}
            for start in starts:
                assert hover(file, *start) is not None
            for line in {start.line for start in starts}:
                assert contract in contracts_at(file, line, line)
        for hint in hints_of(file):
            assert file.source.text[file.source.offset(hint.position) - 1].strip()
            assert hint in inlay_hints(file, hint.position, hint.position)
        for attribute in (each for contract in contracts for each in contract.attributes):
            for use in (*attribute.set, *attribute.read):
                assert use.place is not None
                assert use.place in references(file, *use.place.span.start)
                assert {each.place for each in attribute.set} <= set(definition(file, *use.place.span.start))


def _places(contract: Contract) -> list[PlaceRow]:
    found: list[PlaceRow | None] = [contract.place]
    found += [each.place for each in contract.methods]
    found += [each.place for each in contract.inputs]
    found += [each.parameter_place for each in contract.outputs]
    found += [each.place for row in contract.returns for each in row.slots or ()]
    found += [each.place for each in contract.saves]
    found += [each.place for save in contract.saves for each in save.reads or ()]
    return [each for each in found if each is not None]
