"""What a fix changes, as a unified diff."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.files.source import Source


def unified_diff(before: Source, after: Source, *, named: bool = True) -> Iterator[str]:
    """The lines of the diff between two texts, each with its line ending; without file names unless ``named``.

    Of a notebook, a diff of each cell that changes, which is always named.
    """
    from difflib import unified_diff as lines_of_diff

    for name, old, new in before.changes(after):
        lines = list(lines_of_diff(_lines(old), _lines(new), name, name, lineterm="\n"))
        for line in lines if named or before.has_cells else lines[2:]:
            yield line if line.endswith(("\n", "\r")) else f"{line}\n\\ No newline at end of file\n"


def _lines(source: Source) -> list[str]:
    lines = [source.lines(number, number) for number in range(1, source.line_count + 1)]
    return lines if lines[-1] else lines[:-1]
