"""A text that records the queries on its whole content, and has most of the answers from an earlier version."""

from __future__ import annotations

from functools import cached_property

from ctxlint.records import record
from ctxlint.source.changes import change_between
from ctxlint.source.source import Source, comments_in


@record
class RecordedSource(Source):
    """A text that records the queries on its whole content."""

    @cached_property
    def queries(self) -> dict[tuple[str, str], object]:
        """The queries so far, and their answers."""
        return {}

    def holds(self, part: str) -> bool:
        """See ``Source``."""
        return self._search.place(part) >= 0

    @cached_property
    def _search(self) -> _Search:
        found = _Search(self.text, _SEARCHES.pop(self.path, None))
        _SEARCHES[self.path] = found
        while len(_SEARCHES) > _SEARCHES_KEPT:
            del _SEARCHES[next(iter(_SEARCHES))]
        return found

    def mentions(self, word: str) -> bool:
        """See ``Source``."""
        return bool(self._answer(("mentions", word)))

    def quotes(self, word: str) -> bool:
        """See ``Source``."""
        return bool(self._answer(("quotes", word)))

    def count_as_attribute(self, word: str) -> int:
        """See ``Source``."""
        found = self._answer(("attribute", word))
        return found if isinstance(found, int) else 0

    def read_whole(self) -> None:
        """See ``Source``."""
        self._answer(("whole", ""))

    def read_comments(self) -> None:
        """See ``Source``."""
        self._answer(("comments", ""))

    def depends_on(self, question: tuple[str, str]) -> None:
        """See ``Source``."""
        _QUESTIONS[self.path] = self.questions | {question}

    @property
    def questions(self) -> frozenset[tuple[str, str]]:
        """The questions on whose answers something in this text, or in an earlier one, depends."""
        return _QUESTIONS.get(self.path, frozenset())

    def parses(self, *, is_whole: bool) -> bool:
        """See ``Source``."""
        self.queries["parses", ""] = is_whole
        return is_whole

    def note_parsed(self, *, is_whole: bool) -> None:
        """What ``parses`` is going to be told."""
        self._answers["parses", ""] = is_whole

    @cached_property
    def _answers(self) -> dict[tuple[str, str], object]:
        """All answers so far: many Functions have the same queries."""
        return {}

    def answer_to(self, query: tuple[str, str]) -> object:
        """The answer to a query, without recording it."""
        if query not in self._answers:
            self._answers[query] = self._answered(query)
        return self._answers[query]

    def _answered(self, query: tuple[str, str]) -> object:
        kind, word = query
        if kind == "whole":
            return self.text
        if kind == "comments":
            return comments_in(self.text)
        if kind == "parses":
            return None  # not noted
        if kind == "attribute":
            return super().count_as_attribute(word)
        return super().mentions(word) if kind == "mentions" else super().quotes(word)

    def _answer(self, query: tuple[str, str]) -> object:
        found = self.queries[query] = self.answer_to(query)
        return found


class _Search:
    """Where a text contains others. Given an earlier text, only what has changed since is searched."""

    def __init__(self, text: str, earlier: _Search | None) -> None:
        self.text = text
        self.places: dict[str, int] = {}
        """The position of one occurrence of each; -1 for those that it does not contain."""
        self._known = earlier.places if earlier is not None else {}
        self._change = change_between(earlier.text if earlier is not None else "", text)

    def place(self, part: str) -> int:
        """Where the text contains another one."""
        if part not in self.places:
            self.places[part] = self._found(part)
        return self.places[part]

    def _found(self, part: str) -> int:
        known, change, most = self._known.get(part), self._change, len(part) - 1
        if known is None:
            return self.text.find(part)
        if known < 0:  # the change may have completed it
            return self.text.find(part, max(change.start - most, 0), change.new_end + most)
        moved = known if known < change.start else max(known + change.added, 0)
        return moved if self.text.startswith(part, moved) else self.text.find(part)


_QUESTIONS: dict[str, frozenset[tuple[str, str]]] = {}
_SEARCHES: dict[str, _Search] = {}
_SEARCHES_KEPT = 4
