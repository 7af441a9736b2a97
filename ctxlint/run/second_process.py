"""A second process, which searches half of the files of a project while a language server searches the others.

The first check of a document searches all of its project for several things, and the user waits for it. Nothing is left
to share later: what was searched for is known. So the process ends when the server has nothing to do.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ctxlint.cache.run import answers_in
from ctxlint.run.worker_process import Died, WorkerProcess, can_copy, can_start
from ctxlint.run.workers import WORTH_SHARING, processors
from ctxlint.source.imports import Contents, Imports

if TYPE_CHECKING:
    from ctxlint.source.scanner import Search


PATIENCE = 10.0
"""How many seconds an answer may take, after this process has its own: then something keeps the other from running."""


class SecondProcess:
    """The process, until it has ended or died: from then on, this one searches everything."""

    def __init__(self) -> None:
        """Start the process, which imports what searching needs, if there is a processor for it."""
        self._process: WorkerProcess | None = None
        if processors() > 1 and can_start():
            with suppress(Exception):  # whatever this platform raises: it is only faster with two
                self._process = WorkerProcess(None, is_copy=can_copy())
        self._asked = 0
        self._is_stale = False
        self._begin(None, [])

    def answers(self, imports: Imports, search: Search, paths: list[str]) -> list[bool | None]:
        """As ``answers_in``."""
        if self._is_stale:
            self.end()
        theirs, mine = paths[::2], paths[1::2]
        if self._process is None or len(paths) < WORTH_SHARING or not self._begin(search, theirs):
            return answers_in(imports, search, paths)
        own = answers_in(imports, search, mine)
        try:
            while self._asked:
                others: list[bool | None] = self._process.answer(PATIENCE)[0]
                self._asked -= 1
        except Died:
            self.end()
            others = answers_in(imports, search, theirs)
        found: list[bool | None] = [None] * len(paths)
        found[::2], found[1::2] = others, own
        return found

    def _begin(self, search: Search | None, paths: list[str]) -> bool:
        """Whether the process has begun to search."""
        if self._process is not None:
            with suppress(Died):
                self._process.begin(_answers, [(search, paths)])
                self._asked += 1
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


def _answers(asked: tuple[Search | None, list[str]]) -> list[bool | None]:
    """The answers of the second process; with nothing to search for, it only imports what it will need."""
    search, paths = asked
    if search is None:
        from ctxlint.run import answers  # noqa: F401

        return []
    return answers_in(_IMPORTS, search, paths)


_IMPORTS = Imports()
_IMPORTS.contents = Contents()
