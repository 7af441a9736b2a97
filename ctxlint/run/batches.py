"""Which files are linted together: those of one project, or of several small ones.

A project is done before the next one begins, as the trees of its files are kept until then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.source.modules import root_of_file

if TYPE_CHECKING:
    from ctxlint.result import Candidate


class Batches:
    """Numbers the projects of files in the order in which they are added."""

    def __init__(self, at_once: int = 1) -> None:
        """A batch with fewer files than ``at_once`` is joined by the next project."""
        self._at_once = max(at_once, 1)
        self._number_of: dict[str, int] = {}
        self._sizes = [0]

    def add(self, candidate: Candidate) -> int:
        """The number of the batch of a file, which contains its whole project."""
        root = root_of_file(candidate.path)
        if root not in self._number_of:
            if self._sizes[-1] >= self._at_once:
                self._sizes.append(0)
            self._number_of[root] = len(self._sizes) - 1
        number = self._number_of[root]
        self._sizes[number] += 1
        return number
