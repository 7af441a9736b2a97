"""The other files of a project: those that a run does not report on, but that may have facts about its Functions.

They are searched in the folder of the project: the root according to git or the configuration, otherwise the package.
Excluded and ignored files are not part of it, nor are links and other repositories. Nothing is parsed here: files are
searched by their bytes, and only those that mention a Function by name are parsed later.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ctxlint.config.project_files import ConfigurationError
from ctxlint.named_tuples import NamedTuple
from ctxlint.source.discover import Found, find_below
from ctxlint.source.leads import Leads
from ctxlint.source.modules import project_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ctxlint.config.configuration import Configuration
    from ctxlint.config.settings import Settings

MOST_FILES = 10_000
MOST_ENTRIES = 200_000
MOST_BYTES = 1 << 28
"""The maximum number of bytes to search in a project. Facts beyond it are unknown."""


class Rest(NamedTuple):
    """The files of a project that are not reported on; ``complete`` if these are all of them."""

    files: tuple[tuple[Found, Settings], ...]
    complete: bool


class ProjectIndex:
    """Finds the rest of each project once, for a run that reports on some paths."""

    def __init__(self, paths: Iterable[str], configuration: Configuration) -> None:
        """``paths`` are the arguments of the run: files, and folders that it walks itself."""
        self._folders = tuple(os.path.join(os.path.realpath(path), "") for path in paths if os.path.isdir(path))
        self._configuration = configuration
        self._known: dict[str, Rest] = {}
        self._covered: dict[str, bool] = {}
        self._leads = Leads()

    def leads(self, path: str, data: bytes | None = None) -> frozenset[str]:
        """The names by which a file with this absolute path, and this content, may call something in the rest."""
        return frozenset() if self.covers(os.path.dirname(path)) else self._leads.names(path, data)

    def covers(self, folder: str) -> bool:
        """Whether the run walks all of the project that contains a folder."""
        return self._covers(project_of(folder)[0])

    def _covers(self, root: str) -> bool:
        """Whether the run walks all of a project."""
        if root not in self._covered:
            self._covered[root] = os.path.join(os.path.realpath(root), "").startswith(self._folders)
        return self._covered[root]

    def rest(self, folder: str) -> Rest:
        """The rest of the project that contains a folder."""
        root, deep = project_of(folder)
        if root not in self._known:
            self._known[root] = self._rest(root, deep)
        return self._known[root]

    def _rest(self, root: str, deep: bool) -> Rest:
        if self._covers(root):
            return Rest((), True)
        try:
            settings = self._configuration.settings_for(root)
        except ConfigurationError:
            return Rest((), False)
        found, complete = find_below(
            root,
            exclude=(*settings.exclude_globs, *settings.extend_exclude),
            root=settings.root,
            respect_gitignore=settings.respect_gitignore,
            deep=deep,
            most_entries=MOST_ENTRIES,
        )
        size = 0
        for number, each in enumerate(found):
            size += _size(each)
            if number >= MOST_FILES or size > MOST_BYTES:
                return Rest(tuple((file, settings) for file in found[:number]), False)
        return Rest(tuple((file, settings) for file in found), complete)


def _size(found: Found) -> int:
    try:
        return found.entry.stat().st_size if found.entry is not None else 0
    except OSError:
        return 0
