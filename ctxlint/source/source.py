r"""The text of one file, and the only line table, on which all positions are based.

Lines end at ``\n``, ``\r\n`` and ``\r`` and nowhere else. ``str.splitlines`` also splits at form feeds and U+2028,
but Python, LibCST and editors do not, so it is not used anywhere in ctxlint.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import replace
from functools import cached_property
from io import StringIO
from itertools import accumulate
from typing import TYPE_CHECKING

from ctxlint.named_tuples import NamedTuple
from ctxlint.records import record
from ctxlint.source.text_edits import apply_edits

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator, Sequence

    from ctxlint.source.text_edits import Edit


def comments_in(text: str) -> list[str]:
    """What follows the first ``#`` of each line that has one: the comments, and parts of some strings."""
    return [line.partition("#")[2] for line in text.split("\n") if "#" in line]


class Position(NamedTuple):
    """A position in a file: line and column are 1-based, the column counts characters."""

    line: int
    column: int

    def moved(self, *, lines: int = 0, columns: int = 0) -> Position:
        """The position after moving by a number of lines and columns."""
        return Position(self.line + lines, self.column + columns)


class Span(NamedTuple):
    """A range of a file: 1-based lines and columns in characters; the end is exclusive."""

    start: Position
    end: Position

    def moved(self, lines: int) -> Span:
        """The span after moving by a number of lines."""
        return Span(self.start.moved(lines=lines), self.end.moved(lines=lines))


WHOLE_FILE = Span(Position(1, 1), Position(1, 1))
"""The span of a finding about a file as a whole."""


class Located(NamedTuple):
    """A span as users see it: in a file, or in a cell of a notebook, whose text is then ``source``."""

    source: Source
    span: Span
    cell: int | None = None

    @property
    def place(self) -> str:
        """Its start: ``4:9``, in a notebook ``cell 3:4:9``."""
        line, column = self.span.start
        return f"{line}:{column}" if self.cell is None else f"cell {self.cell}:{line}:{column}"


class LocatedEdits(NamedTuple):
    """The edits of one file, or of one cell of a notebook; offsets count from its start."""

    source: Source
    edits: tuple[Edit, ...]
    cell: int | None = None


def line_starts(text: str) -> list[int]:
    """The offset at which each line of a text starts; the first entry is 0."""
    lines = StringIO(text, newline="")  # it ends lines there, too
    starts = [0, *accumulate(map(len, lines))]
    return starts if not text or text[-1] in "\r\n" else starts[:-1]


_QUOTES = ("'", '"')


@record
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
        return line_starts(self.text)

    @cached_property
    def has_walrus(self) -> bool:
        """Whether there may be a ``:=`` in the code: whether expressions may bind names."""
        return self.holds(":=")

    @property
    def line_count(self) -> int:
        """The number of lines; a final line ending starts one more, empty line."""
        return len(self.line_starts)

    def holds(self, part: str) -> bool:
        """Whether the text contains another one."""
        return part in self.text

    def mentions(self, word: str) -> bool:
        """Whether a word occurs anywhere in the text."""
        return self.holds(word) and re.search(rf"\b{word}\b", self.text) is not None

    def quotes(self, word: str) -> bool:
        """Whether a word occurs anywhere in the text as a whole string literal."""
        return self.holds(word) and any(f"{a}{word}{b}" in self.text for a in _QUOTES for b in _QUOTES)

    def count_as_attribute(self, word: str) -> int:
        """How often a word occurs in the text after a dot or a quotation mark, except in lines of comment."""
        found = (each.start() for each in re.finditer(rf"{word}\b", self.text))
        return sum(self._is_attribute(at) and not self._is_commented_out(at) for at in found)

    def _is_commented_out(self, at: int) -> bool:
        """Whether the line of an offset begins with ``#``."""
        return self.text[self.text.rfind("\n", 0, at) + 1 : at].lstrip().startswith("#")

    def _is_attribute(self, at: int) -> bool:
        """Whether a dot or quotation mark precedes an offset. A pattern with both would take ten times as long."""
        if self.text[at - 1 : at] in ("'", '"'):
            return True
        while self.text[at - 1 : at].isspace():
            at -= 1
        return self.text[at - 1 : at] == "."

    def read_whole(self) -> None:
        """Declare a dependency on the whole text; only relevant for those that reuse results for the next text."""

    def read_comments(self) -> None:
        """Declare a dependency on the comments of the whole text; see ``comments_in``."""

    def depends_on(self, question: tuple[str, str]) -> None:
        """Declare a dependency on the answer to a question about the code of the whole file."""

    def parses(self, *, is_whole: bool) -> bool:
        """``is_whole``, which is whether all of the text parses: declares a dependency on that."""
        return is_whole

    def offset(self, position: Position) -> int:
        """The character offset of ``position``; the length of the text for a position past the end of the file."""
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

    def span_of(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword, above: int = 0) -> Span:
        """The span of an ``ast`` node; columns are converted, because ``ast`` counts bytes.

        ``above`` is the number of lines of its file above this text.
        """
        line, end_line = node.lineno - above, (node.end_lineno or node.lineno) - above
        end_column = node.end_col_offset if node.end_col_offset is not None else node.col_offset
        return Span(
            Position(line, self._column(line, node.col_offset)),
            Position(end_line, self._column(end_line, end_column)),
        )

    def _column(self, line: int, bytes_before: int) -> int:
        """The 1-based column in characters of the position ``bytes_before`` bytes after the start of a line."""
        text = self.line(line)
        if text.isascii():
            return bytes_before + 1
        return len(text.encode("utf-8", "surrogatepass")[:bytes_before].decode("utf-8", "replace")) + 1

    # Overridden by notebooks, whose text is composed of cells

    @property
    def written(self) -> str:
        """The content of the file: the text."""
        return self.text

    @property
    def has_cells(self) -> bool:
        """Whether it is a notebook."""
        return False

    @property
    def runs_other_code(self) -> bool:
        """Whether it is a notebook that runs other files or restores variables, which binds names."""
        return False

    @property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        """The first and the last line of each range that Python parses separately."""
        return ((1, self.line_count),)

    def edited(self, edits: Sequence[Edit]) -> Source:
        """The file after ``edits``, which are sorted and do not overlap."""
        return replace(self, text=apply_edits(self.text, edits))

    def can_take(self, edits: Sequence[Edit]) -> bool:  # noqa: ARG002
        """Whether ``edits`` can be written to the file."""
        return True

    def locate(self, span: Span) -> Located:
        """A span of the text as users see it."""
        return Located(self, span)

    def in_file(self, span: Span) -> Span:
        """A span of the text as a span of the file."""
        return span

    def locate_line(self, line: int) -> str:
        """A line of the text as users see it: ``4``, in a notebook ``cell 3:4``."""
        located = self.locate(Span(Position(line, 1), Position(line, 1)))
        return located.place.rpartition(":")[0]

    def line_name(self, line: int) -> str:
        """A line of the text in a message: ``line 4``, in a notebook ``line 4 of cell 3``."""
        located = self.locate(Span(Position(line, 1), Position(line, 1)))
        cell = "" if located.cell is None else f" of cell {located.cell}"
        return f"line {located.span.start.line}{cell}"

    def locate_edits(self, edits: Sequence[Edit]) -> Iterator[LocatedEdits]:
        """``edits``, sorted, as users see them."""
        if edits:
            yield LocatedEdits(self, tuple(edits))

    def changes(self, after: Source) -> Iterator[tuple[str, Source, Source]]:
        """The differences in ``after``, this file after edits: the display name, the text before, the text after."""
        yield self.path, self, after
