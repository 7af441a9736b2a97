"""Whether a file is unchanged: by its metadata, and by its content."""

from __future__ import annotations

import os
import stat
import time

from ctxlint.named_tuples import NamedTuple

_SETTLED = 2_000_000_000
"""After so many nanoseconds without a change, every file system shows the next change in the times of a file."""


class Stamp(NamedTuple):
    """The metadata of a regular file. Every change of the file changes it, except within one tick of the clock."""

    size: int
    modified: int
    changed: int
    number: int

    @property
    def is_settled(self) -> bool:
        """Whether the file has been unchanged for so long that another change cannot go unnoticed."""
        now = time.time_ns()
        return all(abs(now - each) > _SETTLED for each in (self.modified, self.changed))


def stamp_of(entry: os.DirEntry[str]) -> Stamp | None:
    """The stamp of a file in a listed folder, following links; None for anything else."""
    try:
        return _stamp(entry.stat() if os.name == "posix" else os.stat(entry.path))  # on Windows, a listing may be late
    except OSError:
        return None


def stamp_at(path: str) -> Stamp | None:
    """The stamp of the file at ``path``, following links; None for anything else."""
    try:
        return _stamp(os.stat(path))
    except (OSError, ValueError):
        return None


def _stamp(status: os.stat_result) -> Stamp | None:
    if not stat.S_ISREG(status.st_mode):
        return None
    return Stamp(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def digest(data: bytes) -> bytes:
    """The digest of a file's content."""
    from hashlib import blake2b

    return blake2b(data, digest_size=16).digest()
