"""The messages of the Language Server Protocol, as far as the server reads or writes them.

A message is read by the type hints of its class, and written in camel case; unknown fields are dropped, and fields that
are None are not sent. Nothing is compiled: an editor waits for the first findings, and a library that has all 550
classes of the protocol takes longer to import than many a file to check.
"""

from __future__ import annotations

import types
from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Any:
        """The signature of messages for type checkers."""
        return lambda kind: kind


class Invalid(Exception):
    """A client sent a value of another shape."""


@dataclass_transform()
class Message:
    """A part of a message."""

    def __init__(self, *values: Any, **named: Any) -> None:
        """The values of the fields, in order or by name."""
        vars(self).update(zip(type(self).__annotations__, values), **named)


def fields_of(message: object) -> object:
    """The fields of a message for JSON, as what ``json.dumps`` calls for other than plain values."""
    if not isinstance(message, Message):
        raise TypeError(f"{type(message).__name__} is no message")
    kind = type(message)
    always = _SENT_AS_NULL.get(kind.__name__, ())
    values = ((name, getattr(message, name)) for name in kind.__annotations__)
    return {_camel(name): value for name, value in values if value is not None or name in always}


def read(kind: Any, value: object) -> Any:
    """A value from JSON as a type hint has it.

    Raises:
        Invalid: It has another shape.
    """
    return _reader(kind)(value)


@cache
def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(each.capitalize() for each in others)


@cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    if kind is Any:
        return lambda value: value
    if kind is int:
        return _integer
    if get_origin(kind) in (Union, types.UnionType):
        return _optional(*(_reader(each) for each in get_args(kind) if each is not types.NoneType))
    if get_origin(kind) is list:
        return _list(_reader(*get_args(kind)))
    return _message(kind) if issubclass(kind, Message) else _exactly(kind)


def _exactly(kind: type) -> Callable[[Any], Any]:
    def read_one(value: Any) -> Any:
        if type(value) is not kind:
            raise Invalid(f"expected {kind.__name__}, not {type(value).__name__}")
        return value

    return read_one


def _integer(value: Any) -> int:
    if type(value) is float and value.is_integer():  # in some languages of clients, all numbers are floating-point
        return int(value)
    if type(value) is not int:
        raise Invalid(f"expected int, not {type(value).__name__}")
    return value


