"""Reliable handling of Ctrl-C.

``KeyboardInterrupt`` is raised at an arbitrary point of the run, where a ``finally`` may replace it by another
exception, as one in LibCST does. So it is also recorded, and checked between files. Processes that are just starting
would print a traceback: the signal is blocked until they run, and never reaches them.
"""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Result = TypeVar("Result")

_asked = threading.Event()
_delayed = threading.Event()


@contextmanager
def noticed() -> Iterator[None]:
    """Record each Ctrl-C; does nothing if the host has a handler of its own."""
    _asked.clear()
    usual = signal.default_int_handler
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is not usual:
        yield
        return
    signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)


def until_interrupted(results: Iterable[Result]) -> Iterator[Result]:
    """``results`` until Ctrl-C is pressed; then KeyboardInterrupt is raised."""
    for each in results:
        if _asked.is_set():
            raise KeyboardInterrupt
        yield each


@contextmanager
def held() -> Iterator[None]:
    """Delay Ctrl-C; processes that are started meanwhile never receive it. Only effective while it is ``noticed``."""
    if signal.getsignal(signal.SIGINT) is not _interrupt or threading.current_thread() is not threading.main_thread():
        yield
        return
    masks = hasattr(signal, "pthread_sigmask")  # not on Windows
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if masks else None
    _delayed.set()
    try:
        yield
    finally:
        _delayed.clear()
        if before is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if _asked.is_set():
        raise KeyboardInterrupt


def _interrupt(number: int, frame: Any) -> None:
    _asked.set()
    if not _delayed.is_set():
        signal.default_int_handler(number, frame)
