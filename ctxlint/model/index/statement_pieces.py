"""Where the top-level statements of a file begin and end, as far as that shows in a file that does not parse."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.source.source import Source

_TOKEN = re.compile(
    r"""
    \#[^\r\n]*
    | \([^()\[\]{}"'\#\\\r\n]*\) | \[[^()\[\]{}"'\#\\\r\n]*\]  # closed again on the same line
    | (?P<triple> \"\"\" | \'\'\' )
    | (?P<string> "(?:[^"\\\r\n]|\\.)*"? | '(?:[^'\\\r\n]|\\.)*'? )
    | (?P<open> [(\[{] )
    | (?P<close> [)\]}] )
    | (?P<escape> \\(?:\r\n|.) )
    """,
    re.VERBOSE | re.DOTALL,
)
_TRIPLE_ENDS = {quotes: re.compile(rf"(?:[^\\]|\\.)*?{quotes}", re.DOTALL) for quotes in ('"""', "'''")}
_NO_START = frozenset(("#", ")", "]", "}", ""))
_CONTINUES = re.compile(r"(?:else|elif|except|finally)\b")
_DECORATOR = re.compile(r"@\s*\w")
_HARD_START = re.compile(r"(?:class|def|async|import|from|if|for|while|with|try)\b|@")


class Lines(NamedTuple):
    """The first and the last line of a piece of a file, both included, counted from 1."""

    first: int
    last: int


@lru_cache(maxsize=8)  # who types is asked three times of every text, and again and again of the last that parsed
def statements(source: Source, block: Lines) -> tuple[Lines, ...]:
    """The pieces of the lines ``block`` of a file that look like top-level statements, with their ``else``.

    Decorators belong to what they decorate. A line in brackets, in a string or after a backslash begins none.
    """
    open_lines = lines_inside(source, block)
    text = source.text
    starts: list[int] = []
    after_decorator = False
    for number, at in enumerate(source.line_starts[block.first - 1 : block.last], block.first):
        first = text[at : at + 1]
        if first.isspace() or first in _NO_START or number in open_lines or _CONTINUES.match(text, at) is not None:
            continue
        if not after_decorator:
            starts.append(number)
        after_decorator = first == "@"
    return tuple(_between(starts, block.last))


def hard_starts(source: Source, piece: Lines) -> Iterator[Lines]:
    """A piece taken apart at its lines that begin, at the margin, with a word that can only begin a statement."""
    starts = [piece.first]
    after_decorator = _DECORATOR.match(source.line(piece.first)) is not None
    for number in range(piece.first + 1, piece.last + 1):
        line = source.line(number)
        if _HARD_START.match(line) is None:
            continue
        if not after_decorator:
            starts.append(number)
        after_decorator = _DECORATOR.match(line) is not None
    return _between(starts, piece.last)


def _between(starts: list[int], last: int) -> Iterator[Lines]:
    return (Lines(first, after - 1) for first, after in zip(starts, [*starts[1:], last + 1]))


def lines_inside(source: Source, block: Lines) -> set[int]:
    """The numbers of the lines of ``block`` that begin inside brackets or a string, or after a backslash."""
    line_starts = source.line_starts
    at = line_starts[block.first - 1]
    text, block_end = source.text, at + len(source.lines(*block))
    inside: set[int] = set()

    def add(start: int, end: int) -> None:
        inside.update(range(bisect_right(line_starts, start) + 1, bisect_right(line_starts, end) + 1))

    depth = opened = 0
    while True:
        token = _TOKEN.search(text, at, block_end)
        if token is None:
            if depth > 0:
                add(opened, block_end)
            return inside
        at = token.end()
        kind = token.lastgroup
        if kind == "triple":
            end = _TRIPLE_ENDS[token.group()].match(text, at, block_end)
            if end is not None:
                add(at, end.end())
                at = end.end()
        elif kind == "open":
            opened = opened if depth > 0 else at
            depth += 1
        elif kind == "close":
            if depth == 1:
                add(opened, at)
            depth = max(depth - 1, 0)
        elif kind in ("string", "escape"):
            add(token.start(), at)
