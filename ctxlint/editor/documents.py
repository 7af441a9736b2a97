"""The texts that the client has open, as it has told them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import unquote

from lsprotocol import types as lsp
from pygls.uris import to_fs_path

from ctxlint.editor.positions import Places
from ctxlint.files.find import PYTHON_SUFFIXES
from ctxlint.files.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_BOM = "\ufeff"


@dataclass(frozen=True, eq=False)
class Document:
    """One version of an open text. A change makes another Document, so one can be read while the next is typed."""

    uri: str
    text: str
    version: int | None = None
    language: str = ""

    @cached_property
    def path(self) -> str:
        """The file; for a text that is none yet, its address."""
        return path_of(self.uri)

    @cached_property
    def source(self) -> Source:
        """The text as ctxlint reads it."""
        if self.text.startswith(_BOM):
            return Source(self.path, self.text[1:], bom=True)
        return Source(self.path, self.text)

    @property
    def is_python(self) -> bool:
        """Whether it is to be checked: clients may open other texts as well."""
        return self.language == "python" or self.path.endswith(PYTHON_SUFFIXES)

    def changed(
        self, changes: Iterable[lsp.TextDocumentContentChangeEvent], version: int | None, encoding: str
    ) -> Document:
        """The document after a client's changes: whole texts as a rule, stretches in the cells of notebooks."""
        text = self.text
        for change in changes:
            if isinstance(change, lsp.TextDocumentContentChangePartial):
                places = Places(Source(self.path, text), encoding)
                start, end = places.offset(change.range.start), places.offset(change.range.end)
                text = text[:start] + change.text + text[max(start, end) :]
            else:
                text = change.text
        return replace(self, text=text, version=version)


class Documents:
    """The open documents by their address."""

    def __init__(self) -> None:
        """Begin with none."""
        self.encoding = "utf-16"
        self._by_key: dict[str, Document] = {}

    def __iter__(self) -> Iterator[Document]:
        return iter(tuple(self._by_key.values()))

    def get(self, uri: str) -> Document | None:
        """The document with this address, if it is open."""
        return self._by_key.get(unquote(uri))

    def open(self, item: lsp.TextDocumentItem) -> Document:
        """Take in a document that was opened."""
        document = Document(item.uri, item.text, item.version, str(item.language_id))
        self._by_key[unquote(item.uri)] = document
        return document

    def change(
        self,
        identifier: lsp.VersionedTextDocumentIdentifier,
        changes: Iterable[lsp.TextDocumentContentChangeEvent],
    ) -> Document | None:
        """Apply changes to a document; None where it is not open."""
        document = self.get(identifier.uri)
        if document is None:
            return None
        document = document.changed(changes, identifier.version, self.encoding)
        self._by_key[unquote(identifier.uri)] = document
        return document

    def close(self, uri: str) -> None:
        """Forget a document."""
        self._by_key.pop(unquote(uri), None)


def path_of(uri: str) -> str:
    """The file that an address names; the address itself where it names none."""
    try:
        return to_fs_path(uri) or uri
    except ValueError:  # an address that cannot be taken apart
        return uri
