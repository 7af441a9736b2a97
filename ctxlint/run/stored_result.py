"""The result of an earlier run for one file, without analysing anything; and storing one for later runs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ctxlint.cache.run import Cache
from ctxlint.run.cross_file import lint_together
from ctxlint.run.lint_file import lint_file
from ctxlint.run.pipeline import admit, mentioning
from ctxlint.run.project_index import ProjectIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ctxlint.config.configuration import Configuration
    from ctxlint.result import Candidate, FileResult


class _NotStored(Exception):
    """A file would have to be linted."""


def earlier_result(file: Candidate, configuration: Configuration) -> FileResult | None:
    """What ``store_result`` stored for a file; None if anything that it depends on has changed."""

    def stored(candidate: Candidate, cache: Cache) -> FileResult:
        found = cache.result(candidate)
        if found is None:
            raise _NotStored
        return found

    try:
        return _result(file, configuration, Cache(used=True), stored)
    except _NotStored:
        return None


def store_result(file: Candidate, configuration: Configuration) -> None:
    """Lint a file as it is on the disk, as far as no earlier result is stored, and store the result."""

    def linted(candidate: Candidate, cache: Cache) -> FileResult:
        found = cache.result(candidate)
        if found is None:
            found = lint_file(*candidate)
            cache.keep(candidate, found)
        return found

    cache = Cache(used=True)
    _result(file, configuration, cache, linted)
    cache.write()


def _result(
    file: Candidate, configuration: Configuration, cache: Cache, lint: Callable[[Candidate, Cache], FileResult]
) -> FileResult:
    def lint_all(todo: Sequence[Candidate]) -> Iterator[FileResult]:
        for each in todo:
            yield lint(each, cache)

    ask = (partial(mentioning, cache), partial(admit, configuration))
    (found,) = lint_together([file], (), *ask, lint_all, ProjectIndex((), configuration))
    return found
