"""Which files one process may load: those that import one another, also through others, or that one file imports."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING

from ctxlint.patterns import pattern
from ctxlint.source.imports import imports_in
from ctxlint.source.modules import locate, module_name, packages_of
from ctxlint.source.reading import content_or_nothing

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Hashable, Iterable, Iterator

    from ctxlint.source.imports import Imports

_MOST = 3000
"""How many files to follow. If there are more, any may be loaded."""


def loaded_with(
    path: str, wanted: Collection[str], files: Collection[str], found_by: Callable[[NamingModules], Iterable[str]]
) -> frozenset[str]:
    """Those of some files that a process may load which loads the file ``path``: some file leads to both.

    ``files`` are those of the project, and ``found_by`` those of them that a search finds. Who imports the modules of a
    package is unknown, as other projects may: a process may load any of them.
    """
    if module_name(path) in _ALWAYS:
        return frozenset(wanted)
    packages = packages_of(path)[-1:]
    found = {each for each in wanted if packages and packages_of(each)[-1:] == packages}
    if len(found) == len(wanted):
        return frozenset(found)
    loaded = _leading_to(path, files, found_by)
    todo = [*loaded]
    while todo and len(loaded) < _MOST and not loaded.issuperset(wanted):
        new = _imported_by(todo.pop(), files) - loaded
        loaded |= new
        todo += new
    return frozenset(wanted if len(loaded) >= _MOST else found.union(loaded.intersection(wanted)))


def _leading_to(path: str, files: Collection[str], found_by: Callable[[NamingModules], Iterable[str]]) -> set[str]:
    """A file, and those that may import it, also through others."""
    leading, new = {path}, {path}
    while new and len(leading) < _MOST:
        asked = found_by(NamingModules(frozenset(module_name(each).encode("utf-8", "surrogatepass") for each in new)))
        folders = tuple(os.path.join(os.path.dirname(each), "") for each in new if each.endswith("__init__.py"))
        perhaps = {*asked, *(each for each in files if each.startswith(folders))} - leading
        new = {each for each in perhaps if not new.isdisjoint(_imported_by(each, files))}
        leading |= new
    return leading


def _imported_by(path: str, files: Iterable[str]) -> set[str]:
    """The files of the project that a file may import, in any function; and the packages that all these are in.

    One that imports by names that it works out may import what lies next to it, or below.
    """
    data = content_or_nothing(path)
    names = {name for statement in imports_in(data) for name in _targets(statement)}
    found = {path}
    if any(each in data for each in _BY_NAME):
        names.update(match[1].decode() for match in _QUOTED.finditer(data))
        folder = os.path.join(os.path.dirname(path), "")
        found.update(each for each in files if each.startswith(folder))
    found.update(place.path for name in names for place in (locate(path, name),) if place is not None)
    return found.union(*map(packages_of, found))


@lru_cache(maxsize=65536)
def _targets(statement: bytes) -> tuple[str, ...]:
    """The dotted names that may be modules in what looks like an import statement."""
    found = _IMPORT.search(statement)
    if found is None:
        return ()
    module = b"".join((found["module"] or b"").replace(b"\\", b"").split()).decode("ascii", "replace")
    words = [each.decode("ascii", "replace") for each in _DOTTED.findall(statement, found.end())]
    start = f"{module}." if module.strip(".") else module  # from . import ops
    return (*([module] if module else ()), *(start + each for each in words))


class NamingModules:
    """Finds the files that may import one of some modules: they contain the last part of its name, or work one out."""

    def __init__(self, names: frozenset[bytes]) -> None:
        """``names`` are the last parts."""
        self.names = names

    @property
    def question(self) -> str:
        """The names."""
        return f"names modules {sorted(self.names)}"

    @property
    def parts(self) -> frozenset[Hashable]:
        """The names."""
        return frozenset((NamingModules, name) for name in self.names)

    def limited_to(self, parts: Container[Hashable]) -> NamingModules:
        """A search for some of these names."""
        return NamingModules(frozenset(name for name in self.names if (NamingModules, name) in parts))

    def in_data(self, data: bytes) -> bool:
        """Whether a file with these bytes contains one."""
        return any(each in data for each in self._words())

    def in_file(self, path: str, imports: Imports) -> bool:
        """Like ``in_data`` for a file."""
        return any(imports.holds(path, each) for each in self._words())

    def _words(self) -> Iterator[bytes]:
        yield from self.names
        yield from _BY_NAME


_ALWAYS = ("sitecustomize", "usercustomize")
"""Modules that Python imports itself, if it finds them."""
_BY_NAME = (b"import_module", b"__import__", b"run_module", b"run_path", b"exec_module")
_IMPORT = pattern(rb"(?:\bfrom\b(?P<module>[\s\\.\w]*))?\bimport\b")
_QUOTED = pattern(rb"['\"](\.*\w[\w.]*)[\"':]")
_DOTTED = pattern(rb"\w[\w.]*")
