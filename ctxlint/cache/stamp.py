"""Whether a file is as it was: by what the system says of it, and by what is in it."""

from __future__ import annotations

import os
import stat
import time
from typing import NamedTuple

_SETTLED = 2_000_000_000
"""After so many nanoseconds without a change, the next change shows in the times of a file on every file system."""


class Stamp(NamedTuple):
    """What the system says of a regular file. Whoever changes it changes this, except within one tick of the clock."""

    size: int
    modified: int
    changed: int
    number: int

    @property
    def is_settled(self) -> bool:
        """Whether the file has been as it is for so long that another change could not go unnoticed."""
        return abs(time.time_ns() - max(self.modified, self.changed)) > _SETTLED


def stamp_of(entry: os.DirEntry[str]) -> Stamp | None:
    """The stamp of a file that was met in a folder, links followed; None for anything else."""
    try:
        return _stamp(entry.stat() if os.name == "posix" else os.stat(entry.path))  # on Windows, a listing may be late
    except OSError:
        return None


def stamp_at(path: str) -> Stamp | None:
    """The stamp of the file at ``path``, links followed; None for anything else."""
    try:
        return _stamp(os.stat(path))
    except (OSError, ValueError):
        return None


def _stamp(status: os.stat_result) -> Stamp | None:
    if not stat.S_ISREG(status.st_mode):
        return None
    return Stamp(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def digest(data: bytes) -> bytes:
    """What stands for the content of a file."""
    from hashlib import blake2b

    return blake2b(data, digest_size=16).digest()
