"""Inlay hints: which input a gradient is for, what was saved, which output a gradient comes from."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lsprotocol import types as lsp

from ctxlint.editor.moving import half_typed_lines
from ctxlint.named_tuples import NamedTuple
from ctxlint.source.changes import change_between

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.editor.checked import Checked
    from ctxlint.editor.session import Session
    from ctxlint.explain.inlay_hints import InlayHint
    from ctxlint.result import FileResult
    from ctxlint.source.source import Source


def register(session: Session) -> None:
    """Add the feature."""
    shown: dict[str, _Shown] = {}

    def forget(uri: str) -> None:
        shown.pop(uri, None)

    session.on_close.append(forget)

    @session.feature(lsp.TEXT_DOCUMENT_INLAY_HINT, lsp.InlayHintOptions(resolve_provider=False))
    async def show(params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
        checked = await session.checked(params.text_document.uri)
        if checked is None or not session.settings.client_settings_for(checked.document.path).inlay_hints:
            return []
        return await session.on_worker(lambda: hints_in(session, checked, params, shown))

    def refresh() -> None:
        workspace = session.client_capabilities.workspace
        if workspace and workspace.inlay_hint and workspace.inlay_hint.refresh_support:
            session.workspace_inlay_hint_refresh(None)

    session.on_refresh.append(refresh)


class _Shown(NamedTuple):
    """What was last shown in a document without half-typed statements."""

    source: Source
    hints: tuple[InlayHint, ...]


def hints_in(
    session: Session, checked: Checked, params: lsp.InlayHintParams, shown: dict[str, _Shown]
) -> list[lsp.InlayHint]:
    """The hints in a range of a document. For the worker, which has imported LibCST."""
    from ctxlint.explain.inlay_hints import inlay_hints

    view, source, uri = session.view(checked), checked.source, params.text_document.uri
    start, end = view.offset(uri, params.range.start), view.offset(uri, params.range.end)
    file = session.checker.model_of(checked.document)
    if file is None or start is None or end is None:
        return []
    first, last = source.position(start), source.position(end)
    hints = inlay_hints(file, first, last)
    if not checked.result.broken:
        shown[uri] = _Shown(source, hints)
    elif uri in shown:
        kept = (each for each in _kept(shown[uri], checked.result, source) if first <= each.position <= last)
        hints = tuple(sorted({*hints, *kept}))
    return [
        lsp.InlayHint(
            position=view.point(hint.position)[1],
            label=hint.label,
            tooltip=hint.tooltip,
            padding_left=True,
        )
        for hint in hints
    ]


def _kept(before: _Shown, result: FileResult, source: Source) -> Iterator[InlayHint]:
    """What was shown in the statements that are half-typed now, at its position in ``source``."""
    change = change_between(before.source.text, source.text)
    lines = half_typed_lines(result)
    for hint in before.hints:
        at = before.source.offset(hint.position)
        if not change.start < at < change.end:
            position = source.position(at if at <= change.start else at + change.added)
            if any(first <= position.line <= last for first, last in lines):
                yield replace(hint, position=position)
