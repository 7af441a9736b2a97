"""File discovery: a walk over folders, exclusions, and explicit paths."""

from __future__ import annotations

import os
import re
from itertools import islice, pairwise
from operator import attrgetter
from typing import TYPE_CHECKING

from ctxlint.named_tuples import NamedTuple
from ctxlint.source.gitignore import ignore_files_above, is_ignored, read_ignore_file
from ctxlint.source.globs import globs_for
from ctxlint.source.reading import first_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from ctxlint.source.gitignore import IgnoreFile

PYTHON_SUFFIXES = (".py", ".pyi", ".pyw")
SUFFIXES = (*PYTHON_SUFFIXES, ".ipynb")
"""The suffixes of the files that a walk finds, in addition to scripts. An explicit file may have any suffix."""

_SHEBANG = 256
_INTERPRETER = rb"(?:i?python|pypy)\d*(?:\.\d+)*[tw]?(?:\.exe)?"

DEFAULT_EXCLUDE = (
    ".bzr",
    ".ctxlint_cache",
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
    "node_modules",
    "site-packages",
    "venv",
)
"""Folders that are excluded by default: most of those of ruff, and the cache.

``build`` and ``dist`` are not among them: they may be packages (of code for ``torch.distributed``), and ``.gitignore``
usually names them if they are not.
"""


class Found(NamedTuple):
    """A file to read, and the absolute path of its folder.

    ``explicit``: it is an argument; otherwise a walk found it, as ``entry`` of the folder.
    """

    path: str
    folder: str
    explicit: bool = False
    entry: os.DirEntry[str] | None = None


def path_of(found: Found) -> str:
    """The absolute path of a file that was found."""
    return os.path.join(found.folder, os.path.basename(found.path)) if found.entry is None else found.entry.path


class Skipped(NamedTuple):
    """A path that is skipped, and why. ``lost``: this was not requested."""

    path: str
    reason: str
    lost: bool = False


_NO_SUCH_FILE = "No such file or directory"


class Missing(NamedTuple):
    """An argument that does not exist, or a folder that cannot be listed."""

    path: str
    reason: str


Result = Found | Skipped | Missing


def find_files(
    paths: Sequence[str],
    *,
    exclude: Sequence[str],
    extend_exclude: Sequence[str],
    root: str | Path,
    force_exclude: bool = False,
    respect_gitignore: bool = True,
) -> Iterator[Result]:
    """The files under ``paths``, each once, ordered by name, a folder's files first; paths as the caller wrote them.

    ``exclude`` and ``extend_exclude`` are globs, see ``globs``; those with a slash are relative to ``root``. Explicit
    paths are included even if they are excluded, unless ``force_exclude``, and even if git ignores them.

    Links to folders are not followed. Links to files are, and come last: a file is found under its own name if it is
    under ``paths``, otherwise under the first link to it. ruff finds it once for each name, which counts its findings
    several times, and lets several processes fix one file at once.
    """
    globs = globs_for((*exclude, *extend_exclude), os.path.abspath(root))
    walk = _Walk(globs.fit, respect_gitignore)
    for path in paths:
        absolute = os.path.abspath(path)
        if not os.path.lexists(path):
            yield Missing(path, _NO_SUCH_FILE if path[:1] != "-" else f"{_NO_SUCH_FILE}; options go before `--`")
        elif force_exclude and globs.fit_within(absolute):
            yield Skipped(path, "excluded")
        elif os.path.isdir(path):
            yield from walk.folder(path)
        elif os.path.islink(path):
            walk.links.append(Found(path, os.path.dirname(absolute), explicit=True))
        elif walk.is_new(os.path.realpath(path)):
            yield Found(path, os.path.dirname(absolute), explicit=True)
    yield from walk.links_to_new_files()


def find_below(
    folder: str,
    *,
    exclude: Sequence[str],
    root: str | Path,
    respect_gitignore: bool,
    deep: bool,
    most_entries: int,
) -> tuple[list[Found], bool]:
    """The files under a folder that are only needed for their facts about others; and whether these are all.

    Links and other repositories are skipped. The walk ends after ``most_entries``; if ``deep`` is False, it stays in
    the folder.
    """
    globs = globs_for(exclude, os.path.abspath(root))
    walk = _Walk(globs.fit, respect_gitignore, most_entries, deep=deep)
    found = [each for each in walk.folder(folder) if isinstance(each, Found)]
    return found, walk.most is not None and walk.most >= 0


def is_excluded(path: str, globs: Sequence[str], root: str | Path) -> bool:
    """Whether a glob matches the path, or a folder above it."""
    return globs_for(tuple(globs), os.path.abspath(root)).fit_within(os.path.abspath(path))


class _Folder(NamedTuple):
    """A folder to list: its path, the prefix of displayed names, and what git ignores there.

    ``real`` is the prefix of names with links resolved.
    """

    absolute: str
    real: str
    prefix: str
    ignore: tuple[IgnoreFile, ...]

    def below(self, entry: os.DirEntry[str]) -> _Folder:
        """The folder of an entry of this one."""
        end = entry.name + os.sep
        return _Folder(entry.path, self.real + end, self.prefix + end, self.ignore)


_NAME = attrgetter("name")
_IGNORE_FILE = ".gitignore"


