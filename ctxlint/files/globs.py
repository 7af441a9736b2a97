"""The globs of ``exclude``, ``extend-exclude`` and ``per-file-ignores``, with the meaning that ruff gives them.

``*`` and ``?`` take slashes too; ``**/`` takes any folders, or none; ``[a-z]``, ``[!a-z]`` and ``{a,b}`` choose. A glob
without a slash fits any part of a path, one with a slash is relative to the root of the configuration.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


_SPECIAL = frozenset("*?[]{},")


class Globs:
    """Globs made ready to be asked about many paths."""

    def __init__(self, globs: Sequence[str], root: str | Path) -> None:
        """Take the globs, and the folder that those with a slash are relative to."""
        self.root = _slashed(os.path.abspath(root)).rstrip("/")
        slashed = [_slashed(glob) for glob in globs]
        names = [glob for glob in slashed if glob and "/" not in glob]
        self._name = _any_of([_expression(glob) for glob in names if _SPECIAL.intersection(glob)])
        self._path = _any_of([self._relative(glob.rstrip("/")) for glob in slashed if "/" in glob])
        self._names = {glob: True for glob in names if not _SPECIAL.intersection(glob)}

    def _relative(self, glob: str) -> str:
        if os.path.isabs(glob):
            return _expression(glob)
        base = self.root
        while True:
            if glob.startswith("./"):
                glob = glob[2:]
            elif glob.startswith("../"):
                glob, base = glob[3:], base.rpartition("/")[0]
            else:
                return re.escape(base + "/") + _expression(glob)

    def fit(self, absolute: str, name: str) -> bool:
        """Whether a glob fits this very file or folder, whatever it lies in. ``name`` is the last part of its path."""
        fits = self._names.get(name)
        if fits is None:
            fits = self._names[name] = self._name is not None and self._name.fullmatch(name) is not None
        return fits or (self._path is not None and self._path.fullmatch(_slashed(absolute)) is not None)

    def fit_within(self, absolute: str) -> bool:
        """Whether a glob fits a path or a folder that it is in, up to the root.

        What lies above the root does not count: a checkout in a folder called ``dist`` is no build result.
        """
        path = _slashed(absolute)
        start = len(self.root) + 1 if path.startswith(self.root + "/") else 1
        ends = [at for at in range(start, len(path)) if path[at] == "/"]
        return any(self.fit(path[:end], path[:end].rpartition("/")[2]) for end in [*ends, len(path)])


@lru_cache(maxsize=64)
def globs_for(globs: tuple[str, ...], root: str) -> Globs:
    """The same Globs for the same arguments."""
    return Globs(globs, root)


def _slashed(path: str) -> str:
    return path if os.sep == "/" else path.replace(os.sep, "/")


def _any_of(expressions: list[str]) -> re.Pattern[str] | None:
    return re.compile("|".join(expressions), re.DOTALL) if expressions else None


def _expression(glob: str) -> str:
    """A glob as a regular expression for the whole of a text."""
    out: list[str] = []
    braces = at = 0
    while at < len(glob):
        char = glob[at]
        after = at + 1
        if glob.startswith("**/", at) and (at == 0 or glob[at - 1] == "/"):
            out.append("(?:.*/)?")
            after = at + 3
        elif char in "*?":
            out.append(".*" if char == "*" else ".")
        elif char == "[" and "]" in glob[at + 2 :]:
            after = glob.index("]", at + 2) + 1
            out.append(_choice(glob[at + 1 : after - 1]))
        elif char == "{" and "}" in glob[at:]:
            braces += 1
            out.append("(?:")
        elif char == "}" and braces:
            braces -= 1
            out.append(")")
        elif char == "," and braces:
            out.append("|")
        else:
            out.append(re.escape(char))
        at = after
    return "".join(out) + ")" * braces


def _choice(inside: str) -> str:
    negated = inside[0] in "!^"
    choice = "[" + ("^" if negated else "") + re.sub(r"([^\w-])", r"\\\1", inside[negated:]) + "]"
    try:
        re.compile(choice)
    except re.error:  # [z-a]
        return re.escape(f"[{inside}]")
    return choice
