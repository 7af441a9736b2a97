"""The open documents of the client."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import unquote

from lsprotocol import types as lsp
from pygls.uris import to_fs_path

from ctxlint.editor.position_encoding import EncodedPlaces
from ctxlint.source.discover import PYTHON_SUFFIXES
from ctxlint.source.notebook import notebook_of
from ctxlint.source.recorded import RecordedSource
from ctxlint.source.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_BOM = "\ufeff"
NOTEBOOK_SYNCHRONISATION = lsp.NotebookDocumentSyncOptions(
    notebook_selector=[
        lsp.NotebookDocumentFilterWithNotebook(
            notebook="jupyter-notebook", cells=[lsp.NotebookCellLanguage(language="python")]
        )
    ],
    save=True,
)
"""The notebooks that the client should synchronise: their cells are checked together, as one module."""
_NOT_THE_FILE = frozenset({"conflictResolution", "git", "gitlens", "output", "review", "vscode-local-history"})
"""The URI schemes of texts that are not files being edited, but are shown like them."""


@dataclass(frozen=True, eq=False)
class Document:
    """One version of an open text. A change creates another Document, so one can be read while the next is typed."""

    uri: str
    text: str
    version: int | None = None
    language: str = ""

    @cached_property
    def path(self) -> str:
        """The file; for an unsaved text, its URI."""
        return path_of(self.uri)

    @cached_property
    def source(self) -> Source:
        """The text as a ``Source``."""
        if self.text.startswith(_BOM):
            return RecordedSource(self.path, self.text[1:], bom=True)
        return RecordedSource(self.path, self.text)

    @property
    def is_python(self) -> bool:
        """Whether to check it: clients may open other texts as well, and older versions of a file."""
        if self.uri.partition(":")[0] in _NOT_THE_FILE:
            return False
        return self.language == "python" or self.path.endswith(PYTHON_SUFFIXES)

    def changed(
        self, changes: Iterable[lsp.TextDocumentContentChangeEvent], version: int | None, encoding: str
    ) -> Document:
        """The document after a client's changes: usually whole texts, ranges in the cells of notebooks."""
        text = self.text
        for change in changes:
            if isinstance(change, lsp.TextDocumentContentChangePartial):
                known = text is self.source.text  # and where its lines start
                places = EncodedPlaces(self.source if known else Source(self.path, text), encoding)
                start, end = places.offset(change.range.start), places.offset(change.range.end)
                text = text[:start] + change.text + text[max(start, end) :]
            else:
                text = change.text
        return replace(self, text=text, version=version)


@dataclass(frozen=True, eq=False)
class NotebookDocument:
    """One version of an open notebook. ``cells`` are all its cells in order, with None for other than code cells."""

    uri: str
    cells: tuple[Document | None, ...]
    version: int | None = None
    is_python: bool = True

    @cached_property
    def path(self) -> str:
        """The file; for an unsaved notebook, its URI."""
        return path_of(self.uri)

    @cached_property
    def source(self) -> Source:
        """The code cells as a ``Source``."""
        return notebook_of(self.path, ((at, cell.text) for at, cell in enumerate(self.cells, start=1) if cell))

    def cell(self, uri: str) -> tuple[int, Document] | None:
        """The cell with this URI, and its number."""
        key = unquote(uri)
        numbered = enumerate(self.cells, start=1)
        return next(((at, cell) for at, cell in numbered if cell is not None and unquote(cell.uri) == key), None)


Opened = Document | NotebookDocument


