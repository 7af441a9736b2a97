"""The caches of one run: asked before a file is scanned or linted, and told afterwards."""

from __future__ import annotations

import os
from dataclasses import fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from ctxlint.cache.stamp import Stamp, digest, stamp_of
from ctxlint.files.decode import NotPython, Undecodable, Unreadable, decode, read_bytes
from ctxlint.files.scan import holds_candidate
from ctxlint.stages import stage

if TYPE_CHECKING:
    from ctxlint.cache.store import Kept, Scanned, Store
    from ctxlint.files.scan import Mentions
    from ctxlint.result import Candidate, FileResult
    from ctxlint.settings import Settings


class Cache:
    """What earlier runs found out about the files of this one; with ``used`` False, nothing, and nothing is kept.

    It says what the run would find out itself. Whoever mends files goes without.
    """

    def __init__(self, *, used: bool) -> None:
        """Nothing is read before something is asked for."""
        self.used = used
        self._stores: dict[str, Store] = {}
        self._digests: dict[str, bytes | None] = {}

    @stage("cache")
    def write(self) -> None:
        """Keep what this run found out, for the next one."""
        for store in self._stores.values():
            store.write()

    def _store(self, settings: Settings) -> Store | None:
        if not self.used or settings.no_cache or settings.fix:
            return None
        folder = _folder(settings)
        if folder not in self._stores:
            from ctxlint.cache.store import Store

            self._stores[folder] = Store(folder)
        return self._stores[folder]

    # Scanning

    def holds_candidate(self, path: str, settings: Settings) -> bool:
        """As ``scan.holds_candidate`` of the file. Raises Unreadable."""
        store = self._store(settings)
        stamp = stamp_of(path) if store is not None else None
        if store is None or stamp is None:
            return holds_candidate(read_bytes(path))
        absolute = os.path.abspath(path)
        known = store.scanned(absolute, stamp)
        if known is None:
            from ctxlint.cache.store import Scanned

            known = Scanned(stamp, holds_candidate(read_bytes(path)), {})
            _keep(store, absolute, stamp, known)
        return known.candidate

    def mentions(self, path: str, settings: Settings, mentions: Mentions) -> bool:
        """Whether the file mentions what is looked for; a file that cannot be read does not."""
        store = self._store(settings)
        stamp = stamp_of(path) if store is not None else None
        known = store.scanned(os.path.abspath(path), stamp) if store is not None and stamp is not None else None
        question = _question(mentions) if known is not None else b""
        if known is not None and question in known.mentions:
            return known.mentions[question]
        try:
            found = mentions.in_data(read_bytes(path))
        except Unreadable:
            return False
        if store is not None and stamp is not None and known is not None:
            answers = dict(list(known.mentions.items())[-_QUESTIONS:])
            _keep(store, os.path.abspath(path), stamp, known._replace(mentions={**answers, question: found}))
        return found

    # Linting

    @stage("cache")
    def result(self, candidate: Candidate) -> FileResult | None:
        """What linting the file would give, where that is known."""
        store = self._store(candidate.settings)
        if store is None:
            return None
        absolute = os.path.abspath(candidate.path)
        for kept in store.kept(absolute, _key(candidate)):
            if self._holds_still(kept):
                found = self._restored(candidate, absolute, kept)
                if found is not None:
                    return found
        return None

    @stage("cache")
    def keep(self, candidate: Candidate, result: FileResult) -> None:
        """Remember what linting the file gave, before anything else was done with it."""
        store = self._store(candidate.settings)
        if store is None or result.failed or result.source is None or not result.read or result.consulted is None:
            return
        from ctxlint.cache.packed import pack
        from ctxlint.cache.store import Kept

        look_ups = tuple((each.importer, each.name, each.found) for each in result.consulted.look_ups)
        store.keep(os.path.abspath(candidate.path), Kept(_key(candidate), result.read, look_ups, pack(result)))

    def _holds_still(self, kept: Kept) -> bool:
        from ctxlint.files.modules import locate

        if any(self._digest(path) != content for path, content in kept.read):
            return False
        for importer, name, found in kept.look_ups:
            place = locate(importer, name)
            if (place.path if place is not None else None) != found:
                return False
        return True

    def _digest(self, path: str) -> bytes | None:
        if path not in self._digests:
            try:
                self._digests[path] = digest(read_bytes(path))
            except Unreadable:
                self._digests[path] = None
        return self._digests[path]

    def _restored(self, candidate: Candidate, absolute: str, kept: Kept) -> FileResult | None:
        """The result, with the text as it is on disk, which must be the one that was linted."""
        from ctxlint.cache.packed import Refused, unpack

        try:
            data = read_bytes(candidate.path)
            if dict(kept.read).get(absolute) != digest(data):
                return None
            source = decode(candidate.path, data)
            found = unpack(kept.packed)
        except (Unreadable, Undecodable, NotPython, Refused):
            return None
        return replace(found, source=source, settings=candidate.settings, outside=candidate.outside)


_QUESTIONS = 6
"""So many answers about one file are kept: a run asks until there are no new names."""

_MATTERLESS = frozenset(
    ["output_format", "show_fixes", "cache_dir", "no_cache", "config_file", "baseline", "required_version", "fix"]
)
"""The settings that no finding hangs on."""


@lru_cache(maxsize=64)
def _question(mentions: Mentions) -> bytes:
    """What is looked for, in short."""
    return digest(repr(sorted((module, sorted(names)) for module, names in mentions.by_module.items())).encode())


def _keep(store: Store, path: str, stamp: Stamp, scanned: Scanned) -> None:
    if stamp.is_settled:
        store.keep_scanned(path, scanned)


def _key(candidate: Candidate) -> bytes:
    """What is asked about a file: by which name, with which settings, knowing what of other files."""
    return digest(repr((candidate.path, _matter(candidate.settings), candidate.outside)).encode("utf-8", "replace"))


@lru_cache(maxsize=256)
def _matter(settings: Settings) -> str:
    return repr(
        [(each.name, getattr(settings, each.name)) for each in fields(settings) if each.name not in _MATTERLESS]
    )


@lru_cache(maxsize=256)
def _folder(settings: Settings) -> str:
    from ctxlint.cache.folder import cache_folder

    return cache_folder(settings)
