"""The difference between two texts, as a single range."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.named_tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class Change(NamedTuple):
    """The difference between two texts: everything from the first to the last difference."""

    start: int
    end: int
    new_end: int

    @property
    def added(self) -> int:
        """How much longer the new text is."""
        return self.new_end - self.end

    def moved(self, start: int, end: int) -> tuple[int, int]:
        """A range of the old text in the new one; text that is typed inside it extends it."""
        new_start = start + self.added if start >= self.end else min(start, self.start)
        new_end = end if end <= self.start else max(end, self.end) + self.added
        return new_start, max(new_start, new_end)


def change_between(old: str, new: str) -> Change:
    """The difference in ``new``."""
    shorter = min(len(old), len(new))
    start = _common(shorter, lambda least, size: old[least:size] == new[least:size])
    at, there = len(old), len(new)
    same = _common(
        shorter - start, lambda least, size: old[at - size : at - least] == new[there - size : there - least]
    )
    return Change(start, at - same, there - same)


def _common(most: int, is_common: Callable[[int, int], bool]) -> int:
    """The largest size up to ``most`` that is common; ``is_common`` compares what a size adds to a smaller one."""
    least = 0
    while least < most:
        size = (least + most + 1) // 2
        least, most = (size, most) if is_common(least, size) else (least, size - 1)
    return least
