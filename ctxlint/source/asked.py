"""A text that records the queries on its whole content."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ctxlint.source.source import Source


@dataclass(frozen=True)
class AskedSource(Source):
    """A text that records the queries on its whole content."""

    @cached_property
    def asked(self) -> dict[tuple[str, str], object]:
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

    def would_answer(self, question: tuple[str, str]) -> object:
        """The answer to a query, without recording it."""
        kind, word = question
        if kind == "whole":
            return self.text
        if kind == "attribute":
            return super().count_as_attribute(word)
        return super().mentions(word) if kind == "mentions" else super().quotes(word)

    def _answer(self, question: tuple[str, str]) -> object:
        found = self.asked[question] = self.would_answer(question)
        return found
