"""The cache of one run: looked up before a file is scanned or linted, and updated afterwards."""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

from ctxlint.cache.relevant import relevant_settings
from ctxlint.cache.stamp import digest, stamp_at, stamp_of
from ctxlint.config.project_files import ConfigurationError
from ctxlint.profiling import stage
from ctxlint.result import shows_text
from ctxlint.source.decode import decode
from ctxlint.source.discover import path_of
from ctxlint.source.imports import Imports
from ctxlint.source.reading import OPEN, NotPython, Undecodable, Unreadable, content_of, read_bytes
from ctxlint.source.scanner import holds_candidate

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from ctxlint.cache.folder_tables import Kept, Tables
    from ctxlint.cache.whole_run import Stored, WholeRun
    from ctxlint.config.configuration import Configuration
    from ctxlint.config.settings import Settings
    from ctxlint.model.index.outside_facts import KnownNames
    from ctxlint.result import Candidate, FileResult
    from ctxlint.source.discover import Found
    from ctxlint.source.imports import Contents
    from ctxlint.source.scanner import Search
    from ctxlint.source.source import Source

    Share = Callable[[Imports, Search, list[str]], list[bool | None]]


class Cache:
    """Earlier results for the files of this run; with ``used`` False, there are none, and none are stored.

    A hit equals what the run would compute itself. Runs that fix files do not use it.
    """

    def __init__(self, *, used: bool, tables: Tables | None = None, resumed: dict[Place, Tables] | None = None) -> None:
        """Nothing is read before the first request. ``tables`` replace those on disk.

        With ``resumed``, which are those read so far, those on disk are used, but never written; ``tables`` are for
        projects that have none.
        """
        self.used = used
        self._given = tables
        self._resumes = resumed is not None
        self._open: dict[Place, Tables] = {} if resumed is None else resumed
        self._imports = Imports()
        self.share: Share | None = None
        """Searches some files together with another process."""
        self._digests: dict[str, bytes | None] = {}
        self._leads: dict[tuple[str, str], str | None] = {}
        self._settings: Settings | None = None
        self._its_tables: Tables | None = None
        self._whole: WholeRun | None = None

    @stage("cache")
    def write(self) -> None:
        """Store the results of this run."""
        for tables in () if self._resumes else self._open.values():
            tables.store.write()

    def _tables(self, settings: Settings) -> Tables | None:
        if self._given is not None and not self._resumes:
            return self._given
        if settings is not self._settings:  # files of one folder, or of thousands, have the same
            self._settings = settings
            self._its_tables = self._tables_for(settings) if self._is_for(settings) else self._given
        return self._its_tables

    def _is_for(self, settings: Settings) -> bool:
        return self.used and not (settings.no_cache or settings.fix)

    def _tables_for(self, settings: Settings) -> Tables | None:
        try:
            place = _place(settings)
        except ConfigurationError:
            if not self._resumes:
                raise
            place = None
        if place is not None and place not in self._open:
            from ctxlint.cache.folder_tables import Tables
            from ctxlint.cache.store import Store

            self._open[place] = Tables(Store(*place))
        return self._open[place] if place is not None else self._given

    # Facts from bytes

    def holds_candidate(self, found: Found, settings: Settings) -> bool:
        """Like ``scan.holds_candidate`` for the file.

        Raises:
            Unreadable: The file cannot be read.
        """
        tables = self._tables(settings) if found.entry is not None else None
        if tables is None or found.entry is None:  # reading an explicit file is faster than reading a cache
            return holds_candidate(read_bytes(found.path))
        path, stamp = found.entry.path, stamp_of(found.entry)
        seen = tables.seen.get(path, stamp) if stamp is not None else None
        if seen is not None and seen.candidate is not None:
            return seen.candidate
        candidate = holds_candidate(read_bytes(path))
        if stamp is not None and stamp.is_settled:
            tables.see(path, stamp, candidate=candidate)
        return candidate

    def mentioning(self, others: Iterable[tuple[Found, Settings]], search: Search) -> Iterator[tuple[Found, Settings]]:
        """The files that a search finds; excluding those that cannot be read."""
        question = _question(search) if self.used else b""
        opened = {os.path.basename(each) for each in OPEN}
        given = [*others]
        answers: dict[str, bool | None] = {}
        unknown: list[tuple[str, str, Tables | None]] = []
        last: Settings | None = None
        tables: Tables | None = None
        for found, settings in given:
            if settings is not last:
                last, tables = settings, self._tables(settings)
            path = path_of(found)
            if tables is not None and found.entry is not None and tables.seen.now(path) is None:
                self._stamp_again(found.entry, tables)
            if opened and os.path.basename(path) in opened and os.path.abspath(path) in OPEN:
                answers[found.path] = search.in_data(content_of(path))
                continue
            answers[found.path] = tables.answer(path, question) if tables is not None else None
            if answers[found.path] is None:
                unknown.append((found.path, path, tables))
        paths = [each[0] for each in unknown]
        new = (answers_in if self.share is None else self.share)(self._imports, search, paths)
        for (name, path, tables), answer in zip(unknown, new):
            answers[name] = answer
            if tables is not None and answer is not None:
                tables.keep_answer(path, question, answer)
        yield from (each for each in given if answers[each[0].path])

    @contextmanager
    def keeping(self, contents: Contents) -> Iterator[None]:
        """During this context, searches share the content of files."""
        self._imports.contents = contents
        try:
            yield
        finally:
            self._imports.contents = None

    def _stamp_again(self, entry: os.DirEntry[str], tables: Tables) -> None:
        """Stamp the current state of a file; one that is not reported on was not stamped before."""
        stamp = stamp_of(entry)
        if stamp is not None and tables.seen.get(entry.path, stamp) is None and stamp.is_settled:
            tables.see(entry.path, stamp)

    # Linting

    @stage("cache")
    def result(self, candidate: Candidate) -> FileResult | None:
        """The result of linting the file, if it is cached."""
        tables = self._tables(candidate.settings)
        if tables is None:
            return None
        absolute = os.path.abspath(candidate.path)
        for entry in tables.kept(absolute, _key(candidate)):
            if self._holds_still(entry, tables):
                found = self._restored(candidate, entry)
                if found is not None:
                    self._note(found, entry)
                    return found
        return None

    @stage("cache")
    def keep(self, candidate: Candidate, result: FileResult) -> None:
        """Store the result of linting the file, before anything else was done with it."""
        tables = self._tables(candidate.settings)
        if tables is None or result.failed or not result.linted or not result.read or result.consulted is None:
            self.forget_run()
            return
        from ctxlint.cache.folder_tables import Kept, packed

        look_ups = {
            (os.path.dirname(os.path.abspath(each.importer)), each.name): each.found
            for each in result.consulted.look_ups
        }
        (absolute, content), *_ = result.read
        short = packed(_in_short(candidate, result))
        entry = Kept(_key(candidate), result.read, tuple(look_ups.items()), short)
        tables.keep(absolute, entry)
        self._note(result, entry)
        tables.keep_content(absolute, content)  # it was read after it was stamped

    def _note(self, result: FileResult, entry: Kept) -> None:
        if self._whole is not None:
            self._whole.note(result, entry.read, entry.look_ups)

    # The whole run

    @stage("cache")
    def results_of_run(
        self, paths: Iterable[str], files: Sequence[tuple[Found, Settings]], configuration: Configuration
    ) -> tuple[dict[str, FileResult], Collection[str]] | None:
        """If nothing changed since an earlier run: the results of the linted files, by path, and the excluded files."""
        tables = self._tables(files[0][1]) if self.used and files and not OPEN else None
        if tables is None:
            return None
        from ctxlint.cache.file_records import Refused
        from ctxlint.cache.whole_run import WholeRun

        self._whole = WholeRun(paths, files, configuration, tables)
        stored = self._whole.stored()
        if stored is None or not self._holds_still(stored, tables):
            return None
        try:
            found = {each.path: each for each in self._whole.restored(stored)}
            for path, each in found.items():
                if shows_text(each):
                    content = self._digest(os.path.abspath(path), tables)
                    found[path] = each._replace(source=_source(path, content))
        except (Changed, Unreadable, Undecodable, NotPython, Refused):
            return None
        return found, frozenset(stored.excluded)

    def forget_run(self) -> None:
        """Do not store the run: it has a result that must not be stored."""
        if self._whole is not None:
            self._whole.give_up()

    @stage("cache")
    def keep_run(self, reported: Collection[str], excluded: Iterable[str]) -> None:
        """Store the results of the run, given the files that it has linted and reports on, and those it excludes."""
        if self._whole is not None:
            self._whole.keep(reported, excluded)

    def _holds_still(self, entry: Kept | Stored, tables: Tables) -> bool:
        if any(self._digest(path, tables) != content for path, content in entry.read):
            return False
        return all(self._leads_to(*each) == found for each, found in entry.look_ups)

    def _leads_to(self, folder: str, name: str) -> str | None:
        """The file that an import in a folder resolves to."""
        if (folder, name) not in self._leads:
            from ctxlint.source.modules import locate_from

            place = locate_from(folder, name)
            self._leads[folder, name] = place.path if place is not None else None
        return self._leads[folder, name]

    def _digest(self, path: str, tables: Tables) -> bytes | None:
        """The digest of a file's content; None if it cannot be read."""
        if path not in self._digests:
            self._digests[path] = _digest(path, tables)
        return self._digests[path]

    def _restored(self, candidate: Candidate, entry: Kept) -> FileResult | None:
        """The result, with the linted text if it is needed."""
        from ctxlint.cache.file_records import Refused
        from ctxlint.cache.folder_tables import unpacked

        try:
            found = unpacked(entry.packed, candidate.path)
            source = _source(candidate.path, entry.read[0][1]) if shows_text(found) else None
        except (Changed, Unreadable, Undecodable, NotPython, Refused):
            return None
        told = candidate.outside if candidate.known is None else found.outside
        return found._replace(source=source, settings=candidate.settings, outside=told)