class Documents:
    """The open documents by URI."""

    def __init__(self) -> None:
        """Start with none."""
        self.encoding = "utf-16"
        self._by_key: dict[str, Document] = {}
        self._notebooks: dict[str, _Notebook] = {}

    def __iter__(self) -> Iterator[Opened]:
        in_notebooks = {key for notebook in self._notebooks.values() for key in notebook.keys}
        yield from [each for key, each in self._by_key.items() if key not in in_notebooks]
        yield from [each.current for each in self._notebooks.values()]

    def get(self, uri: str) -> Document | None:
        """The open text with this URI, if any; it may be a cell."""
        return self._by_key.get(unquote(uri))

    def holder(self, uri: str) -> Opened | None:
        """What to check for this URI: the text, or the notebook, of which it may be a cell."""
        key = unquote(uri)
        for at, notebook in self._notebooks.items():
            if key == at or key in notebook.keys:
                return notebook.current
        return self._by_key.get(key)

    def open(self, item: lsp.TextDocumentItem) -> Document:
        """Add a document that was opened."""
        document = Document(item.uri, item.text, item.version, str(item.language_id))
        self._by_key[unquote(item.uri)] = document
        return document

    def change(
        self,
        identifier: lsp.VersionedTextDocumentIdentifier,
        changes: Iterable[lsp.TextDocumentContentChangeEvent],
    ) -> Document | None:
        """Apply changes to a document; None if it is not open."""
        document = self.get(identifier.uri)
        if document is None:
            return None
        document = document.changed(changes, identifier.version, self.encoding)
        self._by_key[unquote(identifier.uri)] = document
        return document

    def close(self, uri: str) -> None:
        """Remove a document."""
        self._by_key.pop(unquote(uri), None)

    # Notebooks

    def open_notebook(self, params: lsp.DidOpenNotebookDocumentParams) -> Opened:
        """Add a notebook that was opened."""
        for item in params.cell_text_documents:
            self.open(item)
        opened = params.notebook_document
        notebook = _Notebook(opened.uri, list(opened.cells), opened.version)
        self._notebooks[unquote(opened.uri)] = notebook
        return notebook.update(self)

    def change_notebook(self, params: lsp.DidChangeNotebookDocumentParams) -> tuple[Opened | None, list[str]]:
        """Apply changes to a notebook; returns it, if it is open, and the URIs of removed cells."""
        notebook = self._notebooks.get(unquote(params.notebook_document.uri))
        if notebook is None:
            return None, []
        notebook.version = params.notebook_document.version
        gone = notebook.apply(params.change.cells, self) if params.change.cells is not None else []
        return notebook.update(self), gone

    def close_notebook(self, uri: str) -> list[str]:
        """Remove a notebook; returns the URIs of its cells."""
        notebook = self._notebooks.pop(unquote(uri), None)
        cells = [cell.document for cell in notebook.cells] if notebook is not None else []
        for cell in cells:
            self.close(cell)
        return cells


class _Notebook:
    """An open notebook, mutable: its cells in order, and its current version."""

    def __init__(self, uri: str, cells: list[lsp.NotebookCell], version: int) -> None:
        self.uri = uri
        self.cells = cells
        self.version = version
        self.current = NotebookDocument(uri, (), version)

    @cached_property
    def keys(self) -> frozenset[str]:
        return frozenset(unquote(cell.document) for cell in self.cells)

    def update(self, documents: Documents) -> NotebookDocument:
        self.__dict__.pop("keys", None)
        found = [documents.get(cell.document) if _is_code(cell) else None for cell in self.cells]
        cells = tuple(each if each is not None and each.is_python else None for each in found)
        self.current = NotebookDocument(self.uri, cells, self.version)
        return self.current

    def apply(self, changes: lsp.NotebookDocumentCellChanges, documents: Documents) -> list[str]:
        gone: list[str] = []
        structure = changes.structure
        if structure is not None:
            start, end = structure.array.start, structure.array.start + structure.array.delete_count
            self.cells[start:end] = structure.array.cells or []
            for item in structure.did_open or ():
                documents.open(item)
            for closed in structure.did_close or ():
                documents.close(closed.uri)
                gone.append(closed.uri)
        for cell in changes.data or ():
            self.cells = [cell if each.document == cell.document else each for each in self.cells]
        for text in changes.text_content or ():
            documents.change(text.document, text.changes)
        return gone


def _is_code(cell: lsp.NotebookCell) -> bool:
    return cell.kind == lsp.NotebookCellKind.Code


def path_of(uri: str) -> str:
    """The file of a URI; the URI itself if it is not a file."""
    try:
        return to_fs_path(uri) or uri
    except ValueError:  # an invalid URI
        return uri
