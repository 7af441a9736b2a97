"""Which files to look at: a walk over folders, what is left out of it, and what was asked for by name."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Union

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pathspec import GitIgnoreSpec

SUFFIXES = (".py", ".pyi")
"""The endings of the files that a walk picks up; a file that is named is taken whatever its ending."""

DEFAULT_EXCLUDE = (
    ".bzr",
    ".direnv",
    ".eggs",
    ".git",
    ".git-rewrite",
    ".hg",
    ".ipynb_checkpoints",
    ".mypy_cache",
    ".nox",
    ".pants.d",
    ".pyenv",
    ".pytest_cache",
    ".pytype",
    ".ruff_cache",
    ".svn",
    ".tox",
    ".venv",
    ".vscode",
    "__pypackages__",
    "_build",
    "buck-out",
    "dist",
    "node_modules",
    "site-packages",
    "venv",
)
"""Folders that nobody wants linted, as ruff leaves them out."""


@dataclass(frozen=True)
class Found:
    """A file to read. ``explicit`` says that it was named, not met on a walk."""

    path: str
    explicit: bool = False


@dataclass(frozen=True)
class Skipped:
    """Something that is left out, and why."""

    path: str
    reason: str


@dataclass(frozen=True)
class Missing:
    """A path that was asked for and is not there."""

    path: str


Result = Union[Found, Skipped, Missing]


def find_files(
    paths: Sequence[str],
    *,
    exclude: Sequence[str],
    extend_exclude: Sequence[str],
    root: str | Path,
    force_exclude: bool = False,
    respect_gitignore: bool = True,
) -> Iterator[Result]:
    """What is under ``paths``, each file once, in sorted order within each folder; names as the caller wrote them.

    ``exclude`` and ``extend_exclude`` are globs: one without a slash fits any part of a path, one with a slash is
    relative to ``root``. A file that is named is taken even where it is excluded, unless ``force_exclude``. Links to
    files are followed, links to folders are not. ``.gitignore`` files count from the root of the repository down.
    """
    walk = _Walk([*exclude, *extend_exclude], root, respect_gitignore)
    for path in paths:
        if os.path.isdir(path):
            if force_exclude and is_excluded(path, walk.globs, root):
                yield Skipped(path, "excluded")
            else:
                yield from walk.folder(path)
        elif not os.path.lexists(path):
            yield Missing(path)
        elif force_exclude and is_excluded(path, walk.globs, root):
            yield Skipped(path, "excluded")
        elif walk.is_new(path):
            yield Found(path, explicit=True)


class _Walk:
    """One run: what it leaves out, and what it has met."""

    def __init__(self, globs: Sequence[str], root: str | Path, respect_gitignore: bool) -> None:
        self.globs = tuple(globs)
        self.excluded = _Globs(self.globs, str(root))
        self.respect_gitignore = respect_gitignore
        self.seen: set[str] = set()

    def is_new(self, path: str) -> bool:
        absolute = os.path.abspath(path)
        if absolute in self.seen:
            return False
        self.seen.add(absolute)
        return True

    def folder(self, top: str) -> Iterator[Result]:
        """Everything under a folder. An explicit stack: folders may nest deeper than Python recurses."""
        absolute = os.path.abspath(top)
        rules = _rules_above(absolute) if self.respect_gitignore else ()
        shown = "" if top == "." else top
        stack = [(absolute, shown, rules)]
        while stack:
            folder, name, above = stack.pop()
            try:
                with os.scandir(folder) as listing:
                    entries = sorted(listing, key=lambda entry: entry.name)
            except OSError as error:
                yield Skipped(name or ".", error.strerror or str(error))
                continue
            ignored = above
            if self.respect_gitignore and any(entry.name == ".gitignore" for entry in entries):
                own = _read_rules(os.path.join(folder, ".gitignore"), folder)
                ignored = (*above, own) if own is not None else above
            folders = []
            for entry in entries:
                path = os.path.join(name, entry.name) if name else entry.name
                if _is_folder(entry):
                    if not self.left_out(folder, entry.name, ignored, is_folder=True):
                        folders.append((entry.path, path, ignored))
                elif entry.name.endswith(SUFFIXES) and not self.left_out(folder, entry.name, ignored):
                    if entry.is_symlink() and not os.path.exists(entry.path):
                        yield Skipped(path, "a link to nothing")
                    elif self.is_new(entry.path):
                        yield Found(path)
            stack.extend(reversed(folders))

    def left_out(self, folder: str, name: str, rules: tuple[_Rules, ...], is_folder: bool = False) -> bool:
        if self.excluded.names is not None and self.excluded.names(name):
            return True
        absolute = os.path.join(folder, name)
        if self.excluded.paths and any(glob(absolute) for glob in self.excluded.paths):
            return True
        return bool(rules) and _ignored(absolute + "/" if is_folder else absolute, rules)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


# Excludes


def is_excluded(path: str, globs: Sequence[str], root: str | Path) -> bool:
    """Whether a glob fits the path, or a folder that it is in."""
    excluded = _Globs(tuple(globs), str(root))
    absolute = os.path.abspath(path)
    parts = absolute.split(os.sep)
    if excluded.names is not None and any(excluded.names(part) for part in _parts_below(absolute, str(root))):
        return True
    if not excluded.paths:
        return False
    folders = [os.sep.join(parts[:end]) for end in range(2, len(parts) + 1)]
    return any(glob(folder) for folder in folders for glob in excluded.paths)


def _parts_below(absolute: str, root: str) -> list[str]:
    """The parts of a path below the root of the configuration; all of them where it lies elsewhere.

    What lies above the project does not count: a checkout in a folder called ``dist`` is no build result.
    """
    base = os.path.abspath(root).rstrip(os.sep) + os.sep
    return (absolute.removeprefix(base)).split(os.sep)


class _Globs:
    """Globs, ready to be asked: those for single names, and those for whole paths."""

    def __init__(self, globs: tuple[str, ...], root: str) -> None:
        plain = [glob.rstrip("/") for glob in globs if "/" not in glob.rstrip("/")]
        self.names = re.compile("|".join(map(_pattern, plain))).fullmatch if plain else None
        base = os.path.abspath(root)
        whole = [os.path.join(base, glob.rstrip("/")) for glob in globs if "/" in glob.rstrip("/")]
        self.paths = [re.compile(_pattern(os.path.normpath(glob))).fullmatch for glob in whole]


@lru_cache(maxsize=512)
def _pattern(glob: str) -> str:
    """A glob as a regular expression: ``*`` and ``?`` stay within a part, ``**`` crosses parts."""
    out: list[str] = []
    at = 0
    while at < len(glob):
        char = glob[at]
        if glob.startswith("**/", at):
            out.append("(?:.*/)?")
            at += 3
            continue
        if glob.startswith("**", at):
            out.append(".*")
            at += 2
            continue
        if char == "*":
            out.append("[^/]*")
        elif char == "?":
            out.append("[^/]")
        elif char == "[" and "]" in glob[at + 2 :]:
            end = glob.index("]", at + 2)
            inside = glob[at + 1 : end].replace("\\", "\\\\")
            out.append("[" + ("^" + inside[1:] if inside.startswith("!") else inside) + "]")
            at = end
        else:
            out.append(re.escape(char))
        at += 1
    return "".join(out)


# .gitignore


@dataclass(frozen=True)
class _Rules:
    """The patterns of one .gitignore, and the folder that they are relative to (with a slash at its end)."""

    base: str
    spec: GitIgnoreSpec


def _ignored(path: str, rules: tuple[_Rules, ...]) -> bool:
    """Whether git would ignore the path: the nearest file that says anything about it decides."""
    for each in reversed(rules):
        answer = each.spec.check_file(path[len(each.base) :]).include
        if answer is not None:
            return answer
    return False


def _rules_above(folder: str) -> tuple[_Rules, ...]:
    """The .gitignore files from the root of the repository down to above ``folder``, and .git/info/exclude."""
    found: list[_Rules] = []
    current = folder
    while True:
        if os.path.exists(os.path.join(current, ".git")):
            excluded = _read_rules(os.path.join(current, ".git", "info", "exclude"), current)
            return tuple(reversed([*found, excluded] if excluded is not None else found))
        parent = os.path.dirname(current)
        if parent == current:
            return ()  # no repository: only the files below the folder count
        own = _read_rules(os.path.join(parent, ".gitignore"), parent)
        if own is not None:
            found.append(own)
        current = parent


def _read_rules(path: str, base: str) -> _Rules | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().split("\n")
    except OSError:
        return None
    if not any(line.strip() and not line.startswith("#") for line in lines):
        return None
    from pathspec import GitIgnoreSpec

    return _Rules(base.rstrip("/") + "/", GitIgnoreSpec.from_lines(lines))
