"""The comments of a file, and its logical lines.

A small scanner rather than ``tokenize``: it gives the same result on every Python, also for newer syntax and for code
that does not parse, and it never mistakes a ``#`` inside a string for a comment (nested f-strings and t-strings
included).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING

from ctxlint.named_tuples import NamedTuple
from ctxlint.patterns import pattern
from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctxlint.source.source import Source

_LINE_END = r"(?:\r\n|\n|\r)"
_CODE = pattern(
    rf"""(?P<comment>\#[^\r\n]*)
    | (?P<quote>\"\"\"|'''|"|')
    | (?P<open>[\[({{])
    | (?P<close>[\])}}])
    | (?P<colon>:)
    | (?P<continuation>\\{_LINE_END})
    | (?P<newline>{_LINE_END})""",
    re.VERBOSE,
)
_FORMATTED_PREFIX = pattern(r"(?<!\w)(?:[fFtT][rR]?|[rR][fFtT])\Z")
_NOT_SPACE = pattern(r"\S")
_PLAIN_END = {quote: pattern(rf"\\{_LINE_END}|\\.|{quote}|{_LINE_END}", re.DOTALL) for quote in ('"', "'")}
_TRIPLE_END = {quote: pattern(rf"\\.|{quote}", re.DOTALL) for quote in ('"""', "'''")}
_FORMATTED_END = {
    quote: pattern(rf"\\N\{{[^}}\r\n]*\}}|\\{_LINE_END}|\\[^{{}}]|{quote}|\{{\{{|\}}\}}|\{{|{_LINE_END}", re.DOTALL)
    for quote in ('"', "'", '"""', "'''")
}
_SPEC_END = pattern(rf"\{{|\}}|{_LINE_END}")


class Comment(NamedTuple):
    """A comment: its 1-based line, the offset of the ``#``, its text, and whether it is on a line of its own."""

    line: int
    offset: int
    text: str
    alone: bool


class Lines(NamedTuple):
    """A range of 1-based lines, both ends included."""

    first: int
    last: int


@record
class CommentLayout:
    """The comments, multi-line strings and continuations, and logical lines of a file, in order."""

    source: Source
    comments: tuple[Comment, ...]
    joined: tuple[Lines, ...]
    statements: tuple[Lines, ...]

    def noqa_row(self, line: int) -> int:
        """The line that a ``# noqa`` for ``line`` has to be on: the last of a string or continuation that covers it."""
        return self._noqa_rows.get(line, line)

    def noqa_lines(self, line: int) -> Lines:
        """The lines that a ``# noqa`` at the end of ``line`` applies to."""
        return Lines(self._first_of_row.get(line, line), line)

    @cached_property
    def _noqa_rows(self) -> dict[int, int]:
        return {line: row for row, first in self._first_of_row.items() for line in range(first, row + 1)}

    @cached_property
    def _first_of_row(self) -> dict[int, int]:
        """The first of the lines that each line is joined with; a string may start where another one ends."""
        firsts: dict[int, int] = {}
        row = 0
        for first, last in self.joined:
            start = firsts.pop(row) if first <= row else first
            row = max(row, last)
            firsts[row] = start
        return firsts

    def comments_between(self, start: int, end: int) -> Sequence[Comment]:
        """The comments that begin at these offsets, the last excluded."""
        offset = attrgetter("offset")
        first, after = (bisect_left(self.comments, each, key=offset) for each in (start, end))
        return self.comments[first:after]

    def statement_at(self, line: int) -> Lines:
        """The logical line that covers ``line``; only that line if there is none."""
        at = bisect_left(self._lasts, line)
        found = at < len(self.statements) and self.statements[at].first <= line
        return self.statements[at] if found else Lines(line, line)

    def statement_below(self, line: int) -> Lines | None:
        """The first logical line after ``line``, with the ``def`` or ``class`` that follows when it is a decorator."""
        at = bisect_right(self._firsts, line)
        return Lines(self._firsts[at], self._ends_of_decorated[at]) if at < len(self._firsts) else None

    @cached_property
    def _firsts(self) -> list[int]:
        return [each.first for each in self.statements]

    @cached_property
    def _lasts(self) -> list[int]:
        return [each.last for each in self.statements]

    @cached_property
    def _ends_of_decorated(self) -> list[int]:
        """The last line of each logical line; for decorators, that of what they decorate, if anything."""
        ends: list[int] = []
        decorated: int | None = None
        for each in reversed(self.statements):
            if not self.source.line(each.first).lstrip().startswith("@"):
                decorated = each.last
            ends.append(each.last if decorated is None else decorated)
        return ends[::-1]


@dataclass
class _Frame:
    """One level of nesting: the file itself, a string, or the braces of an f-string."""

    kind: str
    quote: str = ""
    formatted: bool = False
    start: int = 0
    depth: int = 0


class _Scanner:
    """One pass over a text. ``frames`` is the nesting, the innermost last; the file itself is always the first."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.frames = [_Frame("code")]
        self.comments: list[tuple[int, bool]] = []
        self.joined: list[tuple[int, int]] = []
        self.statements: list[tuple[int, int]] = []
        self.statement_start: int | None = None
        self.line_start = 0

    def run(self) -> None:
        at = 0
        while at < len(self.text):
            frame = self.frames[-1]
            at = self._code(frame, at) if frame.kind in ("code", "field") else self._string(frame, at)
        if self.statement_start is not None:
            self._end_statement(len(self.text), cut_off=self.frames[0].depth > 0 or len(self.frames) > 1)

    def _code(self, frame: _Frame, at: int) -> int:
        """Advance to the end of the next relevant token in code; returns its offset."""
        found = _CODE.search(self.text, at)
        start = found.start() if found else len(self.text)
        if self.text[at:start].strip():
            self._content(at)
        if found is None:
            return len(self.text)
        kind, end = found.lastgroup, found.end()
        if kind == "comment":
            self.comments.append((start, not self.text[self.line_start : start].strip()))
            return end
        if kind == "newline":
            self.line_start = end
            if frame.kind == "code" and frame.depth == 0 and self.statement_start is not None:
                self._end_statement(start)
            return end
        self._content(start)
        if kind == "quote":
            formatted = _FORMATTED_PREFIX.search(self.text[max(start - 3, 0) : start]) is not None
            self.frames.append(_Frame("string", found[0], formatted, start))
        elif kind == "open":
            frame.depth += 1
        elif kind == "close":
            if frame.kind == "field" and frame.depth == 0 and found[0] == "}":
                self.frames.pop()
            frame.depth = max(frame.depth - 1, 0)
        elif kind == "colon" and frame.kind == "field" and frame.depth == 0:
            self.frames.append(_Frame("spec"))
        elif kind == "continuation":
            self.joined.append((start, end))
            self.line_start = end
        return end

    def _string(self, frame: _Frame, at: int) -> int:
        """Advance to the end of the next piece of a string or format specification; returns its offset."""
        if frame.kind == "spec":
            end = _SPEC_END
        elif frame.formatted:
            end = _FORMATTED_END[frame.quote]
        else:
            end = (_TRIPLE_END if len(frame.quote) == 3 else _PLAIN_END)[frame.quote]
        found = end.search(self.text, at)
        if found is None:
            self.frames.pop()
            self._note_string(frame, len(self.text))
            return len(self.text)
        token = found[0]
        if token == "{":
            self.frames.append(_Frame("field"))
        elif frame.kind == "spec" and token == "}":
            del self.frames[-2:]  # the specification ends, and its field with it
        elif token == frame.quote:
            self.frames.pop()
            self._note_string(frame, found.end())
        elif token in ("\n", "\r", "\r\n") and len(frame.quote) != 3:
            return self._broken_off(frame, found.start())
        return found.end()

    def _broken_off(self, frame: _Frame, at: int) -> int:
        """A one-line string, or a specification inside one, that the end of the line cuts off: half-typed code."""
        if frame.kind == "spec" and any(len(each.quote) == 3 for each in self.frames):
            return at + 1
        del self.frames[1:]
        return at

    def _content(self, at: int) -> None:
        if self.statement_start is None:
            found = _NOT_SPACE.search(self.text, at)
            self.statement_start = found.start() if found else at

    def _end_statement(self, at: int, *, cut_off: bool = False) -> None:
        start = self.statement_start or 0
        self.statement_start = None
        if not cut_off:
            self.statements.append((start, at))
            return
        # A bracket that is never closed: treat each line separately rather than the rest of the file as one statement.
        for found in re.finditer(r"[^\r\n]*\S[^\r\n]*", self.text[start:at]):
            self.statements.append((start + found.start(), start + found.end()))

    def _note_string(self, frame: _Frame, end: int) -> None:
        if frame.kind == "string":
            self.joined.append((frame.start, end))
            last_end = max(self.text.rfind("\n", frame.start, end), self.text.rfind("\r", frame.start, end))
            self.line_start = max(self.line_start, last_end + 1)


@lru_cache(maxsize=1)
def read_layout(source: Source) -> CommentLayout:
    """Scan ``source`` once, each cell of a notebook separately. Accepts any text; raises nothing. The last is kept."""
    comments: list[Comment] = []
    joined: list[Lines] = []
    statements: list[Lines] = []

    def line(offset: int) -> int:
        return source.position(offset).line

    for first, last in source.blocks:
        above = source.line_starts[first - 1]
        scanner = _Scanner(source.lines(first, last))
        scanner.run()
        for start, alone in scanner.comments:
            number = line(above + start)
            text = source.line(number)[above + start - source.line_starts[number - 1] :]
            comments.append(Comment(number, above + start, text, alone))
        joined += (Lines(line(above + start), line(above + end)) for start, end in scanner.joined)
        statements += (Lines(line(above + start), line(above + end)) for start, end in scanner.statements)
    return CommentLayout(
        source,
        tuple(comments),
        tuple(sorted(lines for lines in joined if lines.last > lines.first)),
        tuple(statements),
    )
