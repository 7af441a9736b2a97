"""What a fix is: a list of text edits and how far they can be trusted."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from ctxlint.source.text_edits import Edit

if TYPE_CHECKING:
    from ctxlint.source.source import Source

__all__ = ["Applicability", "Edit", "Fix", "is_safe", "with_line_endings_of"]


class Applicability(Enum):
    """How far a fix can be trusted, weakest first."""

    DISPLAY = "display"
    """Shown as advice, never applied by ctxlint."""
    UNSAFE = "unsafe"
    """Likely what is meant, but it changes behaviour or loses a comment."""
    SAFE = "safe"
    """Calls that work today keep their values and gradients; no comment is lost."""


@dataclass(frozen=True)
class Fix:
    """A fix of one finding: ``message`` says what it does in the imperative, ``edits`` do not overlap.

    ``joins`` says that it only appends to lists, and that other such fixes can append to the same ones at once.
    """

    message: str
    edits: tuple[Edit, ...]
    applicability: Applicability
    joins: bool = False


def is_safe(fix: Fix | None) -> bool:
    """Whether there is a fix that whoever applies all safe fixes applies."""
    return fix is not None and bool(fix.edits) and fix.applicability is Applicability.SAFE


def with_line_endings_of(source: Source, fix: Fix) -> Fix:
    r"""``fix`` with every bare ``\n`` that it inserts written as the line that it starts on ends."""
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
