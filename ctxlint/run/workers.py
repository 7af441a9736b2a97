"""Sharing files among processes, where there are enough of them to pay for it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, TypeVar

from ctxlint.run.interruption import held

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Future, ThreadPoolExecutor
    from queue import SimpleQueue
    from types import TracebackType

    from typing_extensions import Self

    from ctxlint.run.worker_process import WorkerProcess

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

    A worker that dies takes nothing with it: what it did not finish is done in this process. A thread for each waits
    for its answers, with one of those that are idle.
    """

    def __init__(self, jobs: int, prepare: Callable[[], None] | None = None) -> None:
        """``jobs`` is how many processes to use at most, 0 for one per processor; each does ``prepare`` first."""
        self._count = min(jobs or _processors(), _MOST)
        self._prepare = prepare
        self._processes: list[WorkerProcess] = []
        self._idle: SimpleQueue[WorkerProcess] | None = None
        self._threads: ThreadPoolExecutor | None = None
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
        count = min(self._count, files // _CHUNK)
        if self._threads is not None or count < 2:
            return
        from concurrent.futures import ThreadPoolExecutor
        from queue import SimpleQueue

        from ctxlint.run.worker_process import WorkerProcess, can_start

        if not can_start():
            self._give_up()
            return
        self._idle = SimpleQueue()
        self._threads = ThreadPoolExecutor(count)
        try:
            with held():
                for _ in range(count):
                    process = WorkerProcess(self._prepare)
                    self._processes.append(process)
                    self._idle.put(process)
        except OSError:  # no more processes are allowed
            self._give_up()

    def begin(self, function: Callable[[Item], Result], items: Sequence[Item]) -> None:
        """Start on what the next ``map`` of the function will ask for, where that pays.

        ``items`` are those that are known so far.
        """
        if len(items) >= max(WORTH_SHARING, self._count * _CHUNK):
            self._start(len(items))
        if self._threads is None:
            return
        begun = sum(count for count, _ in self._begun)
        chunks = [items[at : at + _CHUNK] for at in range(begun, len(items) - _CHUNK + 1, _CHUNK)]
        self._begun += self._submitted(function, chunks)

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
        if self._threads is None or len(items) < 2:
            return
        from ctxlint.run.worker_process import Died

        rest = items[sum(count for count, _ in begun) :]
        try:
            for _, each in [*begun, *self._submitted(function, _chunks(rest, self._count))]:
                yield from each.result()
        except Died:
            self._give_up()
        except KeyboardInterrupt:
            self._stop(at_once=True)
            raise

    def _submitted(self, function: Callable[[Item], Result], chunks: Iterable[Sequence[Item]]) -> list[_Begun]:
        assert self._threads is not None
        with held():  # this starts threads
            return [(len(chunk), self._threads.submit(self._asked, function, chunk)) for chunk in chunks]

    def _asked(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """What one of the processes makes of the items. Raises Died."""
        assert self._idle is not None
        process = self._idle.get()
        try:
            return process.ask(function, items)
        finally:
            self._idle.put(process)

    def _give_up(self) -> None:
        self._stop(at_once=True)
        self._count = 1

    def _stop(self, *, at_once: bool) -> None:
        threads, self._threads = self._threads, None
        processes, self._processes = self._processes, []
        if threads is None:
            return
        with held():
            if at_once:
                for process in processes:
                    process.kill()
            threads.shutdown(cancel_futures=at_once)
            for process in processes:
                process.close()


def _chunks(items: Sequence[Item], processes: int) -> Iterator[Sequence[Item]]:
    at = 0
    while at < len(items):
        size = max(1, min(_CHUNK, (len(items) - at) // (processes * 4)))
        yield items[at : at + size]
        at += size


def _processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
