"""Go to definition and find references: between reads of ctx and where the value was stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pygls.uris import from_fs_path

from ctxlint.editor.position_encoding import EncodedPlaces
from ctxlint.source.decode import decode
from ctxlint.source.reading import NotPython, Undecodable, Unreadable, read_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ctxlint.editor.checked import Checked
    from ctxlint.editor.session import Session
    from ctxlint.explain.contract_rows import PlaceRow
    from ctxlint.model.function import SourceFile
    from ctxlint.source.source import Source

    Find = Callable[[SourceFile, int, int], Iterable[PlaceRow]]


def register(session: Session) -> None:
    """Add the features."""

    @session.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    async def go_to(params: lsp.DefinitionParams) -> list[lsp.Location]:
        def find(file: SourceFile, line: int, column: int) -> Iterable[PlaceRow]:
            from ctxlint.explain.definitions import definition  # on the worker, which has imported LibCST

            return definition(file, line, column)

        return await _found(session, params.text_document.uri, params.position, find)

    @session.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    async def find(params: lsp.ReferenceParams) -> list[lsp.Location]:
        def wanted(file: SourceFile, line: int, column: int) -> Iterable[PlaceRow]:
            from ctxlint.explain.definitions import references  # as above

            return references(file, line, column, include_definition=params.context.include_declaration)

        return await _found(session, params.text_document.uri, params.position, wanted)


async def _found(session: Session, uri: str, where: lsp.Position, find: Find) -> list[lsp.Location]:
    checked = await session.checked(uri)
    if checked is None:
        return []
    return await session.on_worker(lambda: locations(session, checked, uri, where, find))


def locations(session: Session, checked: Checked, uri: str, where: lsp.Position, find: Find) -> list[lsp.Location]:
    """The targets of ``find`` for a position in a document. For the worker."""
    file = session.checker.model_of(checked.document)
    offset = session.view(checked).offset(uri, where)
    if file is None or offset is None:
        return []
    position = checked.source.position(offset)
    found = (location(session, checked, place) for place in find(file, *position))
    return [each for each in found if each is not None]


def location(session: Session, checked: Checked, place: PlaceRow) -> lsp.Location | None:
    """A place in this document or in another file, as an LSP location."""
    if place.path == checked.source.path:
        return session.view(checked).location(place.span)
    source = _other(session, place.path)
    uri = from_fs_path(place.path)
    if source is None or uri is None:
        return None
    return lsp.Location(uri, EncodedPlaces(source, session.documents.encoding).range(place.span))


def _other(session: Session, path: str) -> Source | None:
    """Another file: its open text in the editor, otherwise its content on disk."""
    for document in session.documents:
        if document.path == path:
            return document.source
    try:
        return decode(path, read_bytes(path))
    except (Unreadable, Undecodable, NotPython):
        return None
