"""One cache: a file that is read once, and written anew as a whole at the end of a run.

It holds two things. What the bytes of each file say, as long as the system says that the file is as it was: whether it
holds a candidate, whether it mentions what a run looked for, and what stands for its content. And what was found in a
file, as long as its content is the same, its settings are, what other files say of it, and the content of all that its
imports lead to.

Nothing is locked. Each run writes a file of its own and moves it into place, so a reader finds the old one or the new
one, whole; of two that write at once, one has worked for nothing. What cannot be read, is not ours, or was written by
another ctxlint, counts as empty.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from ctxlint.cache.folder import IGNORE_FILE, RESULTS_FILE, TAG, TAG_FILE
from ctxlint.cache.identity import identity
from ctxlint.cache.packed import Refused, pack_table, unpack_table
from ctxlint.cache.stamp import Stamp, digest, stamp_at

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEAD = b"ctxlint cache 3\n"
_KEPT_DAYS = 30
_KEPT_FINDINGS = 8
"""For each file: it is judged for itself, and again with what others say, and perhaps under other settings."""


class Seen(NamedTuple):
    """What the bytes of a file say, while the system says that it is as it was. Its shape is that of the table."""

    stamp: tuple[int, ...]
    day: int
    candidate: bool
    content: bytes | None = None
    """What stands for it, where somebody asked."""
    answers: tuple[tuple[bytes, bool], ...] = ()
    """By the names that were looked for: whether the file uses one. Most files share all answers."""


class Kept(NamedTuple):
    """What was found in a file. ``key`` is what was asked, ``read`` and ``look_ups`` what the answer hangs on.

    A look-up is the folder of a file, what it imports, and the file that this leads to, if any.
    """

    key: bytes
    read: tuple[tuple[str, bytes | None], ...]
    look_ups: tuple[tuple[tuple[str, str], str | None], ...]
    packed: bytes


class Store:
    """The cache in one folder."""

    def __init__(self, folder: str) -> None:
        """Read what is there."""
        self.folder = folder
        self.today = int(time.time() // 86_400)
        self._path = os.path.join(folder, RESULTS_FILE)
        self._changed = False
        table = _table_in(self._path) or {"seen": {}, "found": {}}
        self._seen: dict[str, Any] = table["seen"]
        self._found: dict[str, Any] = table["found"]
        self._now: dict[str, Seen] = {}

    # What bytes say

    def now(self, path: str) -> Seen | None:
        """What is known of the file with this absolute path, which was asked for with its stamp in this run."""
        return self._now.get(path)

    def seen(self, path: str, stamp: Stamp) -> Seen | None:
        """What is known of the file with this absolute path; None where it was not seen as it is now."""
        kept = self._seen.get(path)
        if kept is None or kept[0] != stamp:
            return None
        found = self._now[path] = Seen(*kept)
        if found.day != self.today:
            self.see(path, found._replace(day=self.today))
        return found

    def see(self, path: str, seen: Seen) -> None:
        """Remember what the bytes of a file say."""
        self._now[path] = seen
        self._seen[path] = tuple(seen)
        self._changed = True

    # Findings

    def kept(self, path: str, key: bytes) -> Iterator[Kept]:
        """What was found in the file with this absolute path when the same was asked, the newest first."""
        for found in self._found.get(path, ()):
            if found[0] == key:
                if found[4] != self.today:
                    self._changed = True
                    self._keep(path, Kept(*found[:4]))
                yield Kept(*found[:4])

    def keep(self, path: str, kept: Kept) -> None:
        """Remember what was found."""
        self._keep(path, kept)
        self._changed = True

    def _keep(self, path: str, kept: Kept) -> None:
        others = [each for each in self._found.get(path, ()) if tuple(each[:3]) != tuple(kept[:3])]
        self._found[path] = [(*kept, self.today), *others][:_KEPT_FINDINGS]

    # The file

    def write(self) -> None:
        """Write what was learnt, if anything. A folder that cannot be written to is no reason to complain."""
        if not self._changed:
            return
        oldest = self.today - _KEPT_DAYS
        table = {
            "seen": {path: each for path, each in self._seen.items() if each[1] >= oldest},
            "found": {
                path: fresh
                for path, every in self._found.items()
                if (fresh := [each for each in every if each[4] >= oldest])
            },
        }
        body = pack_table(table)
        with suppress(OSError):
            _make(self.folder)
            _replace(self._path, b"".join([_HEAD, _own(), digest(body), body]))
            self._changed = False


def _own() -> bytes:
    return identity().encode() + b"\n"


def _table_in(path: str) -> dict[str, Any] | None:
    """The table that this very ctxlint wrote; None where there is none, or something else."""
    try:
        if stamp_at(path) is None:
            return None
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return None
    head = _HEAD + _own()
    checked = data[len(head) : len(head) + 16]
    body = data[len(head) + 16 :]
    if not data.startswith(head) or digest(body) != checked:
        return None
    try:
        table = unpack_table(body)
    except Refused:
        return None
    return table if all(isinstance(table.get(name), dict) for name in ("seen", "found")) else None


def _make(folder: str) -> None:
    os.makedirs(folder, exist_ok=True)
    for name, text in ((TAG_FILE, TAG), (IGNORE_FILE, "# Made by ctxlint.\n*\n")):
        path = os.path.join(folder, name)
        if not os.path.exists(path):
            _replace(path, text.encode())


def _replace(path: str, data: bytes) -> None:
    """Write a file so that nobody ever sees half of it."""
    own = f"{path}.{os.getpid()}.new"
    try:
        with open(own, "wb") as file:
            file.write(data)
        os.replace(own, path)
    finally:
        with suppress(OSError):
            os.remove(own)
