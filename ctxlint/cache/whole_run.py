"""The results of a whole run. As long as no file changes, files need not be looked up one by one, again and again.

This is for runs that walk all of their projects. The results of others depend on files that no walk has found.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ctxlint.cache.folder_tables import LookUps, Read, Tables, packed, unpacked
from ctxlint.cache.relevant import relevant_settings
from ctxlint.cache.stamp import digest, stamp_of
from ctxlint.config.project_files import ConfigurationError
from ctxlint.named_tuples import NamedTuple
from ctxlint.source.modules import root_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from ctxlint.config.configuration import Configuration
    from ctxlint.config.settings import Settings
    from ctxlint.result import FileResult
    from ctxlint.source.discover import Found

    Files = Sequence[tuple[Found, Settings]]


class Stored(NamedTuple):
    """A run. ``key`` is a digest of the found files, ``settings`` one of the settings for the files in ``linted``.

    ``read`` are the other files that it depends on. ``results`` has the packed result for each file that it reports on;
    ``excluded`` are the files that the settings next to them exclude.
    """

    key: bytes
    linted: tuple[str, ...]
    settings: bytes
    read: Read
    look_ups: LookUps
    results: tuple[tuple[str, str], ...]
    excluded: tuple[str, ...]


class WholeRun:
    """One run, and what its results depend on."""

    def __init__(self, paths: Iterable[str], files: Files, configuration: Configuration, tables: Tables) -> None:
        """``paths`` are its arguments, ``files`` those that were found."""
        self._name = _digest((os.getcwd(), sorted(paths))).hex()
        self._files = files
        self._configuration = configuration
        self._tables = tables
        self._runs = tables.store.table("runs", Stored)
        self._key = self._key_of_files()
        self._results: dict[str, FileResult] = {}
        self._read: dict[str, bytes | None] = {}
        self._look_ups: dict[tuple[str, str], str | None] = {}
        self._is_known = self._key is not None

    def _key_of_files(self) -> bytes | None:
        """A digest of the files and folders; None if it might miss a change."""
        stamps = [stamp_of(found.entry) if found.entry is not None else None for found, _settings in self._files]
        if not all(stamp is not None and stamp.is_settled for stamp in stamps):
            return None
        files = [(found.path, stamp) for (found, _settings), stamp in zip(self._files, stamps)]
        folders = {found.folder: root_of(found.folder) for found, _settings in self._files}
        try:
            settings = [relevant_settings(self._configuration.settings_for(folder)) for folder in folders]
        except ConfigurationError:  # it may be in a folder without Functions
            return None
        return _digest((files, folders, settings))

    def stored(self) -> Stored | None:
        """The earlier run over the same files with the same settings, if any."""
        found = self._runs.get(self._name) if self._key is not None else None
        if found is None or found.key != self._key or found.settings != self._settings_of(found.linted):
            return None
        return found

    def restored(self, stored: Stored) -> Iterator[FileResult]:
        """The results of an earlier run, without texts.

        Raises:
            Refused: One is about another file.
        """
        for path, text in stored.results:
            yield unpacked(text, path)._replace(settings=self._configuration.settings_for_file(path))

    def _settings_of(self, linted: Iterable[str]) -> bytes:
        return _digest([relevant_settings(self._configuration.settings_for_file(path)) for path in linted])

    def note(self, result: FileResult, read: Read, look_ups: LookUps) -> None:
        """Add the latest result for a file, and what it depends on."""
        self._results[result.path] = result
        self._read.update(read)
        self._look_ups.update(look_ups)

    def give_up(self) -> None:
        """A result must not be stored."""
        self._is_known = False

    def keep(self, reported: Collection[str], excluded: Iterable[str]) -> None:
        """Store the run, if all results can be stored."""
        if self._key is None or not self._is_known or not all(path in self._results for path in reported):
            return
        found = {os.path.join(each.folder, os.path.basename(each.path)) for each, _settings in self._files}
        linted = tuple(self._results)
        results = (self._results[path]._replace(facts=None, outside=None) for path in sorted(reported))
        stored = Stored(
            self._key,
            linted,
            self._settings_of(linted),
            tuple(each for each in self._read.items() if each[0] not in found),
            tuple(self._look_ups.items()),
            tuple((each.path, packed(each)) for each in results),
            tuple(excluded),
        )
        self._runs.put(self._name, stored)
        self._runs.trim(_MOST_RUNS)


_MOST_RUNS = 4
"""With other arguments."""


def _digest(value: object) -> bytes:
    return digest(repr(value).encode("utf-8", "surrogatepass"))
