"""The layout of fixed code: within the project's line length, on one line if it fits, without superfluous blank lines.

A statement is reformatted if it had a formatter's layout before, or if a fix makes it too long; every other layout is
preserved.
"""

from __future__ import annotations

import ast
import itertools
import textwrap
import warnings
from bisect import bisect_right
from dataclasses import replace
from difflib import get_close_matches
from functools import lru_cache
from io import StringIO
from typing import TYPE_CHECKING

from ctxlint.fixes.wrapping import laid_out
from ctxlint.model.index.statement_pieces import StatementLines, lines_inside, statements
from ctxlint.records import record
from ctxlint.source.source import Source
from ctxlint.source.text_edits import Edit, apply_edits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ctxlint.fix import Fix


def formatted(source: Source, fix: Fix, width: int, within: StatementLines | None = None) -> Fix:
    """``fix`` with its text formatted; inserted lines end in a bare line feed.

    ``within`` are the lines of a top-level statement. If the fix changes nothing else, the rest of the file, which may
    be half typed, does not matter.
    """
    if "\r" in source.text or source.has_cells:
        return fix
    edits: list[Edit] = []
    for region in _regions(source, _lines_inside(source, fix, within), sorted(fix.edits)):
        edits += region.formatted(width)
    return replace(fix, edits=tuple(edits)) if edits != sorted(fix.edits) else fix


def _lines_inside(source: Source, fix: Fix, within: StatementLines | None) -> _InsideLines | set[int]:
    """The lines that begin inside a bracket or string, or after a backslash."""
    if within is not None:
        start = source.line_starts[within.first - 1]
        if fix.is_within(start, start + len(source.lines(*within))):
            return lines_inside(source, within)
    return _inside(source)


@record
class _Region:
    """Whole statements that edits affect: the lines ``first`` to ``last`` of the file."""

    source: Source
    first: int
    last: int
    edits: tuple[Edit, ...]

    def formatted(self, width: int) -> Sequence[Edit]:
        """The edits, or a single one with their result formatted."""
        start = self.source.line_starts[self.first - 1]
        before = self.source.lines(self.first, self.last)
        after = apply_edits(before, [Edit(each.start - start, each.end - start, each.content) for each in self.edits])
        old, new = _statements(before), _statements(after)
        partners = _partners(old, new)
        lines = [
            text if partners[at] == text else _laid_out(self.source, partners[at], text, width)
            for at, text in enumerate(new)
        ]
        written = "".join(self._without_blank_lines_over(old, lines))
        if written == after:
            return self.edits
        return [_smallest(Edit(start, start + len(before), written), before)]

    def _without_blank_lines_over(self, old: Sequence[str], new: list[str]) -> list[str]:
        """Limit the blank lines where statements were removed to the maximum before and after them."""
        if not any(_takes_lines_out(self.source, edit) for edit in self.edits):
            return new
        most = max((len(list(group)) for blank, group in itertools.groupby(old, _is_blank) if blank), default=1)
        found: list[str] = []
        for blank, group in itertools.groupby(new, _is_blank):
            found += itertools.islice(group, most if blank else None)
        return found


def _regions(source: Source, inside: _InsideLines | set[int], edits: Sequence[Edit]) -> Iterator[_Region]:
    """The edits, grouped by the statements or blank lines that they affect; ``inside`` are the continued lines."""
    spans: list[tuple[int, int, list[Edit]]] = []
    for edit in edits:
        first, last = source.position(edit.start).line, source.position(max(edit.start, edit.end - 1)).line
        while first in inside and first > 1:
            first -= 1
        while last + 1 in inside:
            last += 1
        if _takes_lines_out(source, edit):
            while first > 1 and _is_blank(source.line(first - 1)):
                first -= 1
            while last < source.line_count - 1 and _is_blank(source.line(last + 1)):
                last += 1
        if spans and first <= spans[-1][1] + 1:
            before, until, mine = spans.pop()
            spans.append((before, max(until, last), [*mine, edit]))
        else:
            spans.append((first, last, [edit]))
    return (_Region(source, first, last, tuple(mine)) for first, last, mine in spans)


def _takes_lines_out(source: Source, edit: Edit) -> bool:
    return not edit.content and edit.end > edit.start and _starts_line(source, edit.start, edit.end)


