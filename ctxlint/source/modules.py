"""Module resolution: the file of an imported module, relative to the importing file. Nothing is imported."""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from typing import TYPE_CHECKING

from ctxlint.named_tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_ASCENT = 12


class ModulePlace(NamedTuple):
    """A file, and the rest of the dotted name inside it (empty for the module itself)."""

    path: str
    rest: str


def module_name(path: str) -> str:
    """The last part of the name of the module in a file."""
    folder, name = os.path.split(path)
    stem = os.path.splitext(name)[0]
    return os.path.basename(folder) if stem == "__init__" else stem


def locate(importer: str, target: str) -> ModulePlace | None:
    """The project file that ``target`` resolves to when imported in the file ``importer``; None outside the project.

    ``target`` is dotted and may begin with dots, as in ``from ..ops.base import Base`` → ``..ops.base.Base``. An
    absolute name is searched next to the file and in every folder above it, and in a ``src`` folder there, up to the
    root of the repository or, without one, of the project.
    """
    return locate_from(_folder_of(importer), target)


def _folder_of(path: str) -> str:
    """The absolute path of the folder of a file."""
    return _folder_of_absolute(path) if path.startswith("/") else os.path.dirname(os.path.abspath(path))


@lru_cache(maxsize=4096)
def _folder_of_absolute(path: str) -> str:
    return os.path.dirname(os.path.abspath(path))


def holds(importer: str, name: str) -> bool:
    """Whether a module or package with the first part of this absolute name may be found by ``locate``."""
    folder = _folder_of(importer)
    return any(_offers(root, name.partition(".")[0]) for root in _roots(folder))


def _offers(root: str, name: str) -> bool:
    """Whether an absolute import finds a module in a folder; in a package, none hides ``typing``, or torch."""
    hidden = (name in sys.stdlib_module_names or name == "torch") and _is_file(os.path.join(root, "__init__.py"))
    return not hidden and _holds(root, name)


@lru_cache(maxsize=65536)
def locate_from(folder: str, target: str) -> ModulePlace | None:
    """Like ``locate``, for a file in the folder with this absolute path."""
    name = target.lstrip(".")
    level = len(target) - len(name)
    parts = name.split(".") if name else []
    if level:
        for _ in range(level - 1):
            folder = os.path.dirname(folder)
        return _descend(folder, parts)
    hidden = None
    for root in _roots(folder):
        place = _descend(root, parts) if parts and _offers(root, parts[0]) else None
        if place is None:
            continue
        if not _is_named_like_package(root, parts[0]) and place.rest.count(".") < _DEEP:
            return place
        hidden = place if hidden is None or _is_deeper(place, hidden) else hidden
    return hidden


_DEEP = 3
"""A package has no module for so many dots in a name: perhaps another one of its name, further up, is meant."""


def _is_deeper(place: ModulePlace, other: ModulePlace) -> bool:
    """Whether a place has modules for more of a name than one with none for much of it."""
    return other.rest.count(".") >= _DEEP > place.rest.count(".")


@lru_cache(maxsize=4096)
def _is_named_like_package(folder: str, name: str) -> bool:
    """Whether a module has the name of a package around it, which is what an absolute import there means."""
    if not _is_file(os.path.join(folder, name + ".py")):
        return False
    while _is_file(os.path.join(folder, "__init__.py")):
        folder, package = os.path.split(folder)
        if package == name:
            return True
    return False


@lru_cache(maxsize=4096)
def _roots(folder: str) -> tuple[str, ...]:
    """The folders that absolute imports may start from, nearest first."""
    found: list[str] = []
    for each in _upward(folder):
        found.append(each)
        source = os.path.join(each, "src")
        if os.path.isdir(source):
            found.append(source)
    return tuple(found)


def root_of(folder: str) -> str:
    """The topmost folder that absolute imports in this folder may start from.

    It is the root of the repository; without one, the topmost folder that is a project.
    """
    below: list[str] = []
    while folder not in _ROOTS:
        below.append(folder)
        above = os.path.dirname(folder)
        if above == folder:
            break
        folder = above
    root = _ROOTS.get(folder)
    for each in reversed(below):
        if is_repository(each) or (root is None and _is_project(each)):
            root = each
        _ROOTS[each] = root
    return os.path.splitdrive(folder)[0] + os.sep if root is None else root


def root_of_file(path: str) -> str:
    """The root of the project of a file (see ``root_of``)."""
    return root_of(_folder_of(path))


def project_of(folder: str) -> tuple[str, bool]:
    """The root folder of the project of a file in this folder, and whether subfolders belong to it.

    It is the root as in ``root_of``; without one, the package of the file; without that, only the folder.
    """
    root = root_of(folder)
    if os.path.dirname(root) != root:
        return root, True
    packages = packages_of(os.path.join(folder, ""))
    return (os.path.dirname(packages[-1]), True) if packages else (folder, False)


def packages_of(path: str) -> list[str]:
    """The files that begin the packages which a file is in, the innermost first: importing it runs them."""
    found: list[str] = []
    folder = os.path.dirname(path)
    while _is_file(os.path.join(folder, "__init__.py")):
        found.append(os.path.join(folder, "__init__.py"))
        folder = os.path.dirname(folder)
    return found


_ROOTS: dict[str, str | None] = {}
"""The results of ``root_of``, by folder, so that each is searched once; None if there is none."""


def _upward(folder: str) -> Iterator[str]:
    """A folder and those above it, up to its root."""
    root = root_of(folder)
    for _ in range(_MAX_ASCENT):
        yield folder
        if folder == root:
            return
        folder = os.path.dirname(folder)


def is_repository(folder: str) -> bool:
    """Whether a folder is the top of a repository, or of a work tree."""
    return os.path.exists(os.path.join(folder, ".git"))


def _is_project(folder: str) -> bool:
    return any(os.path.exists(os.path.join(folder, name)) for name in _PROJECT_FILES)


_PROJECT_FILES = ("pyproject.toml", "setup.py", "setup.cfg", "ctxlint.toml", ".ctxlint.toml")


@lru_cache(maxsize=65536)
def _holds(root: str, name: str) -> bool:
    """Whether a folder contains a module or package of this name."""
    return _is_file(os.path.join(root, name + ".py")) or _is_folder(os.path.join(root, name))


def _descend(folder: str, parts: list[str]) -> ModulePlace | None:
    for at, part in enumerate(parts):
        module = os.path.join(folder, part + ".py")
        package = os.path.join(folder, part)
        if _is_file(os.path.join(package, "__init__.py")) or (_is_folder(package) and not _is_file(module)):
            folder = package
        elif _is_file(module):
            return ModulePlace(module, ".".join(parts[at + 1 :]))
        else:
            return _package(folder, parts[at:])
    return _package(folder, [])


def _package(folder: str, rest: list[str]) -> ModulePlace | None:
    initial = os.path.join(folder, "__init__.py")
    return ModulePlace(initial, ".".join(rest)) if _is_file(initial) else None


@lru_cache(maxsize=65536)
def _is_file(path: str) -> bool:
    return os.path.isfile(path)


@lru_cache(maxsize=65536)
def _is_folder(path: str) -> bool:
    return os.path.isdir(path)


def forget() -> None:
    """Drop cached disk look-ups; the language server calls this when files are created or deleted."""
    _ROOTS.clear()
    for cached in (locate_from, _holds, _roots, _is_file, _is_folder):
        cached.cache_clear()