def _in_short(candidate: Candidate, result: FileResult) -> FileResult:
    """A result without the request."""
    return result._replace(outside=None) if candidate.known is None else result


class Changed(Exception):
    """A file is not the linted version any more."""


def _source(path: str, content: bytes | None) -> Source:
    data = read_bytes(path)
    if content != digest(data):
        raise Changed
    return decode(path, data)


def _digest(path: str, tables: Tables) -> bytes | None:
    if path in OPEN:
        return digest(content_of(path))
    seen = tables.seen.now(path)
    stamp = stamp_at(path) if seen is None else None
    if stamp is not None:
        seen = tables.seen.get(path, stamp)
    if seen is not None and seen.content is not None:
        return seen.content
    try:
        data = read_bytes(path)
    except Unreadable:
        return None
    content = digest(data)
    if seen is None and stamp is not None and stamp.is_settled:
        tables.see(path, stamp)
    tables.keep_content(path, content)
    return content


def answers_in(imports: Imports, search: Search, paths: Iterable[str]) -> list[bool | None]:
    """Whether a search finds each of some files; None for one that cannot be read."""
    return [_answer_in(imports, search, path) for path in paths]


def _answer_in(imports: Imports, search: Search, path: str) -> bool | None:
    try:
        return search.in_file(path, imports)
    except Unreadable:
        return None


Place = tuple[str, str, bytes]
"""The folder and the root of a cache, and its key."""


def _question(search: Search) -> bytes:
    """A digest of what is searched for."""
    return digest(search.question.encode("utf-8", "surrogatepass"))


def _key(candidate: Candidate) -> bytes:
    """A digest of the request for a file: its name, its settings, and its outside facts."""
    told = (candidate.outside, _digest_of_names(candidate.known), candidate.facts_only)
    asked = (candidate.path, relevant_settings(candidate.settings), *told)
    return digest(repr(asked).encode("utf-8", "replace"))


@lru_cache(maxsize=256)
def _digest_of_names(known: KnownNames | None) -> bytes:
    """A digest of the known names of a project."""
    return digest(repr(known).encode("utf-8", "replace"))


@lru_cache(maxsize=256)
def _place(settings: Settings) -> Place | None:
    """Where the cache is; None if nothing can be cached."""
    from ctxlint.cache.folder import cache_folder, check_cache_dir, key

    folder = cache_folder(settings)
    if folder is not None and settings.cache_dir is not None:
        check_cache_dir(folder, settings.root)
    sealed_with = key(settings.root)
    return (folder, settings.root, sealed_with) if folder is not None and sealed_with is not None else None
