"""``ctxlint check --watch``: check again whenever a file changes, until Ctrl-C.

Each run is a separate process, without state from the previous ones.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from ctxlint.commands.output import say
from ctxlint.config.project_files import ConfigurationError
from ctxlint.run.worker_process import command

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ctxlint.config.configuration import Configuration

    Stamps = dict[str, tuple[int, int] | str | None]

SECONDS = 0.5
"""The interval between two polls of the files; longer if a poll takes long."""
_SHARE = 4
"""Polling takes at most this fraction of the time: one fourth."""
_CLEAR = "\033[H\033[2J\033[3J"

_PROGRAM = """\
from ctxlint.cli import program
sys.exit(program())
"""


def watch(arguments: Sequence[str], paths: Sequence[str], configured: Callable[[], Configuration]) -> int:
    """Run ``ctxlint check`` with these arguments, and again after each change; ends only with KeyboardInterrupt.

    ``configured`` reloads the configuration.
    """
    while True:
        before = _stamps(paths, configured)  # changes during the run count as new after it
        if sys.stdout.isatty():
            sys.stdout.write(_CLEAR)
            sys.stdout.flush()
        _run(arguments)
        say(f"[{time.strftime('%H:%M:%S')}] Watching for file changes. Press Ctrl-C to stop.")
        _wait(before, paths, configured)


def _wait(before: Stamps, paths: Sequence[str], configured: Callable[[], Configuration]) -> None:
    pause = SECONDS
    while True:
        time.sleep(pause)
        started = time.monotonic()
        if _stamps(paths, configured) != before:
            return
        pause = max(SECONDS, (_SHARE - 1) * (time.monotonic() - started))


def _run(arguments: Sequence[str]) -> None:
    subprocess.run([*command(_PROGRAM), "check", *arguments], check=False)


def _stamps(paths: Sequence[str], configured: Callable[[], Configuration]) -> Stamps:
    """Size and time of each file that would be read, and of the configuration; and the error in the latter, if any."""
    from ctxlint.run.pipeline import files_under

    stamps: Stamps = {}
    try:
        configuration = configured()
        for path in files_under(paths, configuration):
            stamps[path] = _stamp(path)
            file = configuration.settings_for(os.path.dirname(path)).config_file
            if file is not None and file not in stamps:
                stamps[file] = _stamp(file)
    except ConfigurationError as error:
        stamps[""] = str(error)
    return stamps


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns
