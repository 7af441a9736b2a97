"""Colours, for terminals."""

from __future__ import annotations

from ctxlint.records import record


@record
class TextStyle:
    """Colours text if ``on``, otherwise returns it unchanged."""

    on: bool

    def paint(self, text: str, codes: str) -> str:
        """``text`` between the escape sequences for ``codes`` (such as ``1;31``), if colours are on."""
        return f"\x1b[{codes}m{text}\x1b[0m" if self.on and text else text

    def bold(self, text: str) -> str:
        """The most important text."""
        return self.paint(text, "1")

    def code(self, text: str) -> str:
        """A rule's code."""
        return self.paint(text, "1;31")

    def mark(self, text: str) -> str:
        """The star of ``[*]``, the word ``help``."""
        return self.paint(text, "1;36")

    def frame(self, text: str) -> str:
        """Line numbers and the lines of the frame."""
        return self.paint(text, "1;34")

    def removed(self, text: str) -> str:
        """A line that a fix removes."""
        return self.paint(text, "31")

    def added(self, text: str) -> str:
        """A line that a fix adds."""
        return self.paint(text, "32")
