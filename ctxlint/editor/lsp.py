"""The messages of the Language Server Protocol, as far as the server reads and writes them: plain JSON, with its types.

``fits`` checks what comes from a client against them. Optional keys may also be null.
"""

from __future__ import annotations

from functools import cache
from types import UnionType
from typing import Any, TypedDict, get_args, get_origin, get_type_hints, is_typeddict

# Places and texts


class TextPosition(TypedDict):
    """A line and a column, from 0; columns count units of the negotiated encoding."""

    line: int
    character: int


class TextRange(TypedDict):
    """From one position to another."""

    start: TextPosition
    end: TextPosition


class Location(TypedDict):
    """A range of a document."""

    uri: str
    range: TextRange


class Identified(TypedDict):
    """A document, a cell or a folder."""

    uri: str


class Versioned(Identified):
    """One version of a document."""

    version: int | None


class TextDocument(Versioned):
    """A text that is opened."""

    languageId: str
    text: str


class _Change(TypedDict):
    text: str


class ContentChange(_Change, total=False):
    """A change of a text: its new content, or that of a range."""

    range: TextRange


# Parameters of a client


class Initialize(TypedDict, total=False):
    """How a session begins."""

    processId: int | None
    rootUri: str
    rootPath: str
    workspaceFolders: list[Identified]
    capabilities: dict[str, Any]
    initializationOptions: Any


class TextOpened(TypedDict):
    """A text was opened."""

    textDocument: TextDocument


class TextChanged(TypedDict):
    """A text was changed."""

    textDocument: Versioned
    contentChanges: list[ContentChange]


class InDocument(TypedDict):
    """About a document."""

    textDocument: Identified


class AtPosition(InDocument):
    """About a position in a document."""

    position: TextPosition


class InRange(InDocument):
    """About a range of a document."""

    range: TextRange


class ReferenceContext(TypedDict):
    """Whether the definition is wanted, too."""

    includeDeclaration: bool


class References(AtPosition):
    """About the references of what is at a position."""

    context: ReferenceContext


class CodeActionContext(TypedDict, total=False):
    """The wanted kinds of actions."""

    only: list[str]


class CodeActionRequest(InRange):
    """About the actions for a range."""

    context: CodeActionContext


class Pull(InDocument, total=False):
    """About the findings in a document."""

    previousResultId: str


class Command(TypedDict, total=False):
    """A command to execute, which a client offers under its title."""

    title: str
    command: str
    arguments: list[Any]


class FilesChanged(TypedDict):
    """Files changed on the disk."""

    changes: list[Identified]


class SettingsChanged(TypedDict, total=False):
    """The client's settings changed."""

    settings: Any


class FoldersEvent(TypedDict):
    """Folders that were opened and closed."""

    added: list[Identified]
    removed: list[Identified]


class FoldersChanged(TypedDict):
    """Folders were opened or closed."""

    event: FoldersEvent


class Cancelled(TypedDict):
    """A request was cancelled."""

    id: int | str


# Notebooks


class NotebookCell(TypedDict):
    """A cell; its text is a document."""

    kind: int
    document: str


CODE_CELL = 2


class OpenedNotebook(Versioned):
    """A notebook that is opened."""

    cells: list[NotebookCell]


class NotebookOpened(TypedDict):
    """A notebook was opened."""

    notebookDocument: OpenedNotebook
    cellTextDocuments: list[TextDocument]


class _CellRange(TypedDict):
    start: int
    deleteCount: int


class CellArray(_CellRange, total=False):
    """Cells that replace others."""

    cells: list[NotebookCell]


class _Structure(TypedDict):
    array: CellArray


class CellStructure(_Structure, total=False):
    """Cells that were added and removed."""

    didOpen: list[TextDocument]
    didClose: list[Identified]


class CellText(TypedDict):
    """Changes of the text of a cell."""

    document: Versioned
    changes: list[ContentChange]


class CellChanges(TypedDict, total=False):
    """What changed in the cells."""

    structure: CellStructure
    data: list[NotebookCell]
    textContent: list[CellText]


class NotebookChange(TypedDict, total=False):
    """What changed in a notebook."""

    cells: CellChanges


class NotebookChanged(TypedDict):
    """A notebook was changed."""

    notebookDocument: Versioned
    change: NotebookChange


class InNotebook(TypedDict):
    """About a notebook."""

    notebookDocument: Identified


# Answers


class Link(TypedDict):
    """The address of a page about a finding."""

    href: str


class RelatedInformation(TypedDict):
    """Another place that a finding is about."""

    location: Location
    message: str


class _Diagnostic(TypedDict):
    range: TextRange
    message: str
    severity: int
    code: str
    codeDescription: Link
    source: str


class PublishedDiagnostic(_Diagnostic, total=False):
    """A finding."""

    tags: list[int]
    relatedInformation: list[RelatedInformation]


ERROR, WARNING = 1, 2
"""Severities, and kinds of messages."""
UNNECESSARY, DEPRECATED = 1, 2
"""Tags."""


class TextEdit(TypedDict):
    """The new text of a range."""

    range: TextRange
    newText: str


class DocumentEdit(TypedDict):
    """Edits of one version of a document."""

    textDocument: Versioned
    edits: list[TextEdit]


class WorkspaceEdit(TypedDict, total=False):
    """Edits of documents, by address or with versions."""

    changes: dict[str, list[TextEdit]]
    documentChanges: list[DocumentEdit]


class _CodeAction(TypedDict):
    title: str


class CodeAction(_CodeAction, total=False):
    """An action that a client offers."""

    kind: str
    diagnostics: list[PublishedDiagnostic]
    isPreferred: bool
    edit: WorkspaceEdit
    data: Any


class Markup(TypedDict):
    """A text of a kind."""

    kind: str
    value: str


MARKDOWN, PLAIN_TEXT = "markdown", "plaintext"


class _Hover(TypedDict):
    contents: Markup


class HoverAnswer(_Hover, total=False):
    """A text about a range."""

    range: TextRange


class InlayLabel(TypedDict):
    """A label at a position."""

    position: TextPosition
    label: str
    tooltip: str
    paddingLeft: bool


class PullReport(TypedDict, total=False):
    """An answer to a pull: findings, or that they have not changed."""

    kind: str
    resultId: str
    items: list[PublishedDiagnostic]


# Messages are checked


def fits(value: object, kind: Any) -> bool:
    """Whether a value of JSON has this type."""
    if kind is Any:
        return True
    if get_origin(kind) is UnionType:
        return any(fits(value, each) for each in get_args(kind))
    if get_origin(kind) is list:
        return isinstance(value, list) and all(fits(each, get_args(kind)[0]) for each in value)
    if is_typeddict(kind):
        return isinstance(value, dict) and all(
            fits(value[key], of) if value.get(key) is not None or (needed and key in value) else not needed
            for key, of, needed in _keys(kind)
        )
    return type(value) is (get_origin(kind) or kind)


@cache
def _keys(kind: Any) -> tuple[tuple[str, Any, bool], ...]:
    """The keys of an object with their types, and whether they are required."""
    hints = get_type_hints(kind)
    return tuple((key, of, key in kind.__required_keys__) for key, of in hints.items())