class _Walk:
    """One walk: its exclusions, the files found so far, and the links to files, which are resolved last."""

    def __init__(
        self,
        is_excluded: Callable[[str, str], bool],
        respect_gitignore: bool,
        most: int | None = None,
        *,
        deep: bool = True,
    ) -> None:
        """``most`` is the maximum number of entries in one repository; it becomes negative when exceeded."""
        self.is_excluded = is_excluded
        self.respect_gitignore = respect_gitignore
        self.most = most
        self.deep = deep
        self.met: set[str] = set()
        self.links: list[Found] = []
        self.real_folders: dict[str, str] = {}

    def is_new(self, real: str) -> bool:
        """Whether the file, named without links, was not found before; records it."""
        before = len(self.met)
        self.met.add(real)
        return len(self.met) > before

    def links_to_new_files(self) -> Iterator[Result]:
        """The links whose files were not found under their own names, each file once."""
        met_links: set[str] = set()
        for link in self.links:
            absolute = os.path.abspath(link.path)
            if absolute in met_links:
                continue
            met_links.add(absolute)
            if self.is_new(self.real(absolute)):
                yield link
            else:
                yield Skipped(link.path, "a link to a file that is checked under another name")

    def real(self, link: str) -> str:
        """The target of a link to a file, like ``os.path.realpath``."""
        try:
            target = os.readlink(link)
        except OSError:
            return os.path.realpath(link)
        folder, name = os.path.split(os.path.join(os.path.dirname(link), target))
        real = os.path.join(self.real_folder(folder), name)
        return os.path.realpath(link) if os.path.isabs(target) or os.path.islink(real) else real

    def real_folder(self, path: str) -> str:
        """Like ``os.path.realpath``, which queries each folder on the way; many links lead to few folders."""
        names: list[str] = []
        while path not in self.real_folders:
            above, name = os.path.split(path)
            if above == path:
                self.real_folders[path] = path
            else:
                path = above
                names.append(name)
        real = self.real_folders[path]
        for name in reversed(names):
            path = os.path.join(path, name)
            if name == "..":
                real = os.path.dirname(real)
            elif name not in ("", "."):
                real = os.path.join(real, name)
                real = os.path.realpath(real) if os.path.islink(real) else real
            self.real_folders[path] = real
        return real

    def folder(self, top: str) -> Iterator[Result]:
        """Everything under a folder. Uses an explicit stack: folders may nest deeper than Python's recursion limit."""
        absolute, real = os.path.abspath(top), os.path.join(os.path.realpath(top), "")
        above = ignore_files_above(absolute) if self.respect_gitignore else ()
        stack = [_Folder(absolute, real, "" if top == "." else os.path.join(top, ""), above)]
        while stack:
            folder = stack.pop()
            try:
                with os.scandir(folder.absolute) as listing:
                    entries = list(islice(listing, self.most + 1) if self.most is not None else listing)
            except OSError as error:
                path, reason = folder.prefix.rstrip("/\\") or folder.prefix or ".", error.strerror or str(error)
                yield Missing(path, reason) if folder.absolute == absolute else Skipped(path, reason, lost=True)
                continue
            if self.most is not None:
                if folder.absolute != absolute and ".git" in map(_NAME, entries):
                    continue
                self.most -= len(entries)
                if self.most < 0:
                    return
            if self.respect_gitignore and _IGNORE_FILE in map(_NAME, entries):
                own = read_ignore_file(os.path.join(folder.absolute, _IGNORE_FILE), folder.absolute)
                if own is not None:
                    folder = folder._replace(ignore=(*folder.ignore, own))
            yield from self.files(folder, sorted(filter(_may_be_python, entries), key=_NAME))
            below = sorted(filter(_is_folder, entries), key=_NAME, reverse=True) if self.deep else []
            stack += [folder.below(each) for each in below if not self.leaves_out(each, folder, "/")]

    def files(self, folder: _Folder, entries: Sequence[os.DirEntry[str]]) -> Iterator[Result]:
        """The entries of a folder that are files, and those that cannot be read."""
        for entry in entries:
            if self.leaves_out(entry, folder) or not (entry.name.endswith(SUFFIXES) or is_script(entry.path)):
                continue
            if _is_plain(entry):
                if self.is_new(folder.real + entry.name):
                    yield Found(folder.prefix + entry.name, folder.absolute, entry=entry)
            elif not _is_folder(entry):
                reason = _fault(entry)
                if not reason:
                    self.links.append(Found(folder.prefix + entry.name, folder.absolute, entry=entry))
                elif self.is_new(folder.real + entry.name):
                    yield Skipped(folder.prefix + entry.name, reason)

    def leaves_out(self, entry: os.DirEntry[str], folder: _Folder, end: str = "") -> bool:
        """Whether an entry of ``folder`` is excluded or ignored; ``end`` is a slash for a folder."""
        if self.is_excluded(entry.path, entry.name):
            return True
        return bool(folder.ignore) and is_ignored(entry.path + end, entry.name + end, folder.ignore)


def _may_be_python(entry: os.DirEntry[str]) -> bool:
    """Whether a walk finds the entry, or would if it were a script: those have no suffix."""
    return entry.name.endswith(SUFFIXES) or ("." not in entry.name and _is_plain(entry))


def is_script(path: str) -> bool:
    """Whether the first line of a regular file names Python as its interpreter: ``#!/usr/bin/env python3``."""
    line = first_bytes(path, _SHEBANG).split(b"\n", 1)[0]
    if not line.startswith(b"#!"):
        return False
    words = [each.rpartition(b"/")[2] for each in line[2:].split()]
    return any(re.fullmatch(_INTERPRETER, word) for word in words) or (b"uv", b"run") in pairwise(words)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _is_plain(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file(follow_symlinks=False)
    except OSError:
        return False


def _fault(entry: os.DirEntry[str]) -> str:
    """Why something that is neither a file nor a folder cannot be read; empty for a link to a file."""
    try:
        if entry.is_file():
            return ""
        if not entry.is_symlink():
            return "not a regular file"
        if entry.is_dir():
            return "a link to a folder"
        return "not a regular file" if os.path.exists(entry.path) else "a broken link"
    except OSError as error:  # a link to itself
        return error.strerror or str(error)
