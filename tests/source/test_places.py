"""Positions of nodes equal LibCST's own, however they are requested."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import libcst as cst
import pytest
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from ctxlint.source.positions import Places

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.source.source import Span

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


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_a_function_is_written_alone_and_names_need_no_writing(path: Path) -> None:
    text = path.read_bytes().decode()
    module = cst.parse_module(text)
    expected = MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)
    definitions = [node for node in expected if isinstance(node, (cst.FunctionDef, cst.ClassDef))]
    for definition in definitions:
        assert as_range(Places(module, text).span_of_name(definition)) == expected[definition.name]
    functions = [node for node in definitions if isinstance(node, cst.FunctionDef)]
    alone = 0
    for function in functions:
        places = Places(module, text)
        alone += places.write(function)
        inside = [node for node in _nodes(function) if node in expected]
        assert {node: as_range(places.span(node)) for node in inside} == {node: expected[node] for node in inside}
    names = [function.name.value for function in functions]
    assert alone >= sum(names.count(name) == 1 for name in names)


def _nodes(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    yield node
    for child in node.children:
        yield from _nodes(child)


METHOD = "    @staticmethod\n    def forward(ctx, x):\n        return x\n"


@pytest.mark.parametrize(
    ("text", "alone"),
    [
        (f"class A(Function):\n{METHOD}", True),
        (f"class A(Function):\n{METHOD}".replace("\n", "\r\n"), True),
        (f"class A(Function):\n{METHOD}".replace("\n", "\r"), True),
        (f"class A(Function):\n\n    # above\n\n{METHOD}\n    # below\n\n\n    a = 1\n", True),
        (f"if torch:\n\tclass A(Function):\n{METHOD}".replace("    ", "\t\t"), True),
        ("class A(Function):\n  def forward(ctx, x): return x\n", True),
        ("class A(Function):\n    async  def forward (ctx, x):\n        return x\n", True),
        (
            f"class A(Function):\n    # def forward(ctx):\n{METHOD}\n    def forward_all(ctx):\n        ...\n{METHOD[:4]}a = 1\n",
            True,
        ),
        # what looks like the same function stands somewhere else as well
        (f'class A(Function):\n    """\n{METHOD}"""\n{METHOD}', False),
        (f"class B:\n{METHOD}\nclass A(Function):\n{METHOD}", False),
        # or only somewhere else
        ("class A(Function):\n    def  forward(ctx, x):\n        return x\n", False),
        (f'class A(Function):\n    """\n{METHOD}"""\n{METHOD}'.replace("def", "def\\\n", 2), False),
        ('class A(Function):\n    """\n    def f(): ..."""\n    def \\\n f(): ...\n', False),
        # LibCST loses a form feed, on another line
        (f"\fclass A(Function):\n{METHOD}", True),
    ],
)
def test_a_function_stands_where_its_text_does(text: str, alone: bool) -> None:
    module = cst.parse_module(text)
    expected = MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)
    functions = [node for node in expected if isinstance(node, cst.FunctionDef)]
    function = next(node for node in reversed(functions) if node.name.value != "forward_all")
    places = Places(module, text)
    assert as_range(Places(module, text).span_of_name(function)) == expected[function.name]
    assert places.write(function) is alone
    inside = [node for node in _nodes(function) if node in expected]
    assert {node: as_range(places.span(node)) for node in inside} == {node: expected[node] for node in inside}
    beginning = Places(module, text)
    assert beginning.write(function, head=True) is alone
    above = [each for decorator in function.decorators for each in _nodes(decorator) if each in expected]
    assert {node: as_range(beginning.span(node)) for node in above} == {node: expected[node] for node in above}
    assert beginning.write(function) is alone
    assert {node: as_range(beginning.span(node)) for node in inside} == {node: expected[node] for node in inside}


def test_a_node_of_another_module_has_no_place() -> None:
    places = Places(cst.parse_module("a = 1\n"))
    for _ in range(3):
        with pytest.raises(KeyError):
            places.span(cst.Name("a"))
