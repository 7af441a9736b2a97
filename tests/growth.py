"""How cost grows with the size of the input."""

from __future__ import annotations

import cProfile
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_TIMES = 4
_ATTEMPTS = 3
"""How often a time is measured: other load on the machine only ever adds to it."""


def calls_in(work: Callable[[], object], *, builtins: bool = True) -> int:
    """How many calls of Python functions, and of builtin ones from them, some work takes: the same on every machine."""
    profile = cProfile.Profile(builtins=builtins)
    profile.runcall(work)
    return sum(each.callcount for each in profile.getstats())


def is_linear(work: Callable[[int], Callable[[], object]], size: int) -> bool:
    """Whether four times as much is about four times the work, and not sixteen times."""
    work(size)()  # what is done once only
    return calls_in(work(_TIMES * size)) < 1.8 * _TIMES * calls_in(work(size))


def seconds_of(work: Callable[[], object]) -> float:
    """The processor time that some work takes."""
    start = time.process_time()
    work()
    return time.process_time() - start


def is_quick(work: Callable[[int], Callable[[], object]], size: int, most: float) -> bool:
    """Whether four times as much takes less than ``most`` times as long: for what goes on inside one call."""
    limit = most * max(min(seconds_of(work(size)) for _ in range(_ATTEMPTS)), 1e-4)
    return any(seconds_of(work(_TIMES * size)) < limit for _ in range(_ATTEMPTS))
