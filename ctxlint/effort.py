"""Limits of work per class. Steps are counted instead of time, so that a file gets the same result everywhere.

A class that costs more than any that people write is given up, before a small malicious file can take unlimited time or
memory. The loops that can multiply count their steps: expressions evaluated, nodes visited, states and sequences
copied, events compared. A step takes about a microsecond on a typical processor.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    Result = TypeVar("Result")

STEPS_OF_A_CLASS = 800_000
"""For the analysis of one class, and again for its rules."""

STEPS_OF_A_FILE = 1_200_000
"""For the analysis of all classes of a file, and again for their rules."""

STEPS_OF_FIXES = 1_000_000
"""For fixing a file: no further rounds, each of which analyses the file again, are started after that."""


class EffortExceeded(Exception):
    """The steps are used up."""


class _Steps(threading.local):
    """The steps left for the current work of this thread."""

    left = 1 << 62
    spent = 0
    """All steps ever spent on the files of this thread."""


steps = _Steps()


def spend(count: int = 1) -> None:
    """Count some steps of work.

    Raises:
        TooComplex: Fewer are left.
    """
    steps.left = left = steps.left - count  # each access to a thread's own attribute takes time
    if left < 0:
        raise EffortExceeded


def limited(count: int, work: Callable[[], Result]) -> tuple[Result | None, int | None]:
    """The result of some work that takes ``count`` steps at most, and what it took; None for both if it takes more.

    The caller is not charged.
    """
    around, steps.left = steps.left, count
    try:
        return work(), count - steps.left
    except EffortExceeded:
        return None, None
    finally:
        steps.spent += count - max(steps.left, 0)
        steps.left = around


class Effort:
    """The steps left for one file, and the limit for each class in it."""

    def __init__(self, of_a_file: int = STEPS_OF_A_FILE, of_a_class: int = STEPS_OF_A_CLASS) -> None:
        """Start with all of them left."""
        self.left = of_a_file
        self.of_a_class = of_a_class
        self.spent: dict[object, int] = {}

    def on(self, subject: object = None) -> _Work:
        """Work on a class; includes what was spent on the same ``subject`` before."""
        return _Work(self, subject)

    def charge(self, subject: object, count: int) -> bool:
        """Count steps of work that was done before; False if they are not left, so that it has to be done again."""
        if count > min(self.left, self.of_a_class - self.spent.get(subject, 0)):
            return False
        self.left -= count
        steps.spent += count
        self.spent[subject] = self.spent.get(subject, 0) + count
        return True


class _Work:
    """A context in which steps are taken from an ``Effort``. Every rule enters one for every class."""

    __slots__ = ("_around", "_effort", "_given", "_subject")

    def __init__(self, effort: Effort, subject: object) -> None:
        self._effort = effort
        self._subject = subject

    def __enter__(self) -> None:
        effort, subject = self._effort, self._subject
        self._around = steps.left
        left = effort.left
        if subject is not None:
            left = min(left, effort.of_a_class - effort.spent.get(subject, 0))
        self._given = steps.left = left

    def __exit__(self, *_exception: object) -> None:
        effort, subject = self._effort, self._subject
        spent = self._given - max(steps.left, 0)
        effort.left -= spent
        steps.spent += spent
        effort.spent[subject] = effort.spent.get(subject, 0) + spent
        steps.left = self._around
