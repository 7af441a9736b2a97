"""The places of nodes: the same as LibCST's own, however they are asked for."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import libcst as cst
import pytest
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from ctxlint.files.places import Places

if TYPE_CHECKING:
    from ctxlint.files.source import Span

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = sorted((ROOT / "fixtures" / "programs" / "clean").rglob("*.py"))[:12] + sorted(
    (ROOT / "ctxlint" / "fixes").glob("*.py")
)


def as_range(span: Span) -> CodeRange:
    (first_line, first), (last_line, last) = span
    return CodeRange((first_line, first - 1), (last_line, last - 1))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_places_are_those_of_libcst(path: Path) -> None:
    module = cst.parse_module(path.read_bytes().decode())
    expected = MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)
    places = Places(module)
    assert {node: as_range(places.span(node)) for node in expected} == expected
    assert places.text == module.code


@pytest.mark.parametrize("path", PROGRAMS[:6], ids=lambda path: path.name)
def test_the_first_question_is_answered_like_the_others(path: Path) -> None:
    module = cst.parse_module(path.read_bytes().decode())
    expected = MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)
    for node in random.Random(0).sample(sorted(expected, key=id), 40):
        assert as_range(Places(module).span(node)) == expected[node]


def test_a_node_of_another_module_has_no_place() -> None:
    places = Places(cst.parse_module("a = 1\n"))
    for _ in range(3):
        with pytest.raises(KeyError):
            places.span(cst.Name("a"))
