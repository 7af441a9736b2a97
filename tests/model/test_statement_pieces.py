"""Where statements begin and end, derived from an earlier version of the text."""

from __future__ import annotations

import ast
import random
from pathlib import Path

import pytest

from ctxlint.model.index import statement_pieces
from ctxlint.model.index.statement_pieces import StatementLines, note_parsed, statements
from ctxlint.source.source import Source

PROGRAMS = sorted((Path(__file__).parents[2] / "fixtures" / "programs" / "clean").glob("*.py"))
TYPED = [
    "(",
    ")",
    "[",
    '"""',
    "'",
    "#",
    "\\",
    "\n",
    "@",
    "@x\n",
    " ",
    "else:",
    "x",
    "e",
    "\n\nclass A:\n",
    "    ",
    "}\n",
    "\r",
]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_what_is_read_of_a_changed_text_is_what_all_of_it_gives(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statement_pieces, "_PARSED", {})
    chance = random.Random(path.stem)
    text = path.read_text()
    known = Source("typed.py", text)
    fast = 0
    for _ in range(400):
        at = chance.randrange(len(text) + 1)
        changed = text[:at] + chance.choice(TYPED) * chance.randrange(1, 3) + text[at + chance.randrange(30) :]
        note_parsed(known, ast.parse(known.text).body)
        (parsed,) = statement_pieces._PARSED.values()
        new = Source("typed.py", changed)
        fast += parsed.statements_of(new) is not None
        found = statements(new, StatementLines(1, new.line_count))
        statement_pieces._PARSED.clear()
        whole = Source("other.py", changed)
        assert found == statements(whole, StatementLines(1, whole.line_count)), changed
        try:
            ast.parse(changed)
        except (SyntaxError, ValueError):
            continue
        if chance.random() < 0.3:
            text, known = changed, new
    assert fast
