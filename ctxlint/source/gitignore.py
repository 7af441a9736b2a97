"""What git ignores, queried for each entry of a walk from the top down. Patterns are parsed by ``pathspec``.

A pattern without a slash needs only the name of an entry, and names repeat: answers are cached. Patterns that are a
literal name or path, or ``*`` and a suffix, are looked up; ``pathspec`` matches the few others.
"""

from __future__ import annotations

import os
import re
import warnings
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ctxlint.source.globs import with_slashes
from ctxlint.source.reading import Unreadable, read_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

_PART = r"[^\s/*?\\\[\]]+"
# Compiled at first use, because most runs need none of them.
_PLAIN = rf"!?(?:\*(?P<ending>{_PART})|/?(?P<whole>{_PART}(?:/{_PART})*))(?P<folder>/?)[ ]*"
"""A pattern that is ``*`` and a suffix, or a whole name or path."""
_FOLDERS_INSIDE = r"(?:/\*\*)+/(?=[ ]*$)"
"""The end of ``a/**/``: for git the folders in ``a``, for ``pathspec`` all of ``a``."""
_EVERY_FOLDER = r"(!?)/?(?:\*\*/)+(?:\*/)?[ ]*"
"""``**/`` and the like: ``pathspec`` matches only the first folder of a path."""
_ANYWHERE = r"\A(!?)/?\*\*/(?=[^/]+/?[ ]*$)"
"""The start of ``**/name``, which is ``name``."""
_CHOICE = r"(?<!\\)\[([a-zA-Z0-9]+)\]"
"""As in ``*.py[cod]``, which is three patterns."""
_START = r"\A[\w./-]+"
_WORD = r"[^\s*?/]+"
_UNCLEAR = r"[\[\\]"

# Files and patterns beyond these limits are skipped, as git skips what it cannot read: no project has them, and they
# would be slow.
_MOST_BYTES = 1_000_000
_LONGEST = 1000
_MOST_OTHERS = 2000
_MOST_ANY_FOLDERS = 2


def is_ignored(path: str, name: str, files: Sequence[IgnoreFile]) -> bool:
    """Whether git would ignore the entry at the absolute ``path``, which ends in ``name``; folders end in a slash.

    The last matching file of ``files`` decides. The folders above are not tested: a walk does not enter ignored ones,
    and explicit paths inside one are wanted.
    """
    for file in reversed(files):
        verdict = file.verdict(path, name)
        if verdict is not None:
            return verdict
    return False


def read_ignore_file(path: str, folder: str) -> IgnoreFile | None:
    """The patterns of a file for the content of ``folder``; None if it has none or cannot be read."""
    try:
        text = read_bytes(path, _MOST_BYTES).decode("utf-8-sig", "surrogateescape")
    except Unreadable:
        return None
    lines = [line for line in re.split(r"\r?\n", text) if line.strip() and line[0] != "#" and len(line) <= _LONGEST]
    return IgnoreFile(lines, folder) if lines else None


def ignore_files_above(folder: str) -> tuple[IgnoreFile, ...]:
    """``.git/info/exclude`` and the .gitignore files from the root of the repository to above ``folder``, in order.

    None outside a repository.
    """
    found: list[IgnoreFile | None] = []
    current = folder
    while not os.path.exists(os.path.join(current, ".git")):
        parent = os.path.dirname(current)
        if parent == current:
            return ()
        current = parent
        found.append(read_ignore_file(os.path.join(current, ".gitignore"), current))
    found.append(read_ignore_file(os.path.join(current, ".git", "info", "exclude"), current))
    return tuple(file for file in reversed(found) if file is not None)


class IgnoreFile:
    """The patterns of one file. Of all patterns that match an entry, the last one decides."""

    def __init__(self, lines: Sequence[str], folder: str) -> None:
        """Parse the lines that contain patterns, for a folder."""
        self._start = len(folder.rstrip("/\\")) + 1
        self._includes = [not line.startswith("!") for line in lines]
        numbered = list(enumerate(map(_normal, lines)))
        self._names = _Patterns([each for each in numbered if "/" not in _body(each[1])])
        paths = [each for each in numbered if "/" in _body(each[1])]
        self._paths, self._has_paths = _Patterns(paths), bool(paths)
        self._known: dict[str, int] = {}

    def verdict(self, path: str, name: str) -> bool | None:
        """Whether to ignore the entry, or None if no pattern matches it; folders end in a slash."""
        line = self._known.get(name)
        if line is None:
            line = self._known[name] = self._names.last_line(name)
        if self._has_paths:
            line = max(line, self._paths.last_line(with_slashes(path[self._start :])))
        return None if line < 0 else self._includes[line]


