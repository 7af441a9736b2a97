"""Sharing files among processes, where there are enough of them to pay for it."""

from __future__ import annotations

import gc
import os
import signal
from typing import TYPE_CHECKING, Callable, TypeVar

from ctxlint.interruption import held

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Item = TypeVar("Item")
Result = TypeVar("Result")

WORTH_SHARING = 200
"""So many files at least; a process takes as long to start as some dozens of files to read."""

_CHUNK = 8


def map_files(function: Callable[[Item], Result], items: Sequence[Item], jobs: int) -> Iterator[Result]:
    """``function`` of each item, in order. ``jobs`` is how many processes to use at most, 0 for one per processor.

    A worker that dies takes nothing with it: what it did not finish is done in this process.
    """
    processes = min(jobs or _processors(), len(items) // _CHUNK)
    if processes < 2 or len(items) < WORTH_SHARING:
        yield from map(function, items)
        return
    done = 0
    for result in _shared(function, items, processes):
        done += 1
        yield result
    yield from map(function, items[done:])


def _shared(function: Callable[[Item], Result], items: Sequence[Item], processes: int) -> Iterator[Result]:
    """The results as far as the worker processes bring them."""
    try:
        from concurrent.futures import ProcessPoolExecutor
        from concurrent.futures.process import BrokenProcessPool
        from multiprocessing import get_all_start_methods, get_context

        # Not `fork`: whoever calls this as a library may have threads, and a lock that one of them holds stays locked.
        method = "forkserver" if "forkserver" in get_all_start_methods() else "spawn"
        executor = ProcessPoolExecutor(processes, get_context(method), initializer=_start_worker)
    except (ImportError, OSError):  # a system without semaphores
        return
    try:
        chunks = [items[start : start + _CHUNK] for start in range(0, len(items), _CHUNK)]
        with held():  # this starts the processes, too
            submitted = [executor.submit(_each, function, chunk) for chunk in chunks]
        for each in submitted:
            yield from each.result()
    except BrokenProcessPool:
        pass
    except BaseException:  # Ctrl-C, or nobody wants the rest: do not wait for what the workers are at
        with held():
            for process in list((executor._processes or {}).values()):  # noqa: SLF001  (public from Python 3.14 on)
                process.kill()
            executor.shutdown()
        raise
    finally:
        executor.shutdown()


def _each(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    return [function(item) for item in items]


def _start_worker() -> None:
    """Leave Ctrl-C to the process that people see, and do not collect garbage in a short life."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()


def _processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
