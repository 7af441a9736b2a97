"""Hover texts: the contract of a Function, and the page of a rule for its code in a comment."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING

from lsprotocol import types as lsp

from ctxlint.patterns import pattern
from ctxlint.rules import all_rules

if TYPE_CHECKING:
    from ctxlint.editor.checked import Checked
    from ctxlint.editor.session import Session
    from ctxlint.source.source import Position

_CODE = pattern(r"\bCTX\d{3}\b")
_COMMENT = pattern(r"(?P<code>[^#]*)#.*(?:noqa|ctxlint)", re.IGNORECASE)


def register(session: Session) -> None:
    """Add the feature."""

    @session.feature(lsp.TEXT_DOCUMENT_HOVER)
    async def show(params: lsp.HoverParams) -> lsp.Hover | None:
        checked = await session.checked(params.text_document.uri)
        if checked is None or not session.settings.client_settings_for(checked.document.path).hover:
            return None
        found = await session.on_worker(lambda: hover_at(session, checked, params))
        if found is not None and isinstance(found.contents, lsp.MarkupContent) and not _reads_markdown(session):
            found.contents.kind = lsp.MarkupKind.PlainText
        return found


def _reads_markdown(session: Session) -> bool:
    """Whether the client supports Markdown, or does not declare what it supports."""
    documents = session.client_capabilities.text_document
    formats = documents.hover.content_format if documents is not None and documents.hover is not None else None
    return formats is None or lsp.MarkupKind.Markdown in formats


def hover_at(session: Session, checked: Checked, params: lsp.HoverParams) -> lsp.Hover | None:
    """The hover text at a position in a document. For the worker, which has imported LibCST."""
    from ctxlint.explain.hover_text import hover

    view = session.view(checked)
    offset = view.offset(params.text_document.uri, params.position)
    if offset is None:
        return None
    position = checked.source.position(offset)
    page = _page_at(checked, position)
    if page is not None:
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, page))
    file = session.checker.model_of(checked.document)
    found = hover(file, *position) if file is not None else None
    if found is None:
        return None
    return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, found.markdown), view.location(found.span).range)


def _page_at(checked: Checked, position: Position) -> str | None:
    """The page of the rule whose code in a suppression comment is at a position."""
    line = checked.source.line(position.line)
    comment = _COMMENT.match(line)
    if comment is None:
        return None
    for found in _CODE.finditer(line, comment.end("code")):
        if found.start() < position.column <= found.end() + 1:
            rule = next((each for each in all_rules() if each.code == found[0]), None)
            if rule is not None:
                return f"# {rule.code}: {rule.name}\n\n{inspect.getdoc(rule)}"
    return None
