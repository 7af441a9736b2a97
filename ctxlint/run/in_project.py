"""Project facts for a text that is linted by itself: in an editor, by flake8 or the API, from a pipe.

Its Functions and calls are collected before it is checked, and then other files are searched for facts, as in a run
over the whole project. So it has the same findings and fixes as in such a run.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from ctxlint.cache.folder_tables import Tables
from ctxlint.cache.run import Cache, Place
from ctxlint.cache.store import MemoryStore
from ctxlint.config.configuration import Configuration
from ctxlint.model.index.outside_facts import ProjectQuestion
from ctxlint.named_tuples import NamedTuple
from ctxlint.result import Candidate, FileResult
from ctxlint.run.answers import Answering, AnsweringOften, knowing
from ctxlint.run.lint_file import forget_read_files, lint_file
from ctxlint.run.pipeline import admit, mentioning
from ctxlint.run.project_index import ProjectIndex
from ctxlint.source.discover import path_of
from ctxlint.source.imports import Contents
from ctxlint.source.modules import root_of, root_of_file
from ctxlint.source.reading import OPEN

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence

    from ctxlint.cache.run import Share
    from ctxlint.config.settings import Settings
    from ctxlint.model.index.outside_facts import FileFacts, OutsideFacts
    from ctxlint.model.reader import FindOutsideFacts, Reader
    from ctxlint.run.answers import Other
    from ctxlint.source.scanner import Search


_ANSWERS_KEPT = 8
"""While a statement is typed, the text has the Function around it in one moment and lacks it in the next."""


class _Answer(NamedTuple):
    """The facts of other files about a text; they are the same for every text with the same ``facts``."""

    leads: frozenset[str]
    facts: dict[OutsideFacts | None, FileFacts]
    found: OutsideFacts

    def holds_for(self, reader: Reader) -> bool:
        """Whether another text has the same facts."""
        return all(reader.all_facts(told) == facts for told, facts in self.facts.items())


_PARTS_KEPT = 512
_AT_ONCE = 64


class _Searched(NamedTuple):
    """A search of files on the disk: which were searched, and which of them were found."""

    among: frozenset[str]
    found: frozenset[str]

    @staticmethod
    def of(listed: Iterable[str], found: Iterable[Other]) -> _Searched:
        """The search of files that found some of them."""
        return _Searched(frozenset(listed).difference(OPEN), frozenset(path_of(each[0]) for each in found))


class Surroundings:
    """The projects around texts. Facts of other files are computed once, until ``refresh``."""

    def __init__(
        self, configuration: Configuration, *, on_disk: bool = False, resumes: bool = False, share: Share | None = None
    ) -> None:
        """``on_disk`` reuses the results of earlier runs, and stores new ones; ``resumes`` only reuses them."""
        self._configuration = configuration
        self._share = share
        self._tables = None if on_disk else Tables(MemoryStore())
        self._resumed: dict[Place, Tables] | None = {} if resumes else None
        self.refresh()

    def refresh(self) -> None:
        """Other files may have changed: check which of them did."""
        self._index = ProjectIndex((), self._configuration)
        self._facts: dict[Candidate, FileResult] = {}
        self._answers: dict[Candidate, list[_Answer]] = {}
        self._ahead: dict[str, Iterator[None]] = {}
        self._searched: OrderedDict[Hashable, _Searched] = OrderedDict()
        """By a part of what was searched for."""
        for tables in (self._tables, *(self._resumed or {}).values()):
            if tables is not None:
                tables.seen.forget_now()
        self._cache = Cache(used=True, tables=self._tables, resumed=self._resumed)
        self._cache.share = self._share

    def paths(self, path: str) -> list[str]:
        """The files of the project around a file, which its check may search."""
        return [each[0].path for each in self._index.rest(os.path.dirname(path)).files]

    def leads(self, path: str, data: bytes) -> frozenset[str]:
        """The names by which a text at this path may call Functions of other files."""
        return self._index.leads(os.path.abspath(path), data)

    def finder(self, settings: Settings, leads: frozenset[str]) -> FindOutsideFacts:
        """The outside facts of a text with these settings and leads, on demand."""
        return partial(self._outside, settings=settings, leads=leads, contents=Contents())

    def _outside(self, reader: Reader, settings: Settings, leads: frozenset[str], contents: Contents) -> OutsideFacts:
        from ctxlint.run.cross_file import outside_facts

        own = Candidate(reader.unit.path, settings)
        answers = self._answers.setdefault(own, [])
        for at, known in enumerate(answers):
            if known.leads == leads and known.holds_for(reader):
                answers.insert(0, answers.pop(at))
                return known.found
        asked: dict[OutsideFacts | None, FileFacts] = {}
        lint = partial(self._lint, own=own, reader=reader, asked=asked)
        others = (self._mentioning, partial(admit, self._configuration), lint, self._index)
        with self._cache.keeping(contents), knowing(reader.unit.source.text, reader.unit.tree):
            found = outside_facts(own, leads, *others)
        self._cache.write()
        answers.insert(0, _Answer(leads, asked, found))
        del answers[_ANSWERS_KEPT:]
        return found

    def ask_ahead(self, path: str, go_on: Callable[[], None]) -> None:
        """Find the files that set names for a file: a keystroke may ask for that, and should not wait for a search.

        ``go_on`` is called again and again, and may raise; what was found until then is kept.
        """
        for _ in self._ahead.setdefault(path, self._asking_ahead(path)):
            go_on()

    def _asking_ahead(self, path: str) -> Iterator[None]:
        """Search some files after the other."""
        asked, root = ProjectQuestion("assigns", os.path.abspath(path), ""), root_of_file(path)
        files = self._index.rest(os.path.dirname(path)).files
        others = [each for each in files if root_of(each[0].folder) == root and path_of(each[0]) != asked.path]
        found: list[Other] = []
        for at in range(0, len(others), _AT_ONCE):
            yield
            found += mentioning(self._cache, others[at : at + _AT_ONCE], Answering([asked]))
        self._note([asked], _Searched.of((path_of(each[0]) for each in others), found))
        for each in found:
            yield
            mentioning(self._cache, [each], AnsweringOften(asked, 1))

    def _mentioning(self, others: Iterable[Other], search: Search) -> list[Other]:
        """The files that a search finds; where earlier ones have found nothing, only what they did not search for."""
        listed = {path_of(each[0]): each for each in others}
        if len(listed) < 2:  # as quick to search again
            return mentioning(self._cache, listed.values(), search)
        known = [self._searched[each] for each in search.parts if each in self._searched]
        new = [each for each in search.parts if each not in self._searched]
        if not known:
            found = mentioning(self._cache, listed.values(), search)
            self._note(new, _Searched.of(listed, found))
            return found
        if new:
            known.append(_Searched.of(listed, self._mentioning(listed.values(), search.limited_to(new))))
        each_once = {id(each): each for each in known}.values()  # the parts of one search have the same
        without = frozenset.intersection(*(each.among - each.found for each in each_once))
        rest = [each for path, each in listed.items() if path not in without or path in OPEN]
        return mentioning(self._cache, rest, search)

    def _note(self, parts: Collection[Hashable], searched: _Searched) -> None:
        """Note a search for these parts."""
        self._searched.update(dict.fromkeys(parts, searched))
        while len(self._searched) > max(_PARTS_KEPT, len(parts)):
            self._searched.popitem(last=False)

    def _lint(
        self,
        todo: Sequence[Candidate],
        own: Candidate,
        reader: Reader,
        asked: dict[OutsideFacts | None, FileFacts],
    ) -> Iterator[FileResult]:
        """The facts of files: those of the text itself, which go into ``asked``, and those of others, each once."""
        for candidate in todo:
            if candidate.path == own.path:
                facts = asked[candidate.outside] = reader.all_facts(candidate.outside)
                yield FileResult(own.path, outside=candidate.outside, facts=facts)
                continue
            is_open = os.path.abspath(candidate.path) in OPEN
            found = self._facts.get(candidate) or (None if is_open else self._cache.result(candidate))
            if found is None:
                found = lint_file(*candidate)
                if not is_open:  # the cache is about files on the disk
                    self._cache.keep(candidate, found)
            self._facts[candidate] = found
            yield found


def surroundings_of(path: str, settings: Settings) -> Surroundings | None:
    """The surroundings of a file whose settings apply to its whole project; None if the text is not a file."""
    return _surroundings(settings) if os.path.isfile(path) else None


@lru_cache(maxsize=4)
def _surroundings(settings: Settings) -> Surroundings:
    return Surroundings(Configuration(fixed=settings))


def forget_other_files() -> None:
    """Read other files again from now on: for processes that outlive changes to files."""
    _surroundings.cache_clear()
    forget_read_files()
