r"""The text of one file, and the one line table that all positions are counted with.

Lines end at ``\n``, ``\r\n`` and ``\r`` and nowhere else. ``str.splitlines`` also splits at form feeds and U+2028,
which neither Python nor LibCST nor an editor does, so it is not used anywhere in ctxlint.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

_LINE_END = re.compile(r"\r\n|\n|\r")


class Position(NamedTuple):
    """A place in a file: line and column are 1-based, the column counts characters."""

    line: int
    column: int


class Span(NamedTuple):
    """A stretch of a file: 1-based lines and columns in characters; the end is exclusive."""

    start: Position
    end: Position


@dataclass(frozen=True)
class Source:
    """A decoded file.

    ``path`` is the name that reports show. ``text`` is the content without a byte order mark, line endings as they
    are on disk. ``encoding`` is the codec that reads and writes the bytes back (PEP 263 cookie or UTF-8); ``bom`` says
    whether a UTF-8 byte order mark preceded the text.
    """

    path: str
    text: str
    encoding: str = "utf-8"
    bom: bool = False

    @cached_property
    def line_starts(self) -> list[int]:
        """The character offset at which each line starts; the first entry is 0."""
        return [0, *(match.end() for match in _LINE_END.finditer(self.text))]

    @property
    def line_count(self) -> int:
        """How many lines there are; a final line ending opens one more, empty line."""
        return len(self.line_starts)

    def offset(self, position: Position) -> int:
        """The character offset of ``position``; one past the end of the file gives the length of the text."""
        if position.line > len(self.line_starts):
            return len(self.text)
        return min(self.line_starts[position.line - 1] + position.column - 1, len(self.text))

    def position(self, offset: int) -> Position:
        """The position of a character offset."""
        line = bisect_right(self.line_starts, offset)
        return Position(line, offset - self.line_starts[line - 1] + 1)

    def lines(self, first: int, last: int) -> str:
        """The text of the 1-based lines ``first`` to ``last``, both included, with their line endings."""
        start = self.line_starts[first - 1]
        end = self.line_starts[last] if last < len(self.line_starts) else len(self.text)
        return self.text[start:end]

    def line(self, number: int) -> str:
        """One line without its line ending; empty past the end of the file."""
        if number > len(self.line_starts):
            return ""
        return self.lines(number, number).rstrip("\r\n")
