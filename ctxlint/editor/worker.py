"""The only thread that analyses and fixes code, so that messages are answered meanwhile.

One suffices because all of it is Python; and because it is only one, the model is never accessed concurrently.
"""

from __future__ import annotations

import gc
import threading
import time
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ctxlint.source.nesting import note_large_stack

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")

_SECONDS_BEFORE_LATER = 0.15
_STACK = 1 << 24
"""Nested code needs stack, and threads have little on some systems."""


@dataclass(frozen=True)
class _Job:
    work: Callable[[], Any]
    future: Future[Any]

    def run(self) -> None:
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            self.future.set_result(self.work())
        except BaseException as error:  # noqa: BLE001  (raised in the thread that waits)
            self.future.set_exception(error)


@dataclass(frozen=True)
class _Later:
    """Work to do when nothing else has been done for ``after`` seconds."""

    work: Callable[[], Any]
    asked: float
    after: float

    def time(self, since: float) -> float:
        """When to do it, if the last job ended at ``since``."""
        return max(self.asked, since) + self.after


class Worker:
    """Runs one job after the other, the most recent one first."""

    def __init__(self) -> None:
        """Start the thread. It ends with the process."""
        self._jobs: OrderedDict[object, _Job] = OrderedDict()
        self._later: OrderedDict[object, _Later] = OrderedDict()
        self._changed = threading.Condition()
        before = threading.stack_size(_STACK)
        threading.Thread(target=self._run, name="ctxlint", daemon=True).start()
        threading.stack_size(before)

    def submit(self, work: Callable[[], Result], key: object = None) -> Future[Result]:
        """Run ``work`` soon. A pending job with the same ``key`` serves both."""
        with self._changed:
            job = None if key is None else self._jobs.pop(key, None)
            if job is None:
                job = _Job(work, Future())
            self._jobs[object() if key is None else key] = job
            self._changed.notify()
        return job.future

    @property
    def is_needed(self) -> bool:
        """Whether a job waits for the one that is running."""
        return bool(self._jobs)

    def when_idle(self, work: Callable[[], object], key: object, after: float = _SECONDS_BEFORE_LATER) -> None:
        """Run ``work``, which raises nothing, after an idle time in seconds; one job for each ``key``."""
        with self._changed:
            self._later[key] = _Later(work, time.monotonic(), after)
            self._changed.notify()

    def _run(self) -> None:
        note_large_stack()
        garbage = _Garbage()
        since = time.monotonic()
        while True:
            with self._changed:
                job = self._next(since)
                if job is None:
                    times = [each.time(since) for each in self._later.values()]
                    times += [since + each for each in garbage.seconds()]
                    self._changed.wait(max(min(times) - time.monotonic(), 0.001) if times else None)
                    job = self._next(since)
            if job is not None:
                job.run()
                garbage.made()
                since = time.monotonic()
            else:
                garbage.collect(time.monotonic() - since)

    def _next(self, since: float) -> _Job | None:
        """The most recent job, otherwise one whose time has come; None for none. The last job ended at ``since``."""
        if self._jobs:
            return self._jobs.popitem()[1]
        now = time.monotonic()
        key = next((key for key, each in reversed(self._later.items()) if each.time(since) <= now), None)
        return None if key is None else _Job(self._later.pop(key).work, Future())


_SECONDS_BEFORE_YOUNG = 0.01
_SECONDS_BEFORE_ALL = 2.0
_MOST_JOBS = 10
_MANY_OBJECTS = 100_000


class _Garbage:
    """Collects garbage between jobs, so that no keystroke waits for it.

    Syntax trees are large and contain no cycles: the collector would traverse them again and again for nothing.
    Analysing code and answering messages does create cycles, which are collected in the next pause.
    """

    def __init__(self) -> None:
        gc.disable()
        self._jobs = 0
        """Those since the last collection of young objects."""
        self._some = False
        """Whether there were any since the last collection of all objects."""
        self._is_frozen = False

    def made(self) -> None:
        """A job has ended."""
        self._jobs += 1
        self._some = True
        if self._jobs >= _MOST_JOBS:
            self._collect_young()

    def seconds(self) -> list[float]:
        """The lengths of the pauses in which there is something to collect."""
        return [_SECONDS_BEFORE_YOUNG] * bool(self._jobs) + [_SECONDS_BEFORE_ALL] * self._some

    def collect(self, pause: float) -> None:
        """Collect what a pause of these seconds is long enough for."""
        if self._some and pause >= _SECONDS_BEFORE_ALL:
            gc.collect()
            if not self._is_frozen:  # what was imported, with the first documents, is not traversed any more
                gc.freeze()
            self._jobs, self._some, self._is_frozen = 0, False, True
        elif self._jobs and pause >= _SECONDS_BEFORE_YOUNG:
            self._collect_young()

    def _collect_young(self) -> None:
        self._jobs = 0
        if gc.get_count()[0] < _MANY_OBJECTS:
            gc.collect(0)
        else:  # a document was opened: make them old, without traversing them
            gc.freeze()
            gc.unfreeze()
            self._is_frozen = False
