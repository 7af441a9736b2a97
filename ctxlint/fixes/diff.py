"""The changes of a fix as a unified diff."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections import Counter
from difflib import Match, SequenceMatcher
from typing import TYPE_CHECKING, Optional

from ctxlint.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ctxlint.source.source import Source

_CONTEXT = 3
"""The number of unchanged lines around each change."""

_Choice = tuple[int, int, Optional["_Choice"]]

_EXACT = 250_000
"""Ranges with at most this many pairs of lines are compared line by line; the others by difflib's heuristic."""


def unified_diff(before: Source, after: Source, *, named: bool = True) -> Iterator[str]:
    """The lines of the diff between two texts, each with its line ending; without file names unless ``named``.

    For a notebook, a diff of each changed cell, which is always named.
    """
    for name, old, new in before.changes(after):
        lines = _hunks(_lines(old), _lines(new))
        first = next(lines, None)
        if first is None:
            continue
        if named or before.has_cells:
            header = _in_header(name)
            yield from (f"--- {header}\n", f"+++ {header}\n")
        for line in (first, *lines):
            yield line if line.endswith(("\n", "\r")) else f"{line}\n\\ No newline at end of file\n"


def _in_header(name: str) -> str:
    """A name as git writes it: quoted if it is not printable, as a newline would end the header of the patch."""
    if name.isprintable() and not _QUOTED.search(name):
        return name
    text = _QUOTED.sub(r"\\\g<0>", name)
    return '"' + "".join(each if each.isprintable() else _escaped(each) for each in text) + '"'


def _escaped(char: str) -> str:
    return "\\n" if char == "\n" else "".join(f"\\{byte:03o}" for byte in os.fsencode(char))


_QUOTED = pattern(r'["\\]')


def _hunks(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    for group in _Matcher(old, new).get_grouped_opcodes(_CONTEXT):
        (_, old_start, _, new_start, _), (_, _, old_end, _, new_end) = group[0], group[-1]
        yield f"@@ -{_range(old_start, old_end)} +{_range(new_start, new_end)} @@\n"
        for tag, i, j, k, m in group:
            if tag == "equal":
                yield from (f" {line}" for line in old[i:j])
            else:
                yield from (f"-{line}" for line in old[i:j])
                yield from (f"+{line}" for line in new[k:m])


def _range(start: int, end: int) -> str:
    """A range of lines in the header of a hunk."""
    count = end - start
    return str(start + 1) if count == 1 else f"{start + 1 if count else start},{count}"


class _Matcher(SequenceMatcher[str]):
    """Matches the lines that are unique in both texts first, then the ranges between them.

    difflib by itself reports frequent lines of a long text as changed, or compares each of them with all equal ones.
    """

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        """The texts, as lines."""
        super().__init__()
        self.old, self.new = old, new

    def get_matching_blocks(self) -> list[Match]:
        """The ranges that are equal, in order, and an empty one at the end."""
        old, new = self.old, self.new
        found: list[Match] = []
        start, new_start = 0, 0
        for end, new_end in (*_anchors(old, new), (len(old), len(new))):
            part, new_part = old[start:end], new[new_start:new_end]
            exact = len(part) * len(new_part) <= _EXACT
            for block in SequenceMatcher(None, part, new_part, autojunk=not exact).get_matching_blocks():
                _add(found, Match(start + block.a, new_start + block.b, block.size))
            start, new_start = end, new_end
        return [*found, Match(len(old), len(new), 0)]


def _add(found: list[Match], block: Match) -> None:
    """Append a range, or extend the last one if they are adjacent."""
    last = found[-1] if found else None
    if last is not None and (last.a + last.size, last.b + last.size) == (block.a, block.b):
        found[-1] = last._replace(size=last.size + block.size)
    elif block.size:
        found.append(block)


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """The longest increasing sequence of the lines that are unique in both texts, by their indices."""
    counts, new_counts = Counter(old), Counter(new)
    where = {line: at for at, line in enumerate(old) if counts[line] == 1 == new_counts[line]}
    lowest: list[int] = []  # the lowest index in ``old`` at which a sequence of each length can end
    ends: list[_Choice] = []
    for at, line in enumerate(new):
        if line in where:
            length = bisect_left(lowest, where[line])
            choice = (where[line], at, ends[length - 1] if length else None)
            lowest[length : length + 1], ends[length : length + 1] = [where[line]], [choice]
    found: list[tuple[int, int]] = []
    choice_left = ends[-1] if ends else None
    while choice_left is not None:
        old_at, new_at, choice_left = choice_left
        found.append((old_at, new_at))
    return found[::-1]


def _lines(source: Source) -> list[str]:
    lines = [source.lines(number, number) for number in range(1, source.line_count + 1)]
    return lines if lines[-1] else lines[:-1]
