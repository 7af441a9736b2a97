"""What git ignores, asked of each entry of a walk from the top down. Reading the patterns is left to ``pathspec``.

A pattern without a slash needs only the name of an entry, and names repeat: answers are kept. Patterns that are a name
or a path as it is, or ``*`` and an ending, are looked up; ``pathspec`` is asked about the few others.
"""

from __future__ import annotations

import os
import re
import warnings
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ctxlint.source.reading import Unreadable, read_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

_PART = r"[^\s/*?\\\[\]]+"
_PLAIN = re.compile(rf"!?(?:\*(?P<ending>{_PART})|/?(?P<whole>{_PART}(?:/{_PART})*))(?P<folder>/?)[ ]*")
"""A pattern that is ``*`` and the end of a name, or a whole name or path."""
_FOLDERS_INSIDE = re.compile(r"(?:/\*\*)+/(?=[ ]*$)")
"""The end of ``a/**/``: to git the folders in ``a``, to ``pathspec`` all of ``a``."""
_EVERY_FOLDER = re.compile(r"(!?)/?(?:\*\*/)+(?:\*/)?[ ]*")
"""``**/`` and the like: ``pathspec`` looks no further than to the first folder of a path."""
_ANYWHERE = re.compile(r"\A(!?)/?\*\*/(?=[^/]+/?[ ]*$)")
"""The start of ``**/name``, which is ``name``."""
_CHOICE = re.compile(r"(?<!\\)\[([a-zA-Z0-9]+)\]")
"""As in ``*.py[cod]``, which is three patterns."""
_START = re.compile(r"\A[\w./-]+")
_WORD = re.compile(r"[^\s*?/]+")
_UNCLEAR = re.compile(r"[\[\\]")

# What goes beyond these is passed over, as what git cannot read is: no project has it, and it would take long.
_MOST_BYTES = 1_000_000
_LONGEST = 1000
_MOST_OTHERS = 2000
_MOST_ANY_FOLDERS = 2


def is_ignored(path: str, name: str, files: Sequence[IgnoreFile]) -> bool:
    """Whether git would ignore the entry at the absolute ``path``, which ends in ``name``; folders end in a slash.

    Of ``files``, the last that says anything decides. The folders above are not asked: a walk does not get into those
    that are ignored, and what was asked for by name inside one is wanted.
    """
    for file in reversed(files):
        verdict = file.verdict(path, name)
        if verdict is not None:
            return verdict
    return False


def read_ignore_file(path: str, folder: str) -> IgnoreFile | None:
    """The patterns of a file for what is in ``folder``; None where it has none or cannot be read."""
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
    """The patterns of one file. Of all that fit an entry, the one on the last line decides."""

    def __init__(self, lines: Sequence[str], folder: str) -> None:
        """Take the lines that hold patterns, and the folder that they are about."""
        self._start = len(folder.rstrip("/\\")) + 1
        self._includes = [not line.startswith("!") for line in lines]
        numbered = list(enumerate(map(_normal, lines)))
        self._names = _Patterns([each for each in numbered if "/" not in _body(each[1])])
        paths = [each for each in numbered if "/" in _body(each[1])]
        self._paths, self._has_paths = _Patterns(paths), bool(paths)
        self._known: dict[str, int] = {}

    def verdict(self, path: str, name: str) -> bool | None:
        """Whether to ignore the entry, or None where no pattern fits it; folders end in a slash."""
        line = self._known.get(name)
        if line is None:
            line = self._known[name] = self._names.last_line(name)
        if self._has_paths:
            line = max(line, self._paths.last_line(path[self._start :]))
        return None if line < 0 else self._includes[line]


class _Other:
    """A pattern for ``pathspec``, asked about a path that begins with ``start`` and holds the words of the pattern."""

    def __init__(self, number: int, line: str) -> None:
        """Take the pattern and the number of its line. Most are never read: no path comes near them."""
        body = _body(line)
        self.number = number
        self.start = "".join(_START.findall(body.lstrip("/"))[:1])
        self._line = line
        self._words = _WORD.findall(_UNCLEAR.split(body)[0])
        self._fits_inside = body.endswith("/**")  # what is in a folder, not the folder

    def fits(self, path: str) -> bool:
        """Whether it fits the path itself; ``pathspec`` also says yes for what lies in a folder that it fits."""
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
        except (ValueError, re.error):  # git passes over what it cannot read
            return None
        if not patterns or patterns[0].include is None:
            return None
        regex = without_backtracking(patterns[0].regex.pattern)
        return re.compile(regex, patterns[0].regex.flags) if regex is not None else None


class _Patterns:
    """Patterns with the numbers of their lines, those that are mere names or endings kept apart: they are many."""

    def __init__(self, lines: list[tuple[int, str]]) -> None:
        """Take the patterns, each with the number of its line, in order."""
        self._whole: dict[str, int] = {}
        self._endings: dict[str, int] = {}
        self._others: list[_Other] = []
        for number, line in lines:
            self._add(number, line)
        self._any_ending = tuple(self._endings)
        self._any_start = tuple({each.start for each in self._others})

    def _add(self, number: int, line: str) -> None:
        choice = _CHOICE.search(line)
        if choice is not None and line.count("[") == 1:
            for char in dict.fromkeys(choice[1]):
                self._add(number, line[: choice.start()] + char + line[choice.end() :])
            return
        plain = _PLAIN.fullmatch(line)
        if plain is None:
            if len(self._others) < _MOST_OTHERS:
                self._others.insert(0, _Other(number, line))
            return
        known = self._endings if plain["ending"] else self._whole
        for slash in ("/",) if plain["folder"] else ("", "/"):
            known[(plain["ending"] or plain["whole"]) + slash] = number

    def last_line(self, path: str) -> int:
        """The number of the last line that fits, or -1."""
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
_FIXED = re.compile(r"(?:\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[^\\\[\]()/$^.*+?|{}])*", re.DOTALL)
"""A part of a regular expression that fits texts of one length only."""
_NEGATED = re.compile(r"(?<!\\)\[\^(?!/\])")
"""The start of ``[!a]``, which fits a slash to ``pathspec``, and none to git."""


def without_backtracking(regex: str) -> str | None:
    """A regular expression of ``pathspec``'s that takes no more than the square of a path's length; None for others.

    What follows a star inside a name is taken where it comes first, as in ``globs``.
    """
    if regex.count(".+") > _MOST_ANY_FOLDERS:
        return None
    first, *pieces = _NEGATED.sub("[^/", regex).split(_STAR)
    out = [first]
    for number, piece in enumerate(pieces, start=1):
        fixed = _FIXED.match(piece)
        if number < len(pieces) and fixed is not None and fixed.end() == len(piece):
            out.append(f"(?=(?P<_{number}>[^/]*?{piece}))(?P=_{number})")
        elif number == len(pieces) or (fixed is not None and piece[fixed.end()] == "/"):
            out.append(_STAR + piece)  # a slash ends what the star may take: there is one way only
        else:
            return None
    return "".join(out)


def _normal(line: str) -> str:
    """A pattern that means to ``pathspec`` what ``line`` means to git."""
    every = _EVERY_FOLDER.fullmatch(line)
    return f"{every[1]}*/" if every else _ANYWHERE.sub(r"\1", _FOLDERS_INSIDE.sub("/**/*/", line))


def _body(line: str) -> str:
    """A pattern without what says that it includes, or fits folders only."""
    return line.strip().removeprefix("!").rstrip("/")