def _optional(reader: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else reader(value)


def _list(reader: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def read_all(value: Any) -> Any:
        if not isinstance(value, list):
            raise Invalid(f"expected list, not {type(value).__name__}")
        return [reader(each) for each in value]

    return read_all


def _message(kind: type[Message]) -> Callable[[Any], Any]:
    known = [(name, _camel(name), _reader(hint)) for name, hint in get_type_hints(kind).items()]

    def read_fields(value: Any) -> Any:
        if not isinstance(value, dict):
            raise Invalid(f"{kind.__name__}: expected object, not {type(value).__name__}")
        made = kind()
        for name, key, reader in known:
            if key in value:
                setattr(made, name, reader(value[key]))
            elif not hasattr(kind, name):
                raise Invalid(f"{kind.__name__}: {key} is missing")
        return made

    return read_fields


# Text documents


class Position(Message):
    """A place in a document, counted from 0."""

    line: int
    character: int


class Range(Message):
    """The text between two places."""

    start: Position
    end: Position


class Location(Message):
    """A range of a document."""

    uri: str
    range: Range


class TextDocumentIdentifier(Message):
    """A document."""

    uri: str


class VersionedTextDocumentIdentifier(Message):
    """A version of a document, also of a notebook."""

    uri: str
    version: int


class OptionalVersionedTextDocumentIdentifier(Message):
    """A document, and its version if that is known."""

    uri: str
    version: int | None = None


class TextDocumentItem(Message):
    """A document that was opened."""

    uri: str
    language_id: str
    version: int
    text: str


class TextDocumentContentChangeEvent(Message):
    """A new text, of the whole document if there is no range."""

    text: str
    range: Range | None = None


class TextEdit(Message):
    """A text to insert for a range."""

    range: Range
    new_text: str


class TextDocumentEdit(Message):
    """Edits of a document."""

    text_document: OptionalVersionedTextDocumentIdentifier
    edits: list[TextEdit]


class WorkspaceEdit(Message):
    """Edits of documents: by URI, or with their versions."""

    changes: dict[str, list[TextEdit]] | None = None
    document_changes: list[TextDocumentEdit] | None = None


class DidOpenTextDocumentParams(Message):
    """A document was opened."""

    text_document: TextDocumentItem


class DidChangeTextDocumentParams(Message):
    """A document was changed."""

    text_document: VersionedTextDocumentIdentifier
    content_changes: list[TextDocumentContentChangeEvent]


class TextDocumentParams(Message):
    """A document was saved or closed."""

    text_document: TextDocumentIdentifier


class TextDocumentPositionParams(Message):
    """A place that something is asked about."""

    text_document: TextDocumentIdentifier
    position: Position


# Notebooks


class NotebookCell(Message):
    """A cell of a notebook; its text is a document of its own."""

    kind: int
    document: str


class NotebookDocument(Message):
    """A notebook that was opened."""

    uri: str
    version: int
    cells: list[NotebookCell]


class DidOpenNotebookDocumentParams(Message):
    """A notebook was opened."""

    notebook_document: NotebookDocument
    cell_text_documents: list[TextDocumentItem]


class NotebookCellArrayChange(Message):
    """Cells that were added and removed."""

    start: int
    delete_count: int
    cells: list[NotebookCell] | None = None


class NotebookCellStructure(Message):
    """Cells that were added and removed, with their documents."""

    array: NotebookCellArrayChange
    did_open: list[TextDocumentItem] | None = None
    did_close: list[TextDocumentIdentifier] | None = None


class NotebookCellContent(Message):
    """Changes in the text of a cell."""

    document: VersionedTextDocumentIdentifier
    changes: list[TextDocumentContentChangeEvent]


class NotebookCellChanges(Message):
    """Changes of cells."""

    structure: NotebookCellStructure | None = None
    data: list[NotebookCell] | None = None
    text_content: list[NotebookCellContent] | None = None


class NotebookChange(Message):
    """Changes of a notebook."""

    cells: NotebookCellChanges | None = None


class DidChangeNotebookDocumentParams(Message):
    """A notebook was changed."""

    notebook_document: VersionedTextDocumentIdentifier
    change: NotebookChange


class DidCloseNotebookDocumentParams(Message):
    """A notebook was closed."""

    notebook_document: TextDocumentIdentifier


# Diagnostics


class DiagnosticSeverity(IntEnum):
    """How bad it is."""

    ERROR = 1
    WARNING = 2


class DiagnosticTag(IntEnum):
    """How an editor may show it."""

    UNNECESSARY = 1
    DEPRECATED = 2


class CodeDescription(Message):
    """The page of a rule."""

    href: str


class DiagnosticRelatedInformation(Message):
    """Another place that a finding is about."""

    location: Location
    message: str


class Diagnostic(Message):
    """A finding."""

    range: Range
    message: str
    severity: DiagnosticSeverity
    code: str
    code_description: CodeDescription
    source: str
    tags: list[DiagnosticTag] | None = None
    related_information: list[DiagnosticRelatedInformation] | None = None


class PublishDiagnosticsParams(Message):
    """All findings in a document."""

    uri: str
    diagnostics: list[Diagnostic]
    version: int | None = None


class DocumentDiagnosticParams(Message):
    """A request for the findings, given the name of those that are shown."""

    text_document: TextDocumentIdentifier
    previous_result_id: str | None = None


class DocumentDiagnosticReport(Message):
    """All findings in a document, or that they are those of ``result_id``."""

    kind: str
    result_id: str | None = None
    items: list[Diagnostic] | None = None


# Code actions, hover texts and hints


class CodeActionContext(Message):
    """The kinds of actions that are requested."""

    only: list[str] | None = None


class CodeActionParams(Message):
    """A request for actions in a range."""

    text_document: TextDocumentIdentifier
    range: Range
    context: CodeActionContext


class CodeAction(Message):
    """An action. The client sends it back as it is, and may have added to it."""

    title: str
    kind: str | None = None
    diagnostics: Any = None
    is_preferred: bool | None = None
    edit: Any = None
    data: Any = None
    command: Any = None
    disabled: Any = None


class Command(Message):
    """An action for clients that only know commands."""

    title: str
    command: str
    arguments: list[Any] | None = None


class ExecuteCommandParams(Message):
    """A command to run."""

    command: str
    arguments: list[Any] | None = None


class MarkupContent(Message):
    """A text in Markdown, or a plain one."""

    kind: str
    value: str


class Hover(Message):
    """A text about a range."""

    contents: MarkupContent
    range: Range | None = None


class InlayHintParams(Message):
    """A request for the hints in a range."""

    text_document: TextDocumentIdentifier
    range: Range


class InlayHint(Message):
    """A hint at a place."""

    position: Position
    label: str
    tooltip: str | None = None
    padding_left: bool | None = None


class ReferenceContext(Message):
    """Whether the definition counts as well."""

    include_declaration: bool


class ReferenceParams(Message):
    """A request for what refers to a place."""

    text_document: TextDocumentIdentifier
    position: Position
    context: ReferenceContext


# The client


class WorkspaceFolder(Message):
    """A folder that the client has opened."""

    uri: str
    name: str | None = None


class DynamicRegistration(Message):
    """Whether the server may request notifications."""

    dynamic_registration: bool | None = None


class RefreshSupport(Message):
    """Whether the server may ask the client to request again."""

    refresh_support: bool | None = None


class WorkspaceEditCapabilities(Message):
    """Whether edits may have the versions of documents."""

    document_changes: bool | None = None


class WorkspaceCapabilities(Message):
    """What the client can do with its folders."""

    apply_edit: bool | None = None
    workspace_edit: WorkspaceEditCapabilities | None = None
    did_change_configuration: DynamicRegistration | None = None
    did_change_watched_files: DynamicRegistration | None = None
    configuration: bool | None = None
    diagnostics: RefreshSupport | None = None
    inlay_hint: RefreshSupport | None = None


class PublishDiagnosticsCapabilities(Message):
    """What the client can show of findings."""

    version_support: bool | None = None


class HoverCapabilities(Message):
    """The kinds of text that the client can show."""

    content_format: list[str] | None = None


class ResolveSupport(Message):
    """What the client requests only when it needs it."""

    properties: list[str]


class CodeActionCapabilities(Message):
    """What the client can do with actions."""

    code_action_literal_support: Any = None
    resolve_support: ResolveSupport | None = None


class TextDocumentCapabilities(Message):
    """What the client can do with documents."""

    publish_diagnostics: PublishDiagnosticsCapabilities | None = None
    diagnostic: Any = None
    hover: HoverCapabilities | None = None
    code_action: CodeActionCapabilities | None = None
    synchronization: Any = None


class GeneralCapabilities(Message):
    """How the client counts columns."""

    position_encodings: list[str] | None = None


class ClientCapabilities(Message):
    """What the client can do."""

    workspace: WorkspaceCapabilities | None = None
    text_document: TextDocumentCapabilities | None = None
    notebook_document: Any = None
    general: GeneralCapabilities | None = None


class InitializeParams(Message):
    """The first request."""

    capabilities: ClientCapabilities
    process_id: int | None = None
    root_path: str | None = None
    root_uri: str | None = None
    initialization_options: Any = None
    workspace_folders: list[WorkspaceFolder] | None = None


class WorkspaceFoldersChangeEvent(Message):
    """Folders that were opened and closed."""

    added: list[WorkspaceFolder]
    removed: list[WorkspaceFolder]


class DidChangeWorkspaceFoldersParams(Message):
    """Folders were opened or closed."""

    event: WorkspaceFoldersChangeEvent


class DidChangeConfigurationParams(Message):
    """The client's settings have changed."""

    settings: Any = None


class FileEvent(Message):
    """A file that has changed."""

    uri: str


class DidChangeWatchedFilesParams(Message):
    """Files have changed."""

    changes: list[FileEvent]


class ConfigurationItem(Message):
    """A section of the client's settings, for a folder."""

    scope_uri: str | None
    section: str


class MessageType(IntEnum):
    """How bad it is what the user is shown."""

    ERROR = 1
    WARNING = 2


class ShowMessageParams(Message):
    """A message to the user."""

    type: MessageType
    message: str


class Registration(Message):
    """A notification that the server requests."""

    id: str
    method: str
    register_options: dict[str, Any]


_SENT_AS_NULL = {OptionalVersionedTextDocumentIdentifier.__name__: ("version",)}

PARAMETERS: dict[str, Any] = {
    "codeAction/resolve": CodeAction,
    "initialize": InitializeParams,
    "notebookDocument/didChange": DidChangeNotebookDocumentParams,
    "notebookDocument/didClose": DidCloseNotebookDocumentParams,
    "notebookDocument/didOpen": DidOpenNotebookDocumentParams,
    "textDocument/codeAction": CodeActionParams,
    "textDocument/definition": TextDocumentPositionParams,
    "textDocument/diagnostic": DocumentDiagnosticParams,
    "textDocument/didChange": DidChangeTextDocumentParams,
    "textDocument/didClose": TextDocumentParams,
    "textDocument/didOpen": DidOpenTextDocumentParams,
    "textDocument/didSave": TextDocumentParams,
    "textDocument/hover": TextDocumentPositionParams,
    "textDocument/inlayHint": InlayHintParams,
    "textDocument/references": ReferenceParams,
    "workspace/didChangeConfiguration": DidChangeConfigurationParams,
    "workspace/didChangeWatchedFiles": DidChangeWatchedFilesParams,
    "workspace/didChangeWorkspaceFolders": DidChangeWorkspaceFoldersParams,
    "workspace/executeCommand": ExecuteCommandParams,
}
"""The parameters of the methods that the server knows; any for the others."""
