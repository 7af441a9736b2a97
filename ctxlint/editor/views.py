"""A checked document as the client sees it: one text, or the cells of a notebook, each with its own URI."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pygls.uris import from_fs_path

from ctxlint.editor.documents import NotebookDocument
from ctxlint.editor.position_encoding import EncodedPlaces
from ctxlint.fix import Edit
from ctxlint.source.notebook import Notebook
from ctxlint.source.source import Source, Span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ctxlint.editor.documents import Opened
    from ctxlint.source.source import Position


@dataclass(frozen=True)
class DocumentView:
    """Conversion of positions and edits between ``source``, the text of ``document``, and the client."""

    document: Opened
    source: Source
    encoding: str

    def location(self, span: Span, path: str = "") -> lsp.Location:
        """The location of a span; in the file ``path``, if given, for which only the lines are used."""
        uri = from_fs_path(path) if path else None
        if uri is not None:
            start, end = (lsp.Position(each.line - 1, each.column - 1) for each in span)
            return lsp.Location(uri, lsp.Range(start, end))
        located = self.source.locate(span)
        places = EncodedPlaces(located.source, self.encoding)
        return lsp.Location(self._part(located.cell)[0], places.range(located.span))

    def point(self, position: Position) -> tuple[str, lsp.Position]:
        """The URI of a position, and the position there."""
        found = self.location(Span(position, position))
        return found.uri, found.range.start

    def offset(self, uri: str, position: lsp.Position) -> int | None:
        """The offset of a client's position; None in a cell that is not read."""
        if not isinstance(self.document, NotebookDocument) or not isinstance(self.source, Notebook):
            return EncodedPlaces(self.source, self.encoding).offset(position)
        found = self.document.cell(uri)
        start = self.source.start_of(found[0]) if found is not None else None
        if found is None or start is None:
            return None
        return start + EncodedPlaces(found[1].source, self.encoding).offset(position)

    def edits(self, edits: Sequence[Edit]) -> Iterator[lsp.TextDocumentEdit]:
        """Edits, sorted, as LSP edits."""
        for located in self.source.locate_edits(edits):
            mine = located.edits
            if located.cell is not None:
                end = len(located.source.text) - 1
                mine = tuple(_without_last_ending(edit, end) for edit in mine)
            yield self._text_edits(located.cell, located.source, mine)

    def edits_to(self, after: Source) -> Iterator[lsp.TextDocumentEdit]:
        """The edits, in whole lines, that turn it into ``after``: unchanged lines keep their marks and the cursor."""
        if isinstance(self.source, Notebook) and isinstance(after, Notebook):
            for old, new in zip(self.source.cells, after.cells):
                if old.text != new.text:
                    source = Source(self.source.path, old.text)
                    yield self._text_edits(old.number, source, tuple(line_edits(source, Source("", new.text))))
        elif self.source.text != after.text:
            yield self._text_edits(None, self.source, tuple(line_edits(self.source, after)))

    def _text_edits(self, cell: int | None, source: Source, edits: Sequence[Edit]) -> lsp.TextDocumentEdit:
        uri, version = self._part(cell)
        places = EncodedPlaces(source, self.encoding)
        identifier = lsp.OptionalVersionedTextDocumentIdentifier(uri, version)
        return lsp.TextDocumentEdit(identifier, [places.text_edit(edit) for edit in edits])

    def _part(self, cell: int | None) -> tuple[str, int | None]:
        """The URI and the version of a cell, or of the document if it has none."""
        if cell is not None and isinstance(self.document, NotebookDocument):
            document = self.document.cells[cell - 1]
            if document is not None:
                return document.uri, document.version
        return self.document.uri, self.document.version


def _without_last_ending(edit: Edit, length: int) -> Edit:
    """An edit of a cell's lines for the cell itself, which has ``length`` characters and no final line ending."""
    if edit.end <= length:
        return edit
    content = edit.content.removesuffix("\n")
    return Edit(length, length, f"\n{content}") if edit.start > length else Edit(edit.start, length, content)


def line_edits(before: Source, after: Source) -> Iterator[Edit]:
    """The edits, in whole lines, that turn one text into the other."""
    old, new = _lines(before), _lines(after)
    starts = [*before.line_starts, len(before.text)]
    for tag, old_start, old_end, new_start, new_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield Edit(starts[old_start], starts[old_end], "".join(new[new_start:new_end]))


def _lines(source: Source) -> list[str]:
    return [source.lines(number, number) for number in range(1, source.line_count + 1)]
