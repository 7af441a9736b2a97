"""Distribution of files over processes, if there are enough to justify it."""

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
    """The number of items that a process received, and their future results."""

Item = TypeVar("Item")
Result = TypeVar("Result")

WORTH_SHARING = 64
"""The minimum number of files: starting a process takes as long as reading some dozens of files."""

_MOST = 61 if sys.platform == "win32" else 256
"""The maximum number of processes: Windows can wait for no more, and a typo after ``-j`` must not hurt."""

_CHUNK = 8
"""The maximum number of files at once; smaller chunks at the end let all processes finish together."""


class Workers:
    """Worker processes, started when it pays, and kept until the end with their caches.

    If a worker dies, nothing is lost: this process does its unfinished work. One thread per worker waits for its
    answers.
    """

    def __init__(self, jobs: int, prepare: Callable[[], None] | None = None) -> None:
        """``jobs`` is the maximum number of processes, 0 for one per processor; each calls ``prepare`` first."""
        self._count = min(jobs or processors(), _MOST)
        self._prepare = prepare
        self._processes: list[WorkerProcess] = []
        self._idle: SimpleQueue[WorkerProcess] | None = None
        self._threads: ThreadPoolExecutor | None = None
        self._begun: list[_Begun] = []
        self._given = 0
        """The number of items so far."""

    def __enter__(self) -> Self:
        """Nothing is started before there is work."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """After Ctrl-C, or when the rest is not needed, do not wait for unfinished work."""
        self._stop(at_once=kind is not None)

    def _start(self, files: int) -> None:
        """Start the processes in the background, no more than this number of files can occupy."""
        count = min(self._count, files // _CHUNK)
        if self._threads is not None or count < 2:
            return
        from concurrent.futures import ThreadPoolExecutor
        from queue import SimpleQueue

        from ctxlint.run.worker_process import WorkerProcess, can_copy, can_start

        if not can_start():
            self._give_up()
            return
        is_copy = can_copy()
        if is_copy and self._prepare is not None:
            self._prepare()
        self._idle = SimpleQueue()
        self._threads = ThreadPoolExecutor(count)
        try:
            with held():
                for _ in range(count):
                    process = WorkerProcess(None if is_copy else self._prepare, is_copy=is_copy)
                    self._processes.append(process)
                    self._idle.put(process)
        except Exception:  # noqa: BLE001  (no more processes are allowed, or this platform has none)
            self._give_up()

    @property
    def at_once(self) -> int:
        """A number of items that keeps all processes busy for much longer than the last one takes: many for many."""
        return 4 * self._count * (self._count - 1)

    def begin(self, function: Callable[[Item], Result], items: Sequence[Item], count: int) -> None:
        """Start on the items of the next ``map`` of the function, if that pays.

        ``items`` are those that are known so far, and ``count`` is the number of those of later ones, too.
        """
        if count >= max(WORTH_SHARING, self._count * _CHUNK):
            self._start(count)
        if self._threads is None:
            return
        begun = sum(count for count, _ in self._begun)
        chunks = [items[at : at + _CHUNK] for at in range(begun, len(items) - _CHUNK + 1, _CHUNK)]
        self._begun += self._submitted(function, chunks)

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """``function`` of each item, in order."""
        self._given += len(items)
        if self._given >= WORTH_SHARING:
            self._start(self._given)
        done = 0
        for result in self._shared(function, items):
            done += 1
            yield result
        yield from map(function, items[done:])

    def _shared(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """The results, as far as the worker processes deliver them."""
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
            return [(len(chunk), self._threads.submit(self._results_of, function, chunk)) for chunk in chunks]

    def _results_of(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """The results of one of the processes.

        Raises:
            Died: The process ended.
        """
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


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
