"""A text that records the queries on its whole content."""

from __future__ import annotations

from functools import cached_property

from ctxlint.records import record
from ctxlint.source.source import Source


@record
class RecordedSource(Source):
    """A text that records the queries on its whole content."""

    @cached_property
    def queries(self) -> dict[tuple[str, str], object]:
        """The queries so far, and their answers."""
        return {}

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
        if kind == "parses":
            return None  # not noted
        if kind == "attribute":
            return super().count_as_attribute(word)
        return super().mentions(word) if kind == "mentions" else super().quotes(word)

    def _answer(self, query: tuple[str, str]) -> object:
        found = self.queries[query] = self.answer_to(query)
        return found
