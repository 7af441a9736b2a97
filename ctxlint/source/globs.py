"""The globs of ``exclude``, ``extend-exclude`` and ``per-file-ignores``, with the same semantics as in ruff.

``*`` and ``?`` also match slashes; ``**/`` matches any number of folders; ``[a-z]``, ``[!a-z]`` and ``{a,b}`` are
alternatives. A glob without a slash matches any part of a path, one with a slash is relative to the root of the
configuration.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from pathlib import Path


_SPECIAL = frozenset("*?[]{},")


class Globs:
    """Globs compiled to be matched against many paths."""

    def __init__(self, globs: Sequence[str], root: str | Path) -> None:
        """Compile the globs; those with a slash are relative to ``root``."""
        self.root = with_slashes(os.path.abspath(root)).rstrip("/")
        slashed = [with_slashes(glob) for glob in globs]
        names = [glob for glob in slashed if glob and "/" not in glob]
        self._name = _any_of([("", glob) for glob in names if _SPECIAL.intersection(glob)])
        self._path = _any_of([self._anchored(glob.rstrip("/")) for glob in slashed if "/" in glob])
        self._names = {glob: True for glob in names if not _SPECIAL.intersection(glob)}

    def _anchored(self, glob: str) -> tuple[str, str]:
        """A glob with a slash, and the folder that it is relative to."""
        if os.path.isabs(glob):
            return "", glob
        base = self.root
        while True:
            if glob.startswith("./"):
                glob = glob[2:]
            elif glob.startswith("../"):
                glob, base = glob[3:], base.rpartition("/")[0]
            else:
                return base + "/", glob

    def fit(self, absolute: str, name: str) -> bool:
        """Whether a glob matches this very file or folder, not one above it. ``name`` is the last part of its path."""
        fits = self._names.get(name)
        if fits is None:
            fits = self._names[name] = self._name is not None and self._name.fullmatch(name) is not None
        return fits or (self._path is not None and self._path.fullmatch(with_slashes(absolute)) is not None)

    def fit_within(self, absolute: str) -> bool:
        """Whether a glob matches a path or a folder above it, up to the root.

        Folders above the root do not count: a checkout in a folder called ``dist`` is not build output.
        """
        path = with_slashes(absolute)
        start = len(self.root) + 1 if path.startswith(self.root + "/") else 1
        ends = [at for at in range(start, len(path)) if path[at] == "/"]
        return any(self.fit(path[:end], path[:end].rpartition("/")[2]) for end in [*ends, len(path)])


@lru_cache(maxsize=2048)
def globs_for(globs: tuple[str, ...], root: str) -> Globs:
    """The same Globs for the same arguments (cached)."""
    return Globs(globs, root)


def with_slashes(path: str) -> str:
    """A path, or a part of one, with slashes between its parts on every system."""
    return path if os.sep == "/" else path.replace(os.sep, "/")


# Semantics

_MOST = 1000
_LONGEST = 1000
_STAR, _FOLDERS = "*", "**/"


def check_globs(globs: Collection[str]) -> None:
    """Raise ValueError if globs are too many, too long, or expand to too many."""
    if len(globs) > _MOST:
        raise ValueError(f"expected at most {_MOST} globs, got {len(globs)}")
    for glob in globs:
        if len(glob) > _LONGEST:
            raise ValueError(f"expected globs of at most {_LONGEST} characters, got one of {len(glob)}")
        _without_braces(glob)


def _any_of(globs: Iterable[tuple[str, str]]) -> re.Pattern[str] | None:
    """One regular expression that matches whole texts composed of a prefix and a match of its glob."""
    expressions: list[str] = []
    for start, glob in globs:
        for tokens in _without_braces(glob):
            expressions.append(re.escape(start) + _expression(tokens, number=len(expressions)))
    return re.compile("|".join(expressions), re.DOTALL) if expressions else None


def _expression(tokens: Sequence[str], number: int) -> str:
    """A regular expression for the tokens of a glob. Its groups are named after ``number``.

    What follows a star is matched at its first occurrence: if the rest of the glob matches anywhere, it matches after
    that. So only the last star is ever retried, and the time is at most the product of the lengths of glob and text.
    """
    pieces = [""]
    for token in tokens:
        if token in (_STAR, _FOLDERS):
            pieces.append("(?<=/)" if token == _FOLDERS else "")
        else:
            pieces[-1] += token
    first, *between = pieces
    if not between:
        return first
    last = between.pop()
    # Python 3.10 has no atomic groups; a group in a lookahead is one.
    named = ((f"_{number}_{at}", each) for at, each in enumerate(between))
    return first + "".join(f"(?=(?P<{name}>.*?{each}))(?P={name})" for name, each in named) + f".*{last}"


def _tokens(glob: str) -> Iterator[str]:
    """The stars and braces of a glob unchanged, and a regular expression for each other character."""
    braces = at = 0
    while at < len(glob):
        char = glob[at]
        after = at + 1
        if glob.startswith(_FOLDERS, at) and (at == 0 or glob[at - 1] == "/"):
            yield _FOLDERS
            after = at + len(_FOLDERS)
        elif char == "*":
            yield _STAR
        elif char == "?":
            yield "."
        elif char == "[" and glob.find("]", at + 2) >= 0:
            after = glob.index("]", at + 2) + 1
            yield _choice(glob[at + 1 : after - 1])
        elif (char == "{" and glob.find("}", at) >= 0) or ((char in "},") and braces):
            braces += (char == "{") - (char == "}")
            yield char
        else:
            yield re.escape(char) if char != "," else r"\,"
        at = after
    yield from "}" * braces


def _without_braces(glob: str) -> list[tuple[str, ...]]:
    """The tokens of each expansion of a glob with braces.

    Raises:
        ValueError: There are too many.
    """
    open_braces: list[tuple[list[tuple[str, ...]], list[tuple[str, ...]]]] = []
    chosen: list[tuple[str, ...]] = []
    found: list[tuple[str, ...]] = [()]
    for token in _tokens(glob):
        if token == "{":
            open_braces.append((found, chosen))
            found, chosen = [()], []
        elif token == ",":
            chosen, found = chosen + found, [()]
        elif token == "}":
            before, around = open_braces.pop()
            found, chosen = [(*start, *each) for start in before for each in chosen + found], around
        else:
            found = [(*each, token) for each in found]
        if len(found) + len(chosen) > _MOST:
            raise ValueError(f"the braces in `{glob}` expand to more than {_MOST} globs")
    return found


def _choice(inside: str) -> str:
    negated = inside[0] in "!^"
    choice = "[" + ("^" if negated else "") + re.sub(r"([^\w-])", r"\\\1", inside[negated:]) + "]"
    try:
        re.compile(choice)
    except re.error:  # [z-a]
        return re.escape(f"[{inside}]")
    return choice
