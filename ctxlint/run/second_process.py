"""A second process, which searches files of a project while a language server searches the others.

The first check of a document searches all of its project for several things, and the user waits for it. The process
begins when the client names its folders: it lists and reads the files of the projects there, and searches them for what
every first check searches for. Later nothing is left to share: what was searched for is known. So the process ends when
the server has nothing to do.
"""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from ctxlint.cache.run import answers_in
from ctxlint.run.worker_process import Died, WorkerProcess, can_copy, can_start
from ctxlint.run.workers import WORTH_SHARING, processors
from ctxlint.source.imports import Contents, Imports, read_import
from ctxlint.source.reading import Unreadable
from ctxlint.source.scanner import Transforming

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ctxlint.source.scanner import Search

    _Request = tuple[int, Search | None, list[str]]
    """A number, the search if it is another one than before, and the files."""
    _Answers = tuple[int, list[bool | None]]
    """The number of the request, and the answers."""

Asked = TypeVar("Asked")

PATIENCE = 10.0
"""How many seconds the process may take for an answer, or to accept a request: then something keeps it from running."""
_THEIRS = 64
"""How many files a request is about, at least: the process that is faster gets more of them."""
_AHEAD = 2
"""How many requests the second process has, so that it need not wait for the next one."""
_OWN = 8
"""How many files this process searches before it looks for an answer."""
_MOST_AHEAD = 2000
"""How many files of a project are searched before a document is opened."""


