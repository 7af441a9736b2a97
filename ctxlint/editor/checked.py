"""One version of a document with its results."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ctxlint.editor.moving import moved

if TYPE_CHECKING:
    from ctxlint.diagnostic import Diagnostic
    from ctxlint.editor.documents import Document, Opened
    from ctxlint.result import FileResult
    from ctxlint.source.source import Source


@dataclass(frozen=True, eq=False)
class Checked:
    """One version of a document with its results. ``serial`` differs for every check."""

    document: Opened
    result: FileResult
    diagnostics: tuple[Diagnostic, ...]
    serial: int

    @property
    def source(self) -> Source:
        """The text that the positions of the findings refer to."""
        return self.result.source or self.document.source

    def moved_to(self, newer: Document) -> Checked:
        """The results, moved to a newer text, until that is checked itself."""
        diagnostics = tuple(moved(self.diagnostics, self.source, newer.source))
        return replace(self, document=newer, result=self.result._replace(source=newer.source), diagnostics=diagnostics)
