"""The import statements of files, extracted from their bytes: nothing is decoded or parsed."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ctxlint.named_tuples import NamedTuple
from ctxlint.patterns import pattern
from ctxlint.source.reading import read_bytes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_MOST_BYTES = 1 << 26
"""How much of a project to keep in memory during some searches."""


class Contents:
    """The content of files, for several searches in succession."""

    def __init__(self) -> None:
        """Nothing is read before the first request."""
        self._known: dict[str, bytes] = {}
        self._left = _MOST_BYTES

    def of(self, path: str) -> bytes:
        """The content of a file.

        Raises:
            Unreadable: The file cannot be read.
        """
        found = self._known.get(path)
        if found is None:
            found = read_bytes(path)
            if len(found) <= self._left:
                self._known[path] = found
                self._left -= len(found)
        return found


class Imports:
    """The import statements of the files of a run. Each file is read once, and many have the same ones."""

    def __init__(self) -> None:
        """Nothing is read before the first request."""
        self._texts: dict[bytes, bytes] = {}
        self._by_path: dict[str, tuple[bytes, ...]] = {}
        self._words: dict[str, dict[bytes, bool]] = {}
        self.contents: Contents | None = None
        """What is kept of files meanwhile."""

    def content(self, path: str) -> bytes:
        """The content of a file.

        Raises:
            Unreadable: The file cannot be read.
        """
        return read_bytes(path) if self.contents is None else self.contents.of(path)

    def holds(self, path: str, word: bytes) -> bool:
        """Whether a file contains a word.

        Raises:
            Unreadable: The file cannot be read.
        """
        known = self._words.setdefault(path, {})
        if word not in known:
            if len(known) > _MOST_WORDS:
                known.clear()
            known[word] = word in self.content(path)
        return known[word]

    def may_lead_to(self, path: str, names: Collection[bytes]) -> bool:
        """Whether a file may import one of some names: not if it neither contains one nor imports with a star.

        Few names are searched for. If there were more, extracting the imports takes less time.

        Raises:
            Unreadable: The file cannot be read.
        """
        words = self._words.setdefault(path, {})
        if path in self._by_path or len(words) + len(names) > _FEW:
            return True
        if _STARRED not in words:
            words[_STARRED] = _STAR.search(self.content(path)) is not None
        return words[_STARRED] or any(self.holds(path, each) for each in names)

    def of_file(self, path: str) -> tuple[bytes, ...]:
        """What looks like an import statement in a file, verbatim.

        Raises:
            Unreadable: The file cannot be read.
        """
        found = self._by_path.get(path)
        if found is None:
            texts = self._texts
            found = tuple(texts.setdefault(each, each) for each in imports_in(self.content(path)))
            self._by_path[path] = found
        return found


_STAR = pattern(rb"import[\s\\(]*\*")
_STARRED = b"import *"
_FEW = 8
_MOST_WORDS = 64


class Import(NamedTuple):
    """The relevant parts of one import statement.

    ``module`` is the last part of the name of the module that it imports from: empty if it imports modules, None for
    the package itself (``from . import ops``). ``words`` are those after ``import``; ``star``: a star is among them.
    """

    module: bytes | None
    words: frozenset[bytes]
    star: bool


@lru_cache(maxsize=65536)
def read_import(statement: bytes) -> Import:
    """The content of a statement that ``imports_in`` found."""
    start, imported = (*_IMPORT.split(statement, maxsplit=1), b"")[:2]
    module: bytes | None = b""
    if b"from" in start:
        path = start.partition(b"from")[2].rstrip(_BLANK)
        module = (b"", *_words(path))[-1] if path[-1:] != b"." else None  # a string leaves no word at all
    return Import(module, frozenset(_words(imported)), b"*" in imported)


_BLANK = b" \t\r\n\\"
_IMPORT = pattern(rb"\bimport\b")
_BLANKS = bytes(code if code >= 128 or chr(code).isalnum() or code == 95 else 32 for code in range(256))


def _words(data: bytes) -> list[bytes]:
    return data.translate(_BLANKS).split()


def imports_in(data: bytes) -> Iterator[bytes]:
    """What looks like an import statement; a part of a string or comment may match, too."""
    at = data.find(b"import")
    while at >= 0:
        start = data.rfind(b"\n", 0, at) + 1
        while start > 1 and data[start - 2 : start] == _CONTINUED:
            start = data.rfind(b"\n", 0, start - 1) + 1
        start = max(data.rfind(b";", start, at) + 1, start)
        end = _line_end(data, at)
        bracket = data.find(b"(", at, end)
        if bracket >= 0:
            end = max(data.find(b")", bracket), end)
        semicolon = data.find(b";", at, end)
        end = semicolon if semicolon >= 0 else end
        before = data[start:at].strip()
        if not before or before.startswith(b"from") or before.endswith(b":") or b" from " in before:
            yield data[start:end]
        at = data.find(b"import", end)


_CONTINUED = b"\\\n"


def _line_end(data: bytes, at: int) -> int:
    """The end of the line, and of those that a backslash joins to it."""
    end = data.find(b"\n", at)
    while end > 0 and data[end - 1 : end + 1] == _CONTINUED:
        end = data.find(b"\n", end + 1)
    return end if end >= 0 else len(data)
