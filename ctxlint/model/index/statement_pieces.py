"""Where the top-level statements of a file begin and end, as far as a file that does not parse shows it."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from ctxlint.model.index.reparsing import blocks_of
from ctxlint.named_tuples import NamedTuple
from ctxlint.patterns import pattern
from ctxlint.records import record
from ctxlint.source.changes import change_between
from ctxlint.source.source import line_starts

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator, Sequence

    from ctxlint.source.changes import Change
    from ctxlint.source.source import Source

_TOKEN = pattern(
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
_TRIPLE_ENDS = {quotes: pattern(rf"(?:[^\\]|\\.)*?{quotes}", re.DOTALL) for quotes in ('"""', "'''")}
_NO_START = frozenset(("#", ")", "]", "}", ""))
_CONTINUES = pattern(r"(?:else|elif|except|finally)\b")
_DECORATOR = pattern(r"@[^\S\r\n]*\w")
_HARD_START = pattern(r"(?:class|def|async|import|from|if|for|while|with|try)\b|@")
_HARD_STARTS = frozenset("cdaifwt@")
"""The first characters of these."""


class StatementLines(NamedTuple):
    """The first and the last line of a piece of a file, both included, counted from 1."""

    first: int
    last: int


@lru_cache(maxsize=8)  # the editor splits every text three times, and repeatedly compares with the last that parsed
def statements(source: Source, block: StatementLines) -> tuple[StatementLines, ...]:
    """The pieces of the lines ``block`` of a file that look like top-level statements, with their ``else``.

    Decorators belong to what they decorate. A line in brackets, in a string or after a backslash begins none.
    """
    known = _PARSED.get(source.path) if block == (1, source.line_count) else None
    found = known.statements_of(source) if known is not None else None
    if found is not None:
        return found
    return tuple(_between(_starts(source, block, lines_inside(source, block))[0], block.last))


def note_parsed(source: Source, body: Sequence[ast.stmt]) -> None:
    """Record that a whole text parses as ``body``: to split a similar text, only the difference is scanned."""
    _PARSED[source.path] = _Parsed(source, statements(source, StatementLines(1, source.line_count)), tuple(body))
    while len(_PARSED) > _PARSED_KEPT:
        del _PARSED[next(iter(_PARSED))]


@record
class _Parsed:
    """A text that parses, and its statements: its brackets are balanced, so each statement begins outside of any."""

    source: Source
    pieces: tuple[StatementLines, ...]
    body: tuple[ast.stmt, ...]

    @cached_property
    def _offsets(self) -> list[int]:
        return [self.source.line_starts[piece.first - 1] for piece in self.pieces]

    @cached_property
    def _first_lines(self) -> list[int]:
        """The offsets of the second lines of the statements."""
        ends = (*self.source.line_starts, len(self.source.text) + 1)
        return [ends[piece.first] for piece in self.pieces]

    def statements_of(self, new: Source) -> tuple[StatementLines, ...] | None:
        """The statements of another text; None if all of it has to be scanned.

        The scan runs from the last statement whose first line is unchanged to the end of the last changed one. If it
        ends outside of brackets and strings, the rest is unchanged; if brackets are open there, the rest does not
        close them.
        """
        old, change = self.source, change_between(self.source.text, new.text)
        before = bisect_right(self._first_lines, change.start) - 1
        after = bisect_right(self._offsets, change.end)
        if before < 0:
            return None
        first = self.pieces[before].first
        more = new.line_count - old.line_count
        rest = [StatementLines(piece.first + more, piece.last + more) for piece in self.pieces[after:]]
        if not rest:
            part = StatementLines(first, new.line_count)
            return (*self.pieces[:before], *_between(_starts(new, part, lines_inside(new, part))[0], part.last))
        part = StatementLines(first, rest[0].first - 1)
        if after == before + 1 and self._closes_again(new, change, self.pieces[before]):
            return (*self.pieces[:before], part, *rest)
        if new.line_starts[rest[0].first - 1] != self._offsets[after] + change.added or part.last < part.first:
            return None
        inside, is_open = _inside(new, part)
        starts, after_decorator = _starts(new, part, inside)
        if is_open is None or (after_decorator and not is_open):
            return None
        if is_open:
            return (*self.pieces[:before], *_between(starts, new.line_count))
        return (*self.pieces[:before], *_between(starts, part.last), *rest)

    def _closes_again(self, new: Source, change: Change, piece: StatementLines) -> bool:
        """Whether a change between two nested statements of a piece certainly leaves it one piece."""
        old = self.source
        top, bottom = (bisect_right(old.line_starts, at) for at in (change.start, change.end))
        first, last = self._around(top, bottom)
        if not piece.first < first < last <= piece.last:
            return False
        more = new.line_count - old.line_count
        if new.line_starts[last + more - 1] != old.line_starts[last - 1] + change.added:
            return False
        part = StatementLines(first, last + more - 1)
        inside, is_open = _inside(new, part)
        return is_open is False and not _starts(new, part, inside)[0]

    def _around(self, top: int, bottom: int) -> tuple[int, int]:
        """The lines above ``top`` and below ``bottom`` that begin with a nested statement; 0 if there are none."""
        first = last = 0
        block: Sequence[ast.stmt] = self.body
        while block:
            above = [each for each in block if each.lineno < top]
            nested = [each for each in block if self._is_indented(each)]
            first = next((each.lineno for each in reversed(nested) if each.lineno < top), first)
            last = next((each.lineno for each in nested if each.lineno > bottom), last)
            block = [each for *_part, inner in blocks_of(above[-1]) for each in inner] if above else ()
        return first, last

    def _is_indented(self, statement: ast.stmt) -> bool:
        """Whether only whitespace is in front of a statement on its line."""
        start = self.source.line_starts[statement.lineno - 1]
        return self.source.text[start : start + statement.col_offset].isspace()


