"""Diagnostics for the client: pulled if it supports that, otherwise pushed, never both."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from lsprotocol import types as lsp

from ctxlint.diagnostic import Severity
from ctxlint.editor.documents import Document, NotebookDocument

if TYPE_CHECKING:
    from ctxlint.diagnostic import Diagnostic
    from ctxlint.editor.checked import Checked
    from ctxlint.editor.documents import Opened
    from ctxlint.editor.session import Session
    from ctxlint.editor.views import DocumentView

SOURCE = "ctxlint"
_SYNTAX = "CTX901"
_SECONDS_BETWEEN = 0.1
"""If typing is faster than checking, the findings of an older text are shown after this delay."""


def register(session: Session) -> None:
    """Add the features."""
    publisher = _Publisher(session)
    session.on_result.append(publisher.publish)
    session.on_refresh.append(publisher.refresh)
    session.on_close.append(publisher.closed)

    @session.feature(
        lsp.TEXT_DOCUMENT_DIAGNOSTIC,
        lsp.DiagnosticOptions(inter_file_dependencies=False, workspace_diagnostics=False, identifier=SOURCE),
    )
    async def pull(params: lsp.DocumentDiagnosticParams) -> lsp.DocumentDiagnosticReport:
        uri, before = params.text_document.uri, params.previous_result_id
        if before is not None and session.waits_for_save(uri):
            return lsp.RelatedUnchangedDocumentDiagnosticReport(result_id=before)
        checked = await session.checked(uri)
        if checked is None or isinstance(checked.document, NotebookDocument):
            return lsp.RelatedFullDocumentDiagnosticReport(items=[])
        newest = session.documents.holder(uri)
        name = str(checked.serial)
        if isinstance(newest, Document) and checked.document is not newest:
            name, checked = f"{name} of {newest.version}", checked.moved_to(newest)
        if before == name:
            return lsp.RelatedUnchangedDocumentDiagnosticReport(result_id=name)
        items = to_client(session, checked).get(checked.document.uri, [])
        return lsp.RelatedFullDocumentDiagnosticReport(items=items, result_id=name)


class _Publisher:
    """Pushes findings to clients that do not pull; those of cells to every client."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.shown = _Shown()

    async def publish(self, uri: str) -> None:
        """Push the findings of a document."""
        session = self.session
        document = session.documents.holder(uri)
        if document is None or (pulls(session) and not isinstance(document, NotebookDocument)):
            return
        if session.waits_for_save(uri):
            return
        checked = await session.checked(uri)
        if checked is None:
            if self.shown.forget(uri):  # it is not checked any more
                self._push(uri, [])
            return
        checked = self.shown.next(uri, checked, session.documents.holder(uri))
        if checked is None:
            return
        found = to_client(session, checked)
        for part in parts_of(checked.document):
            self._push(part.uri, found.get(part.uri, []), part.version if _takes_versions(session) else None)

    def refresh(self) -> None:
        """Ask a client that pulls to pull again."""
        workspace = self.session.client_capabilities.workspace
        if pulls(self.session) and workspace and workspace.diagnostics and workspace.diagnostics.refresh_support:
            self.session.workspace_diagnostic_refresh(None)

    def closed(self, uri: str) -> None:
        """A document was closed."""
        if self.shown.forget(uri) or not pulls(self.session) or self.session.documents.holder(uri) is None:
            self._push(uri, [])

    def _push(self, uri: str, items: list[lsp.Diagnostic], version: int | None = None) -> None:
        self.session.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, items, version))


class _Shown:
    """What was last shown for each document, and when."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[Checked, float]] = {}

    def next(self, uri: str, checked: Checked, newest: Opened | None) -> Checked | None:
        """What to show for this result, given the ``newest`` text; None for nothing."""
        before, when = self._last.get(uri, (None, 0.0))
        if checked is before:
            return None
        if checked.document is not newest:
            if not isinstance(newest, Document) or time.monotonic() < when + _SECONDS_BETWEEN:
                return None
            checked = checked.moved_to(newest)
        self._last[uri] = (checked, time.monotonic())
        return checked

    def forget(self, uri: str) -> bool:
        """Whether something was shown for a document, which was closed."""
        return self._last.pop(uri, None) is not None


def pulls(session: Session) -> bool:
    """Whether the client pulls diagnostics. It never does for the cells of notebooks."""
    documents = session.client_capabilities.text_document
    return documents is not None and documents.diagnostic is not None


def _takes_versions(session: Session) -> bool:
    """Whether the client supports versions of findings, or does not declare its capabilities for findings."""
    documents = session.client_capabilities.text_document
    shown = documents.publish_diagnostics if documents is not None else None
    return shown is None or shown.version_support is True


def parts_of(document: Opened) -> list[Document]:
    """The parts with diagnostics of their own: the document, or the code cells of a notebook."""
    return [document] if isinstance(document, Document) else [cell for cell in document.cells if cell is not None]


def to_client(session: Session, checked: Checked) -> dict[str, list[lsp.Diagnostic]]:
    """The findings of a document by URI."""
    view = session.view(checked)
    found: dict[str, list[lsp.Diagnostic]] = {}
    wanted = session.settings.client_settings_for(checked.document.path)
    for each in checked.diagnostics:
        if each.code == _SYNTAX and not wanted.show_syntax_errors:
            continue
        location = view.location(each.span)
        found.setdefault(location.uri, []).append(diagnostic_at(each, location.range, view))
    return found


def diagnostic_at(diagnostic: Diagnostic, where: lsp.Range, view: DocumentView) -> lsp.Diagnostic:
    """One finding."""
    related = [
        lsp.DiagnosticRelatedInformation(view.location(each.span, each.path), each.message)
        for each in diagnostic.related
    ]
    return lsp.Diagnostic(
        range=where,
        message=diagnostic.message,
        severity=_SEVERITIES[diagnostic.severity],
        code=diagnostic.code,
        code_description=lsp.CodeDescription(diagnostic.url),
        source=SOURCE,
        tags=[TAGS[diagnostic.code]] if diagnostic.code in TAGS else None,
        related_information=related or None,
    )


_SEVERITIES = {
    Severity.ERROR: lsp.DiagnosticSeverity.Error,
    Severity.WARNING: lsp.DiagnosticSeverity.Warning,
}


TAGS = {
    "CTX312": lsp.DiagnosticTag.Unnecessary,
    "CTX601": lsp.DiagnosticTag.Deprecated,
    "CTX602": lsp.DiagnosticTag.Deprecated,
    "CTX603": lsp.DiagnosticTag.Deprecated,
    "CTX910": lsp.DiagnosticTag.Unnecessary,
}
"""What the rules say of themselves: importing them all takes longer than finding earlier results."""
