"""Sharing files among processes, where there are enough of them to pay for it."""

from __future__ import annotations

import gc
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from ctxlint.interruption import held

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Future, ProcessPoolExecutor
    from types import TracebackType

    from typing_extensions import Self

    _Begun = tuple[int, Future[list[Any]]]
    """How many items a process was given, and what they will become."""

Item = TypeVar("Item")
Result = TypeVar("Result")

WORTH_SHARING = 64
"""So many files at least; a process takes as long to start as some dozens of files to read."""

_MOST = 61 if sys.platform == "win32" else 256
"""So many processes at most: Windows waits for no more, and a slip of the finger after ``-j`` must not hurt."""

_CHUNK = 8
"""So many files at once at most: what is left for the end is cut small, so that all are ready at the same time."""


class Workers:
    """Processes that files are shared among: started when it pays, and kept until the end, with what they have read.

    A worker that dies takes nothing with it: what it did not finish is done in this process.
    """

    def __init__(self, jobs: int, prepare: Callable[[], None] | None = None) -> None:
        """``jobs`` is how many processes to use at most, 0 for one per processor; each does ``prepare`` first."""
        self._processes = min(jobs or _processors(), _MOST)
        self._prepare = prepare
        self._executor: ProcessPoolExecutor | None = None
        self._begun: list[_Begun] = []

    def __enter__(self) -> Self:
        """Nothing is started before there is something to do."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """After Ctrl-C, or when nobody wants the rest, do not wait for what the workers are at."""
        self._stop(at_once=kind is not None)

    def _start(self, files: int) -> None:
        """Let the processes get ready while this one goes on, no more than so many files keep busy."""
        processes = min(self._processes, files // _CHUNK)
        if self._executor is not None or processes < 2:
            return
        try:
            from concurrent.futures import ProcessPoolExecutor
            from multiprocessing import get_all_start_methods, get_context

            # Not `fork`: who calls this as a library may have threads, and a lock that one of them holds stays locked.
            method = "forkserver" if "forkserver" in get_all_start_methods() else "spawn"
            self._executor = ProcessPoolExecutor(
                processes, get_context(method), initializer=_start_worker, initargs=(self._prepare,)
            )
            with held():
                for _ in range(processes):
                    self._executor.submit(int)
        except (ImportError, OSError):  # a system without semaphores
            self._give_up()

    def begin(self, function: Callable[[Item], Result], items: Sequence[Item]) -> None:
        """Start on what the next ``map`` of the function will ask for, where that pays.

        ``items`` are those that are known so far.
        """
        if len(items) >= max(WORTH_SHARING, self._processes * _CHUNK):
            self._start(len(items))
        if self._executor is None:
            return
        from concurrent.futures.process import BrokenProcessPool

        begun = sum(count for count, _ in self._begun)
        chunks = [items[at : at + _CHUNK] for at in range(begun, len(items) - _CHUNK + 1, _CHUNK)]
        try:
            self._begun += self._submitted(function, chunks)
        except BrokenProcessPool:
            self._give_up()

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """``function`` of each item, in order."""
        if len(items) >= WORTH_SHARING:
            self._start(len(items))
        done = 0
        for result in self._shared(function, items):
            done += 1
            yield result
        yield from map(function, items[done:])

    def _shared(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """The results as far as the worker processes bring them."""
        begun, self._begun = self._begun, []
        if self._executor is None or len(items) < 2:
            return
        from concurrent.futures.process import BrokenProcessPool

        rest = items[sum(count for count, _ in begun) :]
        try:
            for _, each in [*begun, *self._submitted(function, _chunks(rest, self._processes))]:
                yield from each.result()
        except BrokenProcessPool:
            self._give_up()
        except KeyboardInterrupt:
            self._stop(at_once=True)
            raise

    def _submitted(self, function: Callable[[Item], Result], chunks: Iterable[Sequence[Item]]) -> list[_Begun]:
        assert self._executor is not None
        with held():  # this may start processes, too
            return [(len(chunk), self._executor.submit(_each, function, chunk)) for chunk in chunks]

    def _give_up(self) -> None:
        self._stop(at_once=True)
        self._processes = 1

    def _stop(self, *, at_once: bool) -> None:
        executor, self._executor = self._executor, None
        if executor is None:
            return
        with held():
            if at_once:
                _kill(executor)
            executor.shutdown()


def _kill(executor: ProcessPoolExecutor) -> None:
    """Put an end to the processes in the middle of what they do, which may be to say half a result.

    Nobody waits for the other half once the end of the pipe is closed that this process keeps for those it starts.
    """
    pool: Any = executor
    for process in list((pool._processes or {}).values()):  # noqa: SLF001  (public from Python 3.14 on)
        process.kill()
    with suppress(OSError):
        pool._result_queue._writer.close()  # noqa: SLF001  (there is no other way)


def _chunks(items: Sequence[Item], processes: int) -> Iterator[Sequence[Item]]:
    at = 0
    while at < len(items):
        size = max(1, min(_CHUNK, (len(items) - at) // (processes * 4)))
        yield items[at : at + size]
        at += size


def _each(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    return [function(item) for item in items]


def _start_worker(prepare: Callable[[], None] | None) -> None:
    """Leave Ctrl-C to the process that people see, and do not collect garbage in a short life."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()
    if prepare is not None:
        prepare()


def _processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
