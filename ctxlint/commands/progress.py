"""The progress of a long run, on a terminal, if tqdm is installed."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable, Iterator

    from ctxlint.result import FileResult

SECONDS = 1.0
"""A shorter run shows no progress."""


def is_wanted(options: Namespace) -> bool:
    """Whether progress should be shown."""
    return not (options.quiet or options.silent) and sys.stderr is not None and sys.stderr.isatty()


def shown(results: Iterable[FileResult], total: int) -> Iterator[FileResult]:
    """``results``, of which there will be ``total``, with a progress bar on standard error."""
    started = time.monotonic()
    bar: Any = None
    try:
        for done, each in enumerate(results, start=1):
            if bar is not None:
                bar.update()
            elif total and time.monotonic() - started >= SECONDS:
                bar = _bar(total, done)
                if bar is None:
                    total = 0
            yield each
    finally:
        if bar is not None:
            bar.close()


def _bar(total: int, done: int) -> Any:
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm(total=total, initial=done, unit="file", leave=False, file=sys.stderr)
