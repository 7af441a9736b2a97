"""The cache of one project: a file that is read once, and rewritten as a whole at the end of a run.

It contains tables of records by name, see ``run``. A row may depend on a stamp: it is valid as long as the metadata of
a file is unchanged. Rows that no run has used for some time are dropped.

There are no locks. Each run writes a file of its own and moves it into place, so a reader finds either the old one or
the new one, complete; of two concurrent writers, one has worked for nothing. A file that cannot be read, does not have
the seal of the user's key, or was written by another version of ctxlint, counts as empty.
"""

from __future__ import annotations

import json
import os
import stat
import time
from contextlib import suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from ctxlint.cache.file_records import Reader, Refused, dump, load, reader
from ctxlint.cache.folder import KEPT_DAYS, SUFFIX, cache_file, prepare, user_folder
from ctxlint.cache.identity import identity
from ctxlint.named_tuples import NamedTuple
from ctxlint.source.boundary import is_inside
from ctxlint.source.reading import Unreadable, read_bytes
from ctxlint.source.writing import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_HEAD = b"ctxlint cache 4\n"
_SEAL_SIZE = 32
_LARGEST = 1 << 29
"""A larger file was not written by ctxlint."""

Record = TypeVar("Record")


class _Row(NamedTuple):
    """One serialised row. ``day`` is when it was last used, ``stamp`` what it depends on, if anything."""

    day: int
    stamp: tuple[int, ...]
    record: Any


class Table(Generic[Record]):
    """Records of one kind by name, each of them parsed on demand."""

    def __init__(self, rows: dict[str, Any], read: Reader, today: int) -> None:
        """``rows`` are the loaded data, of any shape: rows that ``read`` refuses are dropped on access."""
        self.changed = False
        self._rows = rows
        self._read = read
        self._today = today
        self._now: dict[str, Record] = {}

    def now(self, name: str) -> Record | None:
        """The record with this name that was returned or stored in this run."""
        return self._now.get(name)

    def get(self, name: str, stamp: tuple[int, ...] = ()) -> Record | None:
        """The record with this name; None if there is none, or if its stamp differs."""
        row = self._rows.get(name)
        if row is None:
            return None
        try:
            day, seen, value = row
            if list(seen) != list(stamp):
                return None
            found = self._now[name] = cast("Record", self._read(value) if type(row) is list else value)
        except (Refused, TypeError, ValueError):
            del self._rows[name]
            return None
        if day != self._today:
            self.put(name, found, stamp)
        return found

    def forget_now(self) -> None:
        """Check stamps again."""
        self._now = {}

    def put(self, name: str, record: Record, stamp: tuple[int, ...] = ()) -> None:
        """Store a record."""
        self._now[name] = record
        self._rows[name] = _Row(self._today, stamp, record)
        self.changed = True

    def replace(self, name: str, record: Record) -> None:
        """Replace a record that was returned or stored in this run, keeping its stamp."""
        self.put(name, record, tuple(self._rows[name][1]))

    def trim(self, most: int) -> None:
        """Drop the rows that were stored first, except for this number of them."""
        for name in list(self._rows)[:-most]:
            del self._rows[name]

    def fresh(self) -> dict[str, Any]:
        """The rows that were used recently."""
        oldest = self._today - KEPT_DAYS
        return {name: row for name, row in self._rows.items() if _day_of(row) >= oldest}


def _day_of(row: Any) -> int:
    """When a row was last used; long ago if it is invalid."""
    return row[0] if isinstance(row, (list, _Row)) and len(row) == 3 and type(row[0]) is int else 0


class Store:
    """The cache of one project."""

    def __init__(self, folder: str, root: str, key: bytes) -> None:
        """Read the file."""
        self._folder = folder
        self._root = root
        self._key = key
        self._path = cache_file(folder, root)
        self._today = int(time.time() // 86_400)
        self._loaded = _tables_in(self._path, self._head, key)
        self._tables: dict[str, Table[Any]] = {}

    def table(self, name: str, kind: type[Record]) -> Table[Record]:
        """The table with this name, whose records are of this kind."""
        if name not in self._tables:
            rows = self._loaded.pop(name, {})
            self._tables[name] = Table(rows if isinstance(rows, dict) else {}, reader(kind), self._today)
        return self._tables[name]

    def write(self) -> None:
        """Write the changes, if any. Errors of a read-only folder are ignored."""
        if not any(each.changed for each in self._tables.values()):
            return
        body = dump({**self._loaded, **{name: each.fresh() for name, each in self._tables.items()}})
        head = self._head()
        with suppress(OSError):
            prepare(self._folder)
            write_whole(self._path, b"".join([head, _seal(head, body, self._key), body]), mode=0o600)
            for each in self._tables.values():
                each.changed = False

    def _head(self) -> bytes:
        """The header of the file: its user, its project, and the code that wrote it."""
        return _HEAD + json.dumps(os.path.realpath(self._root)).encode() + b"\n" + identity().encode() + b"\n"


class MemoryStore(Store):
    """A cache that is not stored on disk: for a long-lived process, such as the language server."""

    def __init__(self) -> None:
        """Start empty."""
        self._today = int(time.time() // 86_400)
        self._loaded = {}
        self._tables = {}

    def write(self) -> None:
        """Does nothing."""


def cache_files_under(folder: str) -> Iterator[str]:
    """The user's cache files for projects below ``folder``, in order."""
    cache, top = user_folder(), os.path.realpath(folder)
    if cache is None or not os.path.isdir(cache):
        return
    for name in sorted(os.listdir(cache)):
        path = os.path.join(cache, name)
        root = root_in(path) if name.endswith(SUFFIX) else None
        if root is not None and is_inside(root, top):
            yield path


def root_in(path: str) -> str | None:
    """The project of a cache file; None for any other file."""
    try:
        with open(path, "rb") as file:
            first, second = file.readline(len(_HEAD)), file.readline(1 << 16)
        root = json.loads(second) if first == _HEAD else None
    except (OSError, ValueError, RecursionError):
        return None
    return root if isinstance(root, str) else None


def _tables_in(path: str, expected_head: Callable[[], bytes], key: bytes) -> dict[str, Any]:
    """The tables that the same code wrote for this user; empty for any other content, or if there is no file."""
    try:
        status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST:
            return {}
        data = read_bytes(path)
    except (OSError, Unreadable):
        return {}
    head = expected_head()
    seal, body = data[len(head) : len(head) + _SEAL_SIZE], data[len(head) + _SEAL_SIZE :]
    if not data.startswith(head) or seal != _seal(head, body, key):
        return {}
    try:
        tables = load(body)
    except Refused:
        return {}
    return tables if isinstance(tables, dict) else {}


def _seal(head: bytes, body: bytes, key: bytes) -> bytes:
    """A keyed digest of the content. Nobody can try it often enough for a timing attack."""
    sealed = blake2b(head, digest_size=_SEAL_SIZE, key=key)
    sealed.update(body)
    return sealed.digest()
