"""Conversion between ctxlint's positions, which count characters, and a client's, in the negotiated encoding.

pygls has such conversions too, on lines that it also splits at form feeds and U+2028. No client does that, and an edit
that is a line off destroys a file; so the lines here are those of ``Source``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lsprotocol import types as lsp

from ctxlint.source.source import Position, Span

if TYPE_CHECKING:
    from ctxlint.fix import Edit
    from ctxlint.source.source import Source

_BOM = "\ufeff"


@dataclass(frozen=True)
class EncodedPlaces:
    """Positions in ``source`` as a client counts them: lines and columns from 0, columns in units of ``encoding``."""

    source: Source
    encoding: str = "utf-16"

    def position(self, position: Position) -> lsp.Position:
        """A position as the client counts it."""
        line = self._line(position.line)
        column = position.column - 1 + self._bom_in(position.line)
        return lsp.Position(position.line - 1, width(line[:column], self.encoding))

    def range(self, span: Span) -> lsp.Range:
        """A span as the client counts it."""
        return lsp.Range(self.position(span.start), self.position(span.end))

    def between(self, start: int, end: int) -> lsp.Range:
        """The range between two offsets into the text."""
        return self.range(Span(self.source.position(start), self.source.position(end)))

    def offset(self, position: lsp.Position) -> int:
        """The offset of a client's position; positions beyond a line's end are clipped to it."""
        number = position.line + 1
        if number > self.source.line_count:
            return len(self.source.text)
        column = max(index_of(self._line(number), position.character, self.encoding) - self._bom_in(number), 0)
        return self.source.line_starts[number - 1] + column

    def text_edit(self, edit: Edit) -> lsp.TextEdit:
        """An edit as an LSP text edit."""
        return lsp.TextEdit(self.between(edit.start, edit.end), edit.content)

    def _line(self, number: int) -> str:
        return _BOM * self._bom_in(number) + self.source.line(number)

    def _bom_in(self, number: int) -> int:
        """1 if the client counts a byte order mark that ``source`` leaves out."""
        return int(self.source.bom and number == 1)


def width(text: str, encoding: str) -> int:
    """The length of a text in units of ``encoding``."""
    if encoding == "utf-32" or text.isascii():
        return len(text)
    if encoding == "utf-8":
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text) + sum(character > "\uffff" for character in text)


def index_of(line: str, units: int, encoding: str) -> int:
    """The character of ``line`` that begins after ``units`` of ``encoding``; its end if it is shorter."""
    if encoding == "utf-32" or line.isascii():
        return max(0, min(units, len(line)))
    done = 0
    for index, character in enumerate(line):
        if done >= units:
            return index
        done += width(character, encoding)
    return len(line)
