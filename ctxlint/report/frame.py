"""A few lines of a file with marks under the span of a finding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.records import record
from ctxlint.report.visible import TAB, visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.report.style import TextStyle
    from ctxlint.source.source import Source, Span

_CONTEXT = 1
_LONGEST = 6
"""A marked range with more lines than this is shown without its middle."""


@record
class Frame:
    """Draws ``span`` of ``source``; ``mark`` is the character under it."""

    source: Source
    span: Span
    style: TextStyle
    mark: str = "^"

    @property
    def width(self) -> int:
        """The width of the column of line numbers."""
        return len(str(self._shown[-1]))

    @property
    def _shown(self) -> range:
        """The lines to show: the marked ones with some context, without blank lines at either end."""
        first = max(self.span.start.line - _CONTEXT, 1)
        last = min(self.last_marked + _CONTEXT, self.source.line_count)
        while first < self.span.start.line and not self.source.line(first).strip():
            first += 1
        while last > self.last_marked and not self.source.line(last).strip():
            last -= 1
        return range(first, max(last, first) + 1)

    @property
    def last_marked(self) -> int:
        """The last line with a mark; an end at the start of a line belongs to the line before."""
        start, end = self.span
        return end.line - 1 if end.line > start.line and end.column == 1 else max(end.line, start.line)

    def lines(self) -> Iterator[str]:
        """The lines of the frame, from the bar above to the bar below."""
        yield self._gutter()
        several = self.last_marked > self.span.start.line
        for number in self._shown:
            if several and self._is_cut(number):
                if not self._is_cut(number - 1):
                    yield self.style.frame("...") + self._side(inside=True)
                continue
            yield self._code_line(number, several=several)
            if number == self.span.start.line:
                yield self._opening() if several else self._underline()
            elif several and number == self.last_marked:
                yield self._closing()
        yield self._gutter()

    def _is_cut(self, number: int) -> bool:
        first, last = self.span.start.line, self.last_marked
        return last - first + 1 > _LONGEST and first + 1 < number < last - 1

    def _gutter(self, number: str = "") -> str:
        return self.style.frame(f"{number:>{self.width}} |")

    def _code_line(self, number: int, *, several: bool) -> str:
        side = ""
        if several:
            side = self._side(inside=self.span.start.line < number <= self.last_marked)
        text = visible(self.source.line(number))
        return f"{self._gutter(str(number))}{side} {text}".rstrip()

    def _side(self, *, inside: bool) -> str:
        return " " + (self.style.code("|") if inside else " ")

    def _underline(self) -> str:
        start, end = self.span
        text = self.source.line(start.line)
        before = columns(text[: start.column - 1])
        under = columns(text[start.column - 1 : end.column - 1]) if end.line == start.line else 0
        if end.line > start.line:
            under = columns(text[start.column - 1 :])
        return f"{self._gutter()} {' ' * before}{self.style.code(self.mark * max(under, 1))}"

    def _opening(self) -> str:
        before = columns(self.source.line(self.span.start.line)[: self.span.start.column - 1])
        return f"{self._gutter()}  {self.style.code('_' * (before + 1) + self.mark)}"

    def _closing(self) -> str:
        text = self.source.line(self.last_marked)
        end = self.span.end.column - 1 if self.last_marked == self.span.end.line else len(text)
        return f"{self._gutter()} {self.style.code('|' + '_' * max(columns(text[:end]), 1) + self.mark)}"


def columns(text: str) -> int:
    """How many columns of a terminal ``text`` takes after ``visible``."""
    if text.isascii():
        return len(text) + (len(TAB) - 1) * text.count("\t")
    return sum(map(_columns, visible(text)))


def _columns(char: str) -> int:
    from unicodedata import category, east_asian_width

    if category(char) in ("Mn", "Me"):
        return 0
    return 2 if east_asian_width(char) in "WF" else 1