def _starts_line(source: Source, *offsets: int) -> bool:
    return all(source.position(offset).column == 1 for offset in offsets)


@lru_cache(maxsize=1)  # consecutive fixes are for the same file
def _inside(source: Source) -> _InsideLines:
    return _InsideLines(source)


class _InsideLines:
    """Like ``_continued_lines``, computed for requested statements only."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._pieces = [piece for block in source.blocks for piece in statements(source, StatementLines(*block))]
        self._firsts = [piece.first for piece in self._pieces]
        self._found: dict[int, set[int]] = {}

    def __contains__(self, line: int) -> bool:
        """Whether a line begins inside a bracket or string, or after a backslash."""
        at = bisect_right(self._firsts, line) - 1
        if at < 0:
            return False
        if at not in self._found:
            self._found[at] = lines_inside(self._source, self._pieces[at])
        return line in self._found[at]


def _continued_lines(source: Source) -> frozenset[int]:
    """The lines that begin inside a bracket or string, or after a backslash."""
    return frozenset(number for block in source.blocks for number in lines_inside(source, StatementLines(*block)))


@lru_cache(maxsize=256)  # as for _format
def _statements(text: str) -> tuple[str, ...]:
    """The lines of a text, joined if they are in the same bracket or string."""
    source = Source("", text)
    inside = _continued_lines(source)
    found: list[list[str]] = [[]]
    for number in range(1, source.line_count + 1):
        if found[-1] and number not in inside:
            found.append([])
        found[-1].append(source.lines(number, number))
    return tuple("".join(lines) for lines in found if any(lines))


_CANDIDATES = 8
"""A fix keeps the order of statements, so the partner of one is among the next few unmatched ones."""


@lru_cache(maxsize=256)  # as for _format
def _partners(old: tuple[str, ...], new: tuple[str, ...]) -> Sequence[str | None]:
    """The old version of each new statement; None for added ones."""
    same = set(old) & set(new)
    gone = [each for each in old if each not in same]
    come = [at for at, each in enumerate(new) if each not in same]
    found: list[str | None] = [each if each in same else None for each in new]
    for at in come:
        near = (
            gone[:1] if len(gone) == len(come) == 1 else get_close_matches(new[at], gone[:_CANDIDATES], n=1, cutoff=0.5)
        )
        if near:
            found[at] = near[0]
            gone.remove(near[0])
    return found


def _laid_out(source: Source, before: str | None, text: str, width: int) -> str:
    """A statement that a fix changed or added, formatted if necessary."""
    is_long = _is_long(text, width)
    if before is None:
        wanted = is_long or ("\n" in text.strip() and text.strip() not in source.text)
    else:
        wanted = _format(before, width) == before or (is_long and not _is_long(before, width))
    return (_format(text, width) or text) if wanted else text


def _is_long(text: str, width: int) -> bool:
    return any(len(line) > width for line in text.split("\n"))


@lru_cache(maxsize=256)
def _format(text: str, width: int) -> str | None:
    """A statement in a formatter's layout, with its line ending; None if that is unknown.

    Cached, because an editor asks for the same fixes after each keystroke.
    """
    code = text.strip("\n")
    indentation = code[: len(code) - len(code.lstrip())]
    found = laid_out(textwrap.dedent(code), indentation, width)
    if found is None or _meaning(found) != _meaning(code):
        return None
    return found + text[len(text.rstrip("\n")) :]


def _meaning(code: str) -> str | None:
    """The content of a statement, independent of its layout."""
    code = textwrap.dedent(code)
    if code.startswith("@"):
        code += "\ndef f(): pass"
    elif code.rstrip().endswith(":"):
        code += " pass"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.dump(ast.parse(f"async def f():\n{textwrap.indent(code, ' ')}"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _smallest(edit: Edit, before: str) -> Edit:
    """An edit without unchanged whole lines at its edges."""
    old, new = list(StringIO(before, newline="")), list(StringIO(edit.content, newline=""))
    front = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(old, new)))
    rest = zip(reversed(old[front:]), reversed(new[front:]))
    back = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], rest))
    start, end = len("".join(old[:front])), len("".join(old[len(old) - back :]))
    return Edit(edit.start + start, edit.end - end, "".join(new[front : len(new) - back]))


def _is_blank(line: str) -> bool:
    return not line.strip()