class SecondProcess:
    """The process, until it has ended or died: from then on, this one searches everything."""

    def __init__(self) -> None:
        """Start the process, which imports what searching needs, if there is a processor for it."""
        self._process: WorkerProcess | None = None
        self._is_copy = can_copy()
        self._prepared: set[str] = set()
        self._asked = self._answered = 0
        """The numbers of the last request, and of the last one that was answered."""
        self._is_stale = False
        if processors() > 1 and can_start():
            with suppress(Exception):  # whatever this platform raises: it is only faster with two
                self._process = WorkerProcess(None, is_copy=self._is_copy)
        self._begin(_import, None)

    @property
    def can_prepare(self) -> bool:
        """Whether it can search ahead: it reads long requests at once, as no new Python has to start."""
        return self._process is not None and self._is_copy and not self._is_stale

    def prepare(self, paths: Sequence[str]) -> None:
        """Let the process begin to search some files, which will be asked about."""
        new = [each for each in paths if each not in self._prepared]
        if len(new) >= WORTH_SHARING and self.can_prepare and self._begin(_prepare, new):
            self._prepared.update(new)

    def prepare_around(self, folder: str) -> None:
        """Let the process list the files of the project around a folder, and begin to search some of them."""
        if self.can_prepare:
            self._begin(_prepare_around, folder)

    def answers(self, imports: Imports, search: Search, paths: list[str]) -> list[bool | None]:
        """As ``answers_in``."""
        if self._is_stale:
            self.end()
        if not self._is_alive() or len(paths) < WORTH_SHARING:
            return answers_in(imports, search, paths)
        new: Search | None = search
        found: list[bool | None] = [None] * len(paths)
        theirs: dict[int, range] = {}
        start, end = 0, len(paths)  # of those that nobody has begun with: this process takes the last ones
        ahead = _AHEAD if self._is_copy else end // 2 // _THEIRS
        while start < end or theirs:
            while start < end and self._asked - self._answered < ahead:
                size = max(_THEIRS, (end - start) // 4) if self._is_copy else _THEIRS
                part = range(start, min(start + size, end))
                if not self._begin(_answer, (self._asked + 1, new, [paths[each] for each in part])):
                    break
                self._asked += 1
                theirs[self._asked] = part
                start, new = part.stop, None
            mine = range(max(start, end - _OWN), end)
            end = mine.start
            if not mine and self._is_copy:  # what the process is late with
                number, part = theirs.popitem()
                mine = part[-_OWN:]
                theirs.update({number: part[:-_OWN]} if len(part) > _OWN else {})
            found[mine.start : mine.stop] = answers_in(imports, search, [paths[each] for each in mine])
            for number, answers in self._new_answers(wait=not mine):
                if number in theirs:
                    at = theirs.pop(number).start
                    found[at : at + len(answers)] = answers
            if not self._is_alive():
                for part in theirs.values():
                    found[part.start : part.stop] = answers_in(imports, search, [paths[each] for each in part])
                theirs.clear()
        return found

    def _is_alive(self) -> bool:  # no property: it changes from one line to the next
        return self._process is not None

    def _new_answers(self, *, wait: bool) -> Iterator[_Answers]:
        """The answers that are there, after one that this process has to ``wait`` for; none if it has died."""
        process = self._process
        try:
            while process is not None and (wait or (self._is_copy and process.has_answer())):
                (answers,) = process.answer(PATIENCE if wait else None)
                if answers is not None:
                    self._answered, wait = answers[0], False
                    yield answers
        except Died:
            self.end()

    def _begin(self, function: Callable[[Asked], object], asked: Asked) -> bool:
        """Whether the process has begun to work on a request."""
        if self._process is not None:
            with suppress(Died):
                self._process.begin(function, [asked], PATIENCE)
                return True
            self.end()
        return False

    def forget(self) -> None:
        """Files have changed: the process, which keeps what they contained, answers nothing more."""
        self._is_stale = True

    def end(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.close()


# What the second process does


def _import(_: object) -> None:
    """Import what searching needs."""
    from ctxlint.run import answers, project_index  # noqa: F401


def _prepare(paths: Iterable[str]) -> None:
    """Search some files while nothing else is asked."""
    sys.setswitchinterval(_SECONDS_OF_A_TURN)
    threading.Thread(target=_search_ahead, args=(paths,), daemon=True).start()


def _prepare_around(folder: str) -> None:
    """Search the project around a folder, or the beginning of a large one: perhaps no document is opened there."""
    _prepare(_project_around(folder))


def _project_around(folder: str) -> Iterator[str]:
    from ctxlint.config.configuration import Configuration
    from ctxlint.run.project_index import ProjectIndex

    files = ProjectIndex((), Configuration(root=folder)).rest(folder).files
    yield from (each.path for each, _ in files[:_MOST_AHEAD])


def _search_ahead(paths: Iterable[str]) -> None:
    from ctxlint.run.answers import NamingMethods

    searches = (Transforming(), NamingMethods())
    for path in paths:
        if path in _BEGUN:
            continue
        _BEGUN.add(path)
        _IS_FREE.wait()
        for each in searches:
            _KNOWN[each.question, path] = answers_in(_IMPORTS, each, [path])[0]
        with suppress(Unreadable):  # who uses the names of a file is asked next
            for statement in _IMPORTS.of_file(path):
                read_import(statement)


def _answer(asked: _Request) -> _Answers:
    """The answers to a request. The search comes with the first one about it."""
    number, search, paths = asked
    if search is not None:
        _SEARCH[:] = [search]
    search = _SEARCH[0]
    _IS_FREE.clear()
    try:
        question = search.question
        unknown = [each for each in paths if (question, each) not in _KNOWN]
        found = dict(zip(unknown, answers_in(_IMPORTS, search, unknown)))
        return number, [found[each] if each in found else _KNOWN[question, each] for each in paths]
    finally:
        _IS_FREE.set()


_IMPORTS = Imports()
_IMPORTS.contents = Contents()
_KNOWN: dict[tuple[str, str], bool | None] = {}
"""What was searched ahead: the answers, by the question and the file."""
_BEGUN: set[str] = set()
"""The files that were searched ahead, and those that are being searched."""
_SEARCH: list[Search] = []
"""The latest search."""
_IS_FREE = threading.Event()
"""Set while the process waits for a request."""
_IS_FREE.set()
_SECONDS_OF_A_TURN = 0.0005
"""How long a request waits for the search ahead to pause."""
