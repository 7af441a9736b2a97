"""A text that was typed letter by letter is parsed as if it were parsed from scratch."""

from __future__ import annotations

import ast
import random
from pathlib import Path

import pytest

from ctxlint.model.index.parsing import Parsed, ParsedPieces, parse
from ctxlint.source.source import Source

PROGRAMS = sorted(Path("fixtures/programs").rglob("*.py"))

TYPED = [
    "(",
    ")",
    "[",
    "{",
    '"',
    '"""',
    "'''",
    "\n",
    "\\\n",
    "x",
    "    ",
    "@decorated\n",
    "else:\n",
    "f'{",
    "# ",
    "def f(",
]

MISJUDGED = '''
import torch

x = f"{"""
def not_a_function(
"""}"

class Fn(torch.autograd.Function):
    pass
'''
"""From Python 3.12 on, what looks like a statement can be inside a string that begins in an f-string."""


def told(parsed: Parsed) -> tuple[str, object]:
    return ast.dump(parsed.module, include_attributes=True), parsed.broken


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_typing(program: Path) -> None:
    chance = random.Random(program.stem)
    text = program.read_text(encoding="utf-8")
    kept = ParsedPieces()
    for _ in range(12):
        at = chance.randrange(len(text) + 1)
        if chance.random() < 0.3:
            text = text[:at] + text[at + chance.randrange(1, 40) :]
        else:
            text = text[:at] + chance.choice(TYPED) + text[at:]
        source = Source("typed.py", text)
        with kept.in_use():
            found = parse(source)
        assert told(found) == told(parse(source))
        if chance.random() < 0.5:
            text = program.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(MISJUDGED, id="a string in an f-string"),
        pytest.param("@decorated\n\n# why\n\ndef f(): ...\n", id="a comment under a decorator"),
        pytest.param("if x:\n    pass\n# why\nelse:\n    pass\n", id="else under a comment"),
        pytest.param("x = 1\n)\ny = 2\n", id="a stray bracket"),
        pytest.param("    x = 1\ny = 2\n", id="an indented beginning"),
        pytest.param("x = 1; y = 2\nif x: pass\n", id="statements in one line"),
        pytest.param("x = 1 \\", id="a backslash at the end"),
        pytest.param("", id="nothing"),
    ],
)
def test_pieces(text: str) -> None:
    source = Source("typed.py", text)
    with ParsedPieces().in_use():
        found = parse(source)
    assert told(found) == told(parse(source))


def test_what_did_not_change_is_not_parsed_again() -> None:
    kept = ParsedPieces()
    modules = []
    for name in ("x", "xx", "xx("):
        with kept.in_use():
            modules.append(parse(Source("typed.py", f"def f(): ...\n{name} = 1\ndef g(): ...\n")))
    first, second, third = (parsed.module.body for parsed in modules)
    assert first[0] is second[0] is third[0]
    assert first[2] is second[2]
    assert [type(each).__name__ for each in third] == ["FunctionDef", "FunctionDef"]
    assert [each.position.line for each in modules[2].broken] == [2]


def test_another_file_has_pieces_of_its_own() -> None:
    kept = ParsedPieces(files=1)
    with kept.in_use():
        first = parse(Source("a.py", "x = 1\n")).module.body[0]
        parse(Source("b.py", "x = 1\n"))
        assert parse(Source("a.py", "x = 1\n")).module.body[0] is not first


def test_the_pieces_of_one_file_stay_when_others_are_read() -> None:
    kept = ParsedPieces(files=1)
    with kept.in_use("a.py"):
        first = parse(Source("a.py", "x = 1\n")).module.body[0]
        parse(Source("b.py", "x = 1\n"))
        assert parse(Source("a.py", "x = 1\n")).module.body[0] is first


@pytest.mark.parametrize("error", [RecursionError("maximum recursion depth exceeded"), MemoryError()])
def test_a_statement_too_deep_for_python_has_a_reason(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("ctxlint.model.index.parsing._parse", fail)
    [broken] = parse(Source("a.py", "x = 1\n")).broken
    assert (broken.message, broken.is_syntax) == ("nested too deeply", False)
