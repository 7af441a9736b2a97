"""What the cache of a project holds.

What the bytes of each file say, as long as the system says that the file is as it was: whether it holds a candidate,
whether it mentions what a run looked for, and what stands for its content. And what was found in a file, as long as
its content is the same, its settings are, what other files say of it, and the content of all that its imports lead to.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from ctxlint.cache.file_records import Refused, dump, load, reader
from ctxlint.cache.stamp import digest
from ctxlint.result import FileResult

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.cache.stamp import Stamp
    from ctxlint.cache.store import Store
    from ctxlint.diagnostic import Diagnostic
    from ctxlint.model.index.outside_facts import FileFacts, OutsideFacts

_KEPT_FINDINGS = 8
"""For each file: it is judged for itself, and again with what others say, and perhaps under other settings."""

_QUESTIONS = 6
"""So many answers about one file are kept: a run asks until there are no new names."""


class Seen(NamedTuple):
    """What the bytes of a file say. ``content`` stands for all of them, where somebody asked for that."""

    candidate: bool
    content: bytes | None = None
    answers: str = ""
    """The name of its ``Answers``: most files share them all."""


class Answers(NamedTuple):
    """Whether a file uses one of the names that were looked for, by what stands for these names."""

    given: tuple[tuple[bytes, bool], ...] = ()


class Kept(NamedTuple):
    """What was found in a file. ``key`` is what was asked, ``read`` and ``look_ups`` what the answer hangs on.

    A look-up is the folder of a file, what it imports, and the file that this leads to, if any. ``packed`` is a
    ``Verdict``, read only where it counts.
    """

    key: bytes
    read: tuple[tuple[str, bytes | None], ...]
    look_ups: tuple[tuple[tuple[str, str], str | None], ...]
    packed: str


class Verdicts(NamedTuple):
    """What was found in a file, the newest first."""

    every: tuple[Kept, ...] = ()


class Verdict(NamedTuple):
    """What is kept of a result: what it says about the code, and nothing that could be written anywhere."""

    diagnostics: tuple[Diagnostic, ...]
    hidden: tuple[Diagnostic, ...]
    warnings: tuple[tuple[int, str], ...]
    broken: int
    function_count: int
    outside: OutsideFacts | None
    facts: FileFacts | None


class Tables:
    """The tables of one project."""

    def __init__(self, store: Store) -> None:
        """What is there is in ``store``."""
        self.store = store
        self.seen = self.store.table("seen", Seen)
        self._answers = self.store.table("answers", Answers)
        self._found = self.store.table("found", Verdicts)
        self._names: dict[Answers, str] = {}

    # What bytes say

    def see(self, path: str, stamp: Stamp, *, candidate: bool) -> None:
        """Remember a file that was read."""
        self.seen.put(path, Seen(candidate), tuple(stamp))

    def keep_content(self, path: str, content: bytes | None) -> None:
        """Remember what stands for the content of a file that was seen in this run."""
        seen = self.seen.now(path)
        if seen is not None and seen.content != content:
            self.seen.replace(path, seen._replace(content=content))

    def answer(self, path: str, question: bytes) -> bool | None:
        """Whether a file mentions what is looked for; None where that is not known."""
        return dict(self._given(path)).get(question)

    def keep_answer(self, path: str, question: bytes, answer: bool) -> None:
        """Remember whether a file that was seen in this run mentions what is looked for."""
        seen = self.seen.now(path)
        if seen is not None:
            answers = Answers((*self._given(path), (question, answer))[-_QUESTIONS:])
            self.seen.replace(path, seen._replace(answers=self._name(answers)))

    def _given(self, path: str) -> tuple[tuple[bytes, bool], ...]:
        seen = self.seen.now(path)
        answers = self._answers.now(seen.answers) or self._answers.get(seen.answers) if seen is not None else None
        return answers.given if answers is not None else ()

    def _name(self, answers: Answers) -> str:
        if answers not in self._names:
            name = self._names[answers] = digest(dump(answers)).hex()
            self._answers.put(name, answers)
        return self._names[answers]

    # Findings

    def kept(self, path: str, key: bytes) -> Iterator[Kept]:
        """What was found in the file with this absolute path when the same was asked, the newest first."""
        found = self._found.now(path) or self._found.get(path)
        for kept in found.every if found is not None else ():
            if kept.key == key:
                yield kept

    def keep(self, path: str, kept: Kept) -> None:
        """Remember what was found."""
        found = self._found.now(path) or self._found.get(path) or Verdicts()
        others = (each for each in found.every if each[:3] != kept[:3])
        self._found.put(path, Verdicts((kept, *others)[:_KEPT_FINDINGS]))


def packed(result: FileResult) -> str:
    """A result without its text and all that is known to whoever asks for it."""
    return dump(Verdict(*(getattr(result, name) for name in Verdict._fields))).decode("ascii")


def unpacked(text: str, path: str) -> FileResult:
    """The result for the file at ``path`` that was packed. Raises Refused where it is about another file."""
    verdict: Verdict = reader(Verdict)(load(text.encode("ascii", "replace")))
    if any(each.path != path for each in (*verdict.diagnostics, *verdict.hidden)):
        raise Refused
    if verdict.facts is not None and verdict.facts.path != os.path.abspath(path):
        raise Refused
    return FileResult(path, **verdict._asdict(), linted=True)