_PARSED: dict[str, _Parsed] = {}
_PARSED_KEPT = 4


def _starts(source: Source, block: StatementLines, open_lines: set[int]) -> tuple[list[int], bool]:
    """The lines of a range that begin a statement, and whether it ends after a decorator."""
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
    return starts, after_decorator


def hard_starts(source: Source, piece: StatementLines) -> Iterator[StatementLines]:
    """A piece split at its unindented lines that start with a word that can only begin a statement."""
    text, starts = source.text, [piece.first]
    after_decorator = _DECORATOR.match(text, source.line_starts[piece.first - 1]) is not None
    for number, at in enumerate(source.line_starts[piece.first : piece.last], piece.first + 1):
        if text[at : at + 1] not in _HARD_STARTS or _HARD_START.match(text, at) is None:
            continue
        if not after_decorator:
            starts.append(number)
        after_decorator = _DECORATOR.match(text, at) is not None
    return _between(starts, piece.last)


def _between(starts: list[int], last: int) -> Iterator[StatementLines]:
    return (StatementLines(first, after - 1) for first, after in zip(starts, [*starts[1:], last + 1]))


def lines_inside(source: Source, block: StatementLines) -> set[int]:
    """The numbers of the lines of ``block`` that begin inside brackets or a string, or after a backslash."""
    return _inside(source, block)[0]


def _inside(source: Source, block: StatementLines) -> tuple[set[int], bool | None]:
    """Like ``lines_inside``, and whether brackets are open at the end; None if a string or a line continues there."""
    inside, is_open = _inside_text(source.lines(*block))
    return {block.first + each for each in inside}, is_open


@lru_cache(maxsize=32)  # most statements that are split again, for each fix in them, have not changed
def _inside_text(text: str) -> tuple[frozenset[int], bool | None]:
    """As ``_inside``; lines count from 0."""
    starts, at, block_end = line_starts(text), 0, len(text)
    inside: set[int] = set()

    def add(start: int, end: int) -> None:
        inside.update(range(bisect_right(starts, start), bisect_right(starts, end)))

    depth = opened = 0
    goes_on = False
    while True:
        token = _TOKEN.search(text, at, block_end)
        if token is None:
            if depth > 0:
                add(opened, block_end)
            return frozenset(inside), None if goes_on else depth > 0
        at = token.end()
        kind = token.lastgroup
        if kind == "triple":
            end = _TRIPLE_ENDS[token.group()].match(text, at, block_end)
            if end is not None:
                add(at, end.end())
                at = end.end()
            goes_on |= end is None
        elif kind == "open":
            opened = opened if depth > 0 else at
            depth += 1
        elif kind == "close":
            if depth == 1:
                add(opened, at)
            depth = max(depth - 1, 0)
        elif kind in ("string", "escape"):
            add(token.start(), at)
            goes_on |= at == block_end
