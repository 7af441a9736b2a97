"""The record of a fix: a list of text edits and their applicability."""

from __future__ import annotations

import re
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING

from ctxlint.records import record
from ctxlint.source.text_edits import Edit

if TYPE_CHECKING:
    from ctxlint.source.source import Source

__all__ = ["Applicability", "Edit", "Fix", "is_safe", "with_line_endings_of"]


class Applicability(Enum):
    """The applicability of a fix, least reliable first."""

    DISPLAY = "display"
    """Shown as advice, never applied by ctxlint."""
    UNSAFE = "unsafe"
    """Probably intended, but it changes behaviour or loses a comment."""
    SAFE = "safe"
    """Working calls keep their values and gradients; no comment is lost."""


@record
class Fix:
    """A fix of one finding: ``message`` describes it in the imperative, ``edits`` do not overlap.

    ``joins``: it only appends to lists, and other such fixes can append to the same ones at once. ``releases`` are
    imported names that it uses once less: a fixing run removes their imports if nothing else uses them.
    """

    message: str
    edits: tuple[Edit, ...]
    applicability: Applicability
    joins: bool = False
    releases: tuple[str, ...] = ()

    def is_within(self, start: int, end: int) -> bool:
        """Whether it changes nothing outside of a stretch of the text."""
        return all(start <= edit.start and edit.end <= end for edit in self.edits)

    def moved(self, characters: int) -> Fix:
        """The fix so many characters further down."""
        edits = (replace(edit, start=edit.start + characters, end=edit.end + characters) for edit in self.edits)
        return replace(self, edits=tuple(edits))


def is_safe(fix: Fix | None) -> bool:
    """Whether there is a fix that is applied with all safe fixes."""
    return fix is not None and bool(fix.edits) and fix.applicability is Applicability.SAFE


def with_line_endings_of(source: Source, fix: Fix) -> Fix:
    r"""``fix``, with every inserted bare ``\n`` replaced by the ending of the line that it starts on."""
    if "\r" not in source.text:
        return fix
    return replace(fix, edits=tuple(_with_line_ending(source, edit) for edit in fix.edits))


def _with_line_ending(source: Source, edit: Edit) -> Edit:
    if "\n" not in edit.content:
        return edit
    number = source.position(edit.start).line
    ends = (source.lines(line, line)[len(source.line(line)) :] for line in (number, number - 1, 1) if line > 0)
    ending = next((end for end in ends if end), "\n")
    return replace(edit, content=re.sub(r"(?<!\r)\n", ending, edit.content))
