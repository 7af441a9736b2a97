"""Findings of one text, moved to their positions in the next."""

from __future__ import annotations

import random

from ctxlint.diagnostic import Diagnostic
from ctxlint.editor.moving import moved
from ctxlint.source.changes import change_between
from ctxlint.source.source import Source, Span


def test_a_change_is_all_that_is_different() -> None:
    chance = random.Random(0)
    for _ in range(2000):
        old = "".join(chance.choice("ab\n") for _ in range(chance.randrange(30)))
        at, size = chance.randrange(len(old) + 1), chance.randrange(4)
        new = old[:at] + "".join(chance.choice("ab") for _ in range(chance.randrange(4))) + old[at + size :]
        start, end, new_end = change_between(old, new)
        assert old[:start] + new[start:new_end] + old[end:] == new
        assert 0 <= start <= min(end, new_end)


def test_findings_move_with_what_they_are_about() -> None:
    old = Source("f.py", "one = 1\ntwo = two\nthree = 3\n")
    at = old.text.index("= two")
    found = Diagnostic("f.py", Span(old.position(at), old.position(at + 5)), "CTX203", "missing-none", "message")
    for new, there in (
        ("# above\none = 1\ntwo = two\nthree = 3\n", "= two"),
        ("one = 1\ntwo = two\nthree = 3 + 3\n", "= two"),
        ("one = 1\ntwo = 2 * two\nthree = 3\n", "= 2 * two"),
        ("one = 1\ntwo x= two\nthree = 3\n", "= two"),
        ("one = 1\ntwo = twox\nthree = 3\n", "= two"),
        ("one = 1\nthree = 3\n", ""),
    ):
        source = Source("f.py", new)
        ((start, end),) = [each.span for each in moved([found], old, source)]
        assert new[source.offset(start) : source.offset(end)] == there
