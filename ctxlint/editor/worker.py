"""The only thread that analyses and fixes code, so that messages are answered meanwhile.

One suffices because all of it is Python; and because it is only one, the model is never accessed concurrently.
"""

from __future__ import annotations

import gc
import threading
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")

_IDLE_SECONDS = 0.5
_SECONDS_BEFORE_LATER = 0.15
_STACK = 1 << 24
"""Nested code needs stack, and threads have little on some systems."""
_JOBS_BETWEEN_COLLECTIONS = 50


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


class Worker:
    """Runs one job after the other, the most recent one first."""

    def __init__(self) -> None:
        """Start the thread. It ends with the process."""
        self._jobs: OrderedDict[object, _Job] = OrderedDict()
        self._later: OrderedDict[object, Callable[[], object]] = OrderedDict()
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

    def when_idle(self, work: Callable[[], object], key: object) -> None:
        """Run ``work``, which raises nothing, after a short idle time; one job for each ``key``."""
        with self._changed:
            self._later[key] = work

    def _run(self) -> None:
        # Syntax trees are large and contain no cycles: the collector would traverse them again and again for nothing.
        # Answering messages does create cycles; they are collected when the worker is idle.
        gc.disable()
        done = 0
        while True:
            with self._changed:
                while not self._jobs:
                    wait = _IDLE_SECONDS if done else None
                    if not self._changed.wait(_SECONDS_BEFORE_LATER if self._later else wait) and not self._jobs:
                        if self._later:
                            break
                        gc.collect()
                        done = 0
                job = self._jobs.popitem()[1] if self._jobs else _Job(self._later.popitem()[1], Future())
            job.run()
            done += 1
            if done % _JOBS_BETWEEN_COLLECTIONS == 0:
                gc.collect(0)
