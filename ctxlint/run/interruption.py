"""Reliable handling of Ctrl-C.

``KeyboardInterrupt`` is raised at an arbitrary point of the run, where a ``finally`` may replace it by another
exception, as one in LibCST does. So it is also recorded, and checked between files. Processes that are just starting
would print a traceback: the signal is blocked until they run, and never reaches them.
"""

from __future__ import annotations

import signal
from _thread import get_ident  # importing ``threading`` takes a millisecond of every run
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Result = TypeVar("Result")


class _State:
    """What the handler knows; Python runs it in the main thread."""

    asked = False
    delayed = False
    thread = 0
    """The main thread, while Ctrl-C is ``noticed``."""


@contextmanager
def noticed() -> Iterator[None]:
    """Record each Ctrl-C; does nothing if the host has a handler of its own, and in other threads than the main one."""
    _State.asked = False
    usual = signal.default_int_handler
    try:
        noticing = signal.getsignal(signal.SIGINT) is usual and signal.signal(signal.SIGINT, _interrupt) is usual
    except ValueError:  # not the main thread
        noticing = False
    if not noticing:
        yield
        return
    _State.thread = get_ident()
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)


def until_interrupted(results: Iterable[Result]) -> Iterator[Result]:
    """``results`` until Ctrl-C is pressed; then KeyboardInterrupt is raised."""
    for each in results:
        if _State.asked:
            raise KeyboardInterrupt
        yield each


@contextmanager
def held() -> Iterator[None]:
    """Delay Ctrl-C; processes that are started meanwhile never receive it. Only effective while it is ``noticed``."""
    if signal.getsignal(signal.SIGINT) is not _interrupt or _State.thread != get_ident():
        yield
        return
    masks = hasattr(signal, "pthread_sigmask")  # not on Windows
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if masks else None
    _State.delayed = True
    try:
        yield
    finally:
        _State.delayed = False
        if before is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if _State.asked:
        raise KeyboardInterrupt


def _interrupt(number: int, frame: Any) -> None:
    _State.asked = True
    if not _State.delayed:
        signal.default_int_handler(number, frame)
