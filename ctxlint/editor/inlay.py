"""Inlay hints: which input a gradient is for, what was saved, which output a gradient comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types as lsp

if TYPE_CHECKING:
    from ctxlint.editor.checked import Checked
    from ctxlint.editor.session import Session


def register(session: Session) -> None:
    """Add the feature."""

    @session.feature(lsp.TEXT_DOCUMENT_INLAY_HINT, lsp.InlayHintOptions(resolve_provider=False))
    async def show(params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
        checked = await session.checked(params.text_document.uri)
        if checked is None or not session.settings.client_settings_for(checked.document.path).inlay_hints:
            return []
        return await session.on_worker(lambda: hints_in(session, checked, params))

    def refresh() -> None:
        workspace = session.client_capabilities.workspace
        if workspace and workspace.inlay_hint and workspace.inlay_hint.refresh_support:
            session.workspace_inlay_hint_refresh(None)

    session.on_refresh.append(refresh)


def hints_in(session: Session, checked: Checked, params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
    """The hints in a range of a document. For the worker, which has imported LibCST."""
    from ctxlint.explain.inlay_hints import inlay_hints

    view, source, uri = session.view(checked), checked.source, params.text_document.uri
    start, end = view.offset(uri, params.range.start), view.offset(uri, params.range.end)
    file = session.checker.model_of(checked.document)
    if file is None or start is None or end is None:
        return []
    return [
        lsp.InlayHint(
            position=view.point(hint.position)[1],
            label=hint.label,
            tooltip=hint.tooltip,
            padding_left=True,
        )
        for hint in inlay_hints(file, source.position(start), source.position(end))
    ]
