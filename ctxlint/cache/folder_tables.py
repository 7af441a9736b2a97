"""The content of the cache of a project.

First, facts derived from the bytes of each file, valid as long as its stamp is unchanged: whether it contains a
candidate, whether it mentions what a run searched for, and a digest of its content. Second, its findings, valid as long
as its content, its settings, the facts of other files about it, and the content of all its imports are unchanged.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ctxlint.cache.file_records import Refused, dump, load, reader
from ctxlint.cache.stamp import digest
from ctxlint.named_tuples import NamedTuple
from ctxlint.result import FileResult

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.cache.stamp import Stamp
    from ctxlint.cache.store import Store
    from ctxlint.diagnostic import Diagnostic
    from ctxlint.model.index.outside_facts import FileFacts, OutsideFacts

_KEPT_FINDINGS = 8
"""For each file: it is checked by itself, and again with facts of others, and perhaps under other settings."""

_QUESTIONS = 64
"""The number of answers to keep for a file: a run searches until there are no new names."""


class Seen(NamedTuple):
    """Facts derived from the bytes of a file, as far as they were needed. ``content`` is a digest of them."""

    candidate: bool | None = None
    content: bytes | None = None
    answers: str = ""
    """The key of its ``Answers``: most files share the same ones."""


class Answers(NamedTuple):
    """Whether a file uses one of the searched names, by a digest of these names."""

    given: tuple[tuple[bytes, bool], ...] = ()


Read = tuple[tuple[str, bytes | None], ...]
LookUps = tuple[tuple[tuple[str, str], str | None], ...]


class Kept(NamedTuple):
    """The findings in a file. ``key`` is the digest of the request, ``read`` and ``look_ups`` are the dependencies.

    A look-up is the folder of a file, what it imports, and the file that this resolves to, if any. ``packed`` is a
    ``Verdict``, parsed only if it is valid.
    """

    key: bytes
    read: Read
    look_ups: LookUps
    packed: str


class Verdicts(NamedTuple):
    """The findings in a file, the newest first."""

    every: tuple[Kept, ...] = ()


class Verdict(NamedTuple):
    """The cached part of a result: its facts about the code, and no text that could be written anywhere."""

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
        """``store`` has the content."""
        self.store = store
        self.seen = self.store.table("seen", Seen)
        self._answers = self.store.table("answers", Answers)
        self._found = self.store.table("found", Verdicts)
        self._names: dict[Answers, str] = {}
        self._known: dict[str, dict[bytes, bool]] = {}
        """What ``Answers`` say, by their key: a run asks it of most files."""
        self._added: dict[tuple[str, bytes, bool], str] = {}
        """The key of ``Answers`` to which an answer was added, by their key before."""

    # Facts from bytes

    def see(self, path: str, stamp: Stamp, *, candidate: bool | None = None) -> None:
        """Store the facts of a file with this stamp."""
        self.seen.put(path, Seen(candidate), tuple(stamp))

    def keep_content(self, path: str, content: bytes | None) -> None:
        """Store the digest of a file that was read in this run."""
        seen = self.seen.now(path)
        if seen is not None and seen.content != content:
            self.seen.replace(path, seen._replace(content=content))

    def answer(self, path: str, question: bytes) -> bool | None:
        """Whether a file mentions the searched names; None if unknown."""
        seen = self.seen.now(path)
        if seen is None or not seen.answers:
            return None
        known = self._known.get(seen.answers)
        if known is None:
            known = self._known[seen.answers] = dict(self._given(seen))
        return known.get(question)

    def keep_answer(self, path: str, question: bytes, answer: bool) -> None:
        """Store whether a file that was read in this run mentions the searched names."""
        seen = self.seen.now(path)
        if seen is None:
            return
        added = (seen.answers, question, answer)
        name = self._added.get(added)
        if name is None:
            answers = Answers((*self._given(seen), (question, answer))[-_QUESTIONS:])
            name = self._added[added] = self._name(answers)
        self.seen.replace(path, seen._replace(answers=name))

    def _given(self, seen: Seen) -> tuple[tuple[bytes, bool], ...]:
        answers = self._answers.now(seen.answers) or self._answers.get(seen.answers)
        return answers.given if answers is not None else ()

    def _name(self, answers: Answers) -> str:
        if answers not in self._names:
            name = self._names[answers] = digest(dump(answers)).hex()
            self._answers.put(name, answers)
        return self._names[answers]

    # Findings

    def kept(self, path: str, key: bytes) -> Iterator[Kept]:
        """The findings in the file with this absolute path for the same request, the newest first."""
        found = self._found.now(path) or self._found.get(path)
        for entry in found.every if found is not None else ():
            if entry.key == key:
                yield entry

    def keep(self, path: str, entry: Kept) -> None:
        """Store findings."""
        found = self._found.now(path) or self._found.get(path) or Verdicts()
        others = (each for each in found.every if each[:3] != entry[:3])
        self._found.put(path, Verdicts((entry, *others)[:_KEPT_FINDINGS]))


def packed(result: FileResult) -> str:
    """A result without its text and without what the reader knows anyway."""
    return dump(Verdict(*(getattr(result, name) for name in Verdict._fields))).decode("ascii")


def unpacked(text: str, path: str) -> FileResult:
    """The result for the file at ``path`` that was packed.

    Raises:
        Refused: It is about another file.
    """
    verdict: Verdict = reader(Verdict)(load(text.encode("ascii", "replace")))
    if any(each.path != path for each in (*verdict.diagnostics, *verdict.hidden)):
        raise Refused
    if verdict.facts is not None and verdict.facts.path != os.path.abspath(path):
        raise Refused
    return FileResult(path, **verdict._asdict(), linted=True)