class _Other:
    """A pattern for ``pathspec``, tested on paths that begin with ``start`` and contain the words of the pattern."""

    def __init__(self, number: int, line: str) -> None:
        """Store the pattern and its line number. Most are never compiled: no path requires them."""
        body = _body(line)
        self.number = number
        self.start = "".join(re.findall(_START, body.lstrip("/"))[:1])
        self._line = line
        self._words = re.findall(_WORD, re.split(_UNCLEAR, body)[0])
        self._fits_inside = body.endswith("/**")  # matches the content of a folder, not the folder

    def fits(self, path: str) -> bool:
        """Whether it matches the path itself; ``pathspec`` also matches everything in a matching folder."""
        if not all(word in path for word in self._words) or self._pattern is None:
            return False
        bare = path.removesuffix("/")
        found = self._pattern.search(bare if self._fits_inside else path)
        if found is None:
            return False
        group = next((each for each in found.re.groupindex if each.startswith("ps_")), None)
        return group is None or found.end(group) in (-1, len(path))

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        from pathspec import GitIgnoreSpec

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of classes such as [[:alpha:]]
                patterns: list[Any] = list(GitIgnoreSpec.from_lines([self._line]).patterns)
        except (ValueError, re.error):  # git skips what it cannot parse
            return None
        if not patterns or patterns[0].include is None:
            return None
        regex = without_backtracking(patterns[0].regex.pattern)
        return re.compile(regex, patterns[0].regex.flags) if regex is not None else None


class _Patterns:
    """Patterns with their line numbers; the many plain names and suffixes are stored separately."""

    def __init__(self, lines: list[tuple[int, str]]) -> None:
        """Store the patterns, each with its line number, in order."""
        self._whole: dict[str, int] = {}
        self._endings: dict[str, int] = {}
        self._others: list[_Other] = []
        for number, line in lines:
            self._add(number, line)
        self._any_ending = tuple(self._endings)
        self._any_start = tuple({each.start for each in self._others})

    def _add(self, number: int, line: str) -> None:
        choice = re.search(_CHOICE, line)
        if choice is not None and line.count("[") == 1:
            for char in dict.fromkeys(choice[1]):
                self._add(number, line[: choice.start()] + char + line[choice.end() :])
            return
        plain = re.fullmatch(_PLAIN, line)
        if plain is None:
            if len(self._others) < _MOST_OTHERS:
                self._others.insert(0, _Other(number, line))
            return
        known = self._endings if plain["ending"] else self._whole
        for slash in ("/",) if plain["folder"] else ("", "/"):
            known[(plain["ending"] or plain["whole"]) + slash] = number

    def last_line(self, path: str) -> int:
        """The number of the last line that matches, or -1."""
        last = self._whole.get(path, -1)
        if path.endswith(self._any_ending):
            last = max(last, *(number for ending, number in self._endings.items() if path.endswith(ending)))
        if path.startswith(self._any_start):
            for other in self._others:
                if other.number < last:
                    break
                if path.startswith(other.start) and other.fits(path):
                    return other.number
        return last


_STAR = "[^/]*"
_FIXED = r"(?s:(?:\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[^\\\[\]()/$^.*+?|{}])*)"
"""A part of a regular expression that matches texts of one length only."""
_NEGATED = r"(?<!\\)\[\^(?!/\])"
"""The start of ``[!a]``, which matches a slash in ``pathspec``, but not in git."""


def without_backtracking(regex: str) -> str | None:
    """A regular expression of ``pathspec`` with at most quadratic time in the length of a path; None for others.

    What follows a star inside a name is matched at its first occurrence, as in ``globs``.
    """
    if regex.count(".+") > _MOST_ANY_FOLDERS:
        return None
    first, *pieces = re.sub(_NEGATED, "[^/", regex).split(_STAR)
    out = [first]
    for number, piece in enumerate(pieces, start=1):
        fixed = re.match(_FIXED, piece)
        if number < len(pieces) and fixed is not None and fixed.end() == len(piece):
            out.append(f"(?=(?P<_{number}>[^/]*?{piece}))(?P=_{number})")
        elif number == len(pieces) or (fixed is not None and piece[fixed.end()] == "/"):
            out.append(_STAR + piece)  # a slash ends what the star may match: there is only one way
        else:
            return None
    return "".join(out)


def _normal(line: str) -> str:
    """A pattern that means in ``pathspec`` what ``line`` means in git."""
    every = re.fullmatch(_EVERY_FOLDER, line)
    return f"{every[1]}*/" if every else re.sub(_ANYWHERE, r"\1", re.sub(_FOLDERS_INSIDE, "/**/*/", line))


def _body(line: str) -> str:
    """A pattern without its markers for negation and for folders."""
    return line.strip().removeprefix("!").rstrip("/")
