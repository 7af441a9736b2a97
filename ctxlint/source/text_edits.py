"""Edits of a text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, order=True)
class Edit:
    """Replace the characters ``start`` to ``end`` (0-based offsets into the text, end exclusive) by ``content``."""

    start: int
    end: int
    content: str


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """``text`` with ``edits``, which are sorted and do not overlap, applied to it."""
    pieces, done = [], 0
    for edit in edits:
        pieces += [text[done : edit.start], edit.content]
        done = edit.end
    return "".join([*pieces, text[done:]])
