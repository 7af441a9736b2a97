"""The pipeline: discover, scan, parse, analyse, check, suppress. Reporting and fixing come after it.

This module handles many files, ``lint_file`` a single one. Nothing heavy is imported before a file contains a
candidate.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from ctxlint.cache.run import Cache
from ctxlint.libcst_import import import_libcst
from ctxlint.profiling import stage, stage_of_each
from ctxlint.result import Candidate, FileResult, without_needless_text
from ctxlint.run.batches import Batches
from ctxlint.run.lint_file import lint_file, unreadable
from ctxlint.run.project_index import ProjectIndex
from ctxlint.run.workers import Workers
from ctxlint.source.discover import Found, Missing, Skipped, find_files, is_excluded, path_of
from ctxlint.source.reading import Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from ctxlint.config.configuration import Configuration
    from ctxlint.config.settings import Settings
    from ctxlint.run.answers import Other
    from ctxlint.source.scanner import Search


def lint_paths(
    paths: Sequence[str],
    configuration: Configuration,
    *,
    jobs: int = 1,
    finish: Callable[[FileResult], FileResult] | None = None,
    watch: Callable[[Iterator[FileResult], int], Iterator[FileResult]] | None = None,
    cached: bool = False,
) -> Iterator[FileResult]:
    """Lint every file under ``paths``, each with the settings of the nearest configuration file.

    Yields one result for each file, skipped ones included, in no particular order.

    Args:
        paths: Files and folders.
        configuration: Finds the settings.
        jobs: The maximum number of processes, 0 for one per processor.
        finish: Applied to each result in the process that created it.
        watch: Passes on the results that take time, given their number.
        cached: Reuse earlier results for unchanged files, unless fixes are applied.

    Raises:
        ConfigurationError: A configuration cannot be used.
    """
    cache = Cache(used=cached)
    # The cache stores results before ``finish``.
    work = partial(_lint_candidate, finish=None if cached else finish)
    with Workers(jobs, prepare) as workers:
        # They may all be cached.
        begin = (lambda _candidates, _count: None) if cached else partial(workers.begin, work)
        lint = partial(_lint_candidates, cache=cache, work=partial(workers.map, work), finish=finish, watch=watch)
        yield from _lint_paths(paths, configuration, cache, begin, lint, finish, workers.at_once)
    cache.write()


def _lint_paths(
    paths: Sequence[str],
    configuration: Configuration,
    cache: Cache,
    begin: Callable[[Sequence[Candidate], int], None],
    lint: Callable[[Sequence[Candidate]], Iterator[FileResult]],
    finish: Callable[[FileResult], FileResult] | None,
    at_once: int,
) -> Iterator[FileResult]:
    candidates: list[Candidate] = []
    batches, first = Batches(at_once), list[Candidate]()
    others: list[Other] = []
    excluded: list[Other] = []
    not_read: list[FileResult] = []
    index = ProjectIndex(paths, configuration)
    files: Iterable[Other] = _files(paths, configuration, not_read)
    if cache.used:
        files = list(files)
        if all(map(index.covers, {found.folder for found, _settings in files})):
            before = cache.results_of_run(paths, files, configuration)
            if before is not None:
                known, left_out = before
                yield from not_read
                yield from (_finished(each, finish) for each in known.values())
                yield from _not_linted((each for each in files if each[0].path not in known), left_out)
                return
    for found, settings in files:
        try:
            holds = _holds_candidate(cache, found, settings)
        except Unreadable as error:
            cache.forget_run()
            yield unreadable(found.path, str(error), settings)
            continue
        if not holds:
            others.append((found, settings))
            continue
        candidate = admit(configuration, found, settings)
        if candidate is None:
            excluded.append((found, settings))
            continue
        candidates.append(candidate)
        if batches.add(candidate) == 0:
            first.append(candidate)
        begin(first, len(candidates))
    yield from not_read
    left_out = [found.path for found, _settings in excluded]
    yield from _not_linted(excluded, left_out)
    if not candidates and not any(index.leads(path_of(found)) for found, _settings in others):
        cache.keep_run((), left_out)
        yield from _not_linted(others)
        return
    from ctxlint.run.cross_file import lint_together

    ask = (partial(mentioning, cache), partial(admit, configuration))
    linted = set[str]()
    yield from _noted(lint_together(candidates, others, *ask, lint, index, at_once), linted)
    if linted.issuperset(each.path for each in candidates):
        cache.keep_run(linted, left_out)


def _files(paths: Sequence[str], configuration: Configuration, others: list[FileResult]) -> Iterator[Other]:
    """The files under ``paths``, with their settings; ``others`` gets the results for paths that cannot be read."""
    for found, settings in stage_of_each("discover", _find(paths, configuration)):
        if isinstance(found, Skipped):
            lost = ((0, f"{found.reason}; nothing in it was linted"),) if found.lost else ()
            others.append(FileResult(found.path, skipped=found.reason, warnings=lost, settings=settings))
        elif isinstance(found, Missing):
            others.append(unreadable(found.path, found.reason, settings))
        else:
            yield found, settings


def _not_linted(files: Iterable[Other], excluded: Collection[str] = ()) -> Iterator[FileResult]:
    """The results of files that were only scanned, or that the settings next to them exclude."""
    for found, settings in files:
        yield FileResult(found.path, skipped="excluded" if found.path in excluded else "", settings=settings)


def _noted(results: Iterable[FileResult], linted: set[str]) -> Iterator[FileResult]:
    """The results; ``linted`` gets the paths of those that were linted."""
    for result in results:
        if result.linted:
            linted.add(result.path)
        yield result


@stage("scan")
def _holds_candidate(cache: Cache, found: Found, settings: Settings) -> bool:
    return cache.holds_candidate(found, settings)


@stage("scan")
def mentioning(cache: Cache, others: Iterable[Other], search: Search) -> list[Other]:
    """The files that a search finds."""
    return list(cache.mentioning(others, search))


def _lint_candidates(
    todo: Sequence[Candidate],
    cache: Cache,
    work: Callable[[Sequence[Candidate]], Iterator[FileResult]],
    finish: Callable[[FileResult], FileResult] | None,
    watch: Callable[[Iterator[FileResult], int], Iterator[FileResult]] | None,
) -> Iterator[FileResult]:
    """The results for some files, in order: from the cache if possible."""
    known = [cache.result(candidate) for candidate in todo]
    unknown = [candidate for candidate, result in zip(todo, known) if result is None]
    found = work(unknown)
    fresh = iter(found if watch is None or not unknown else watch(found, len(unknown)))
    for candidate, before in zip(todo, known):
        result = next(fresh) if before is None else before
        if before is None:
            cache.keep(candidate, result)
        yield _finished(result, finish) if cache.used else result


def files_under(paths: Sequence[str], configuration: Configuration) -> Iterator[str]:
    """The files that ``lint_paths`` would read.

    Raises:
        ConfigurationError: A configuration cannot be used.
    """
    for found, settings in _find(paths, configuration):
        if isinstance(found, Found) and not _left_out_by_nearer(found, configuration, settings):
            yield found.path


def _find(paths: Sequence[str], configuration: Configuration) -> Iterator[tuple[Found | Skipped | Missing, Settings]]:
    """The files under ``paths``, each with the settings for the folder of its path."""
    groups: dict[Settings, list[str]] = {}
    for path in paths:
        folder = path if os.path.isdir(path) else os.path.dirname(path)
        groups.setdefault(configuration.settings_for(folder), []).append(path)
    seen: set[tuple[type, str]] = set()
    for settings, members in groups.items():
        for found in find_files(
            members,
            exclude=settings.exclude_globs,
            extend_exclude=settings.extend_exclude,
            root=settings.root,
            force_exclude=settings.force_exclude,
            respect_gitignore=settings.respect_gitignore,
        ):
            if len(groups) > 1:
                name = (type(found), os.path.realpath(found.path))  # skipped under one name, found under another
                if name in seen:
                    continue
                seen.add(name)
            yield found, settings


def admit(configuration: Configuration, found: Found, settings: Settings) -> Candidate | None:
    """A file as a candidate, with the settings that apply to it, unless these exclude it."""
    if _left_out_by_nearer(found, configuration, settings):
        return None
    return Candidate(found.path, configuration.settings_for_file(found.path))


def _left_out_by_nearer(found: Found, configuration: Configuration, settings: Settings) -> bool:
    """Whether a configuration file nearer than that of the walk excludes a file."""
    nearest = configuration.settings_for(os.path.dirname(found.path))
    return nearest is not settings and not found.explicit and is_left_out(found.path, nearest)


def is_left_out(path: str, settings: Settings) -> bool:
    """Whether ``exclude`` or ``extend-exclude`` matches the file or a folder above it."""
    return is_excluded(path, [*settings.exclude_globs, *settings.extend_exclude], settings.root)


def prepare() -> None:
    """Import what linting a file needs."""
    import_libcst()
    from ctxlint.model.reader import read  # noqa: F401
    from ctxlint.rules import all_rules

    all_rules()


def _lint_candidate(candidate: Candidate, finish: Callable[[FileResult], FileResult] | None = None) -> FileResult:
    return without_needless_text(_finished(lint_file(*candidate), finish))


def _finished(result: FileResult, finish: Callable[[FileResult], FileResult] | None) -> FileResult:
    """The result after ``finish``, with the facts for others from before it."""
    if finish is None:
        return result
    said = finish(result)._replace(outside=result.outside, facts=result.facts, consulted=result.consulted)
    return said._replace(alone=result.alone)
