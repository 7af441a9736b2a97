"""Synchronisation of notebooks. Their cells are checked together, as one module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types as lsp

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ctxlint.editor.session import Session


def register(session: Session) -> None:
    """Add the features."""

    @session.feature(lsp.NOTEBOOK_DOCUMENT_DID_OPEN)
    def did_open(params: lsp.DidOpenNotebookDocumentParams) -> None:
        session.changed(session.documents.open_notebook(params))

    @session.feature(lsp.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def did_change(params: lsp.DidChangeNotebookDocumentParams) -> None:
        notebook, gone = session.documents.change_notebook(params)
        _closed(session, gone)
        if notebook is not None:
            session.changed(notebook)

    @session.feature(lsp.NOTEBOOK_DOCUMENT_DID_SAVE)
    def did_save(params: lsp.DidSaveNotebookDocumentParams) -> None:
        """No other file imports a notebook."""

    @session.feature(lsp.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def did_close(params: lsp.DidCloseNotebookDocumentParams) -> None:
        uri = params.notebook_document.uri
        _closed(session, session.documents.close_notebook(uri))
        session.drop(uri)


def _closed(session: Session, cells: Iterable[str]) -> None:
    for uri in cells:
        for react in session.on_close:
            react(uri)
