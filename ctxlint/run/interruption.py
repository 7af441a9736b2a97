"""Ctrl-C that cannot get lost.

``KeyboardInterrupt`` is raised wherever the run happens to be, and a ``finally`` there may raise something else in its
place, as one in LibCST does. So it is also written down, and asked for between files. Processes that are just being
started know nothing of that, and would tell of their end: it waits until they are there, and never reaches them.
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
_waits = threading.Event()


@contextmanager
def noticed() -> Iterator[None]:
    """Write down each Ctrl-C; does nothing for a host that has a handler of its own."""
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
    """``results`` as long as nobody has pressed Ctrl-C; KeyboardInterrupt is raised then."""
    for each in results:
        if _asked.is_set():
            raise KeyboardInterrupt
        yield each


@contextmanager
def held() -> Iterator[None]:
    """Let Ctrl-C wait; processes that are started meanwhile do not hear of it, ever. Only where it is ``noticed``."""
    if signal.getsignal(signal.SIGINT) is not _interrupt or threading.current_thread() is not threading.main_thread():
        yield
        return
    masks = hasattr(signal, "pthread_sigmask")  # not on Windows
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if masks else None
    _waits.set()
    try:
        yield
    finally:
        _waits.clear()
        if before is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if _asked.is_set():
        raise KeyboardInterrupt


def _interrupt(number: int, frame: Any) -> None:
    _asked.set()
    if not _waits.is_set():
        signal.default_int_handler(number, frame)
