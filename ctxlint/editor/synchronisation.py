"""Notifications of the client: texts that are opened, changed and closed, changes of files and settings."""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp

from ctxlint.editor.actions import prepare, register_command, takes_actions
from ctxlint.editor.documents import path_of
from ctxlint.editor.stdio import end_with
from ctxlint.editor.workspace import OWN_SECTION, matters, read_client_settings
from ctxlint.libcst_import import import_libcst

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ctxlint.editor.session import Session

_WATCHED = (
    "**/*.toml",
    "**/setup.cfg",
    "**/requirements*.txt",
    "**/requirements/*.txt",
    "**/constraints*.txt",
    "**/{environment,conda}*.{yml,yaml}",
    "**/.ctxlint-baseline.json",
    "**/*.py",
    "**/*.pyi",
    "**/*.pyw",
)
_SECONDS_FOR_AN_ANSWER = 10.0
_SECONDS_BEFORE_IMPORTS = 0.01
"""What the first check needs is imported while the client opens its documents, in parts that it does not wait for."""


def register(session: Session) -> None:
    """Add the features."""
    _register_start(session)
    _register_documents(session)
    _register_surroundings(session)


def _register_start(session: Session) -> None:
    @session.feature(lsp.INITIALIZE)
    def initialize(params: lsp.InitializeParams) -> None:
        workspace = session.protocol.workspace
        session.documents.encoding = _encoding(workspace.position_encoding)
        folders = [folder.uri for folder in params.workspace_folders or ()]
        root = params.root_uri or params.root_path
        _set_folders(session, folders or ([root] if root else []))
        for folder in session.settings.folders:
            session.projects.prepare_around(folder)
        session.initial_settings = params.initialization_options
        _set_client_settings(session, params.initialization_options, initial=True)
        if _answers_configuration(params.capabilities):
            session.awaited_settings = asyncio.Event()
        if not takes_actions(session):
            register_command(session)
        end_with(params.process_id)

    @session.feature(lsp.INITIALIZED)
    def initialized(params: lsp.InitializedParams) -> None:  # noqa: ARG001
        session.start(_register_watchers(session))
        session.start(_first_settings(session))
        session.start(prepare(session))
        for work in (_import_rules, lambda: session.checker, import_libcst):  # the last is done first
            session.worker.when_idle(work, key=work, after=_SECONDS_BEFORE_IMPORTS)


def _register_documents(session: Session) -> None:
    @session.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: lsp.DidOpenTextDocumentParams) -> None:
        session.changed(session.documents.open(params.text_document))

    @session.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: lsp.DidChangeTextDocumentParams) -> None:
        document = session.documents.change(params.text_document, params.content_changes)
        if document is not None:
            session.unsaved.add(document.uri)
            session.changed(document)

    @session.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: lsp.DidCloseTextDocumentParams) -> None:
        session.forget(params.text_document.uri)

    @session.feature(lsp.TEXT_DOCUMENT_DID_SAVE, lsp.SaveOptions(include_text=False))
    def did_save(params: lsp.DidSaveTextDocumentParams) -> None:
        session.unsaved.discard(params.text_document.uri)
        if _watches(session):
            _files_changed(session, [params.text_document.uri])
        else:
            session.reload()


def _register_surroundings(session: Session) -> None:
    @session.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def watched(params: lsp.DidChangeWatchedFilesParams) -> None:
        _files_changed(session, [change.uri for change in params.changes])

    @session.feature(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def configuration(params: lsp.DidChangeConfigurationParams) -> None:
        if _answers_configuration(session.client_capabilities):
            session.start(_request_settings(session))
        elif params.settings is not None:
            _set_client_settings(session, params.settings)
            session.reload()

    @session.feature(lsp.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def workspace_folders(params: lsp.DidChangeWorkspaceFoldersParams) -> None:  # noqa: ARG001
        _set_folders(session, [folder.uri for folder in session.protocol.workspace.folders.values()])
        session.start(_request_settings(session))
        session.reload()


def _encoding(agreed: Any) -> str:
    return str(getattr(agreed, "value", agreed) or "utf-16")


def _import_rules() -> None:
    from ctxlint.rules import all_rules

    all_rules()


def _set_folders(session: Session, addresses: Iterable[str]) -> None:
    session.settings.folders = tuple(path_of(address).rstrip("/\\") or "/" for address in addresses)


def _files_changed(session: Session, addresses: Iterable[str]) -> None:
    if matters(path_of(address) for address in addresses):
        session.reload()
    else:
        session.refresh()


def _set_client_settings(session: Session, values: object, *, initial: bool = False) -> None:
    settings = read_client_settings(values)
    if initial:
        _log_to_file(settings.log_file)
    elif settings.log_file and not _logs_to(settings.log_file):
        settings = replace(settings, mistakes=(*settings.mistakes, _NO_LOG))
    session.settings.client = settings
    if settings.log_level != "error":
        logging.getLogger().setLevel(settings.log_level.upper())
    session.complain_about_settings()


_NO_LOG = "the editor's settings: `logFile` has no effect here; set it in `initializationOptions`"


def _log_to_file(file: str) -> None:
    """Log to a file, if the client has named one at its start: later settings may come with a checkout."""
    if file:
        with suppress(OSError):
            handler = logging.FileHandler(file, encoding="utf-8", delay=True)
            handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
            logging.getLogger().addHandler(handler)


def _logs_to(file: str) -> bool:
    path = os.path.abspath(file)
    return any(getattr(each, "baseFilename", None) == path for each in logging.getLogger().handlers)


def _watches(session: Session) -> bool:
    """Whether the client reports changes of files."""
    workspace = session.client_capabilities.workspace
    files = workspace.did_change_watched_files if workspace is not None else None
    return bool(files and files.dynamic_registration)


def _answers_configuration(client: lsp.ClientCapabilities) -> bool:
    return bool(client.workspace and client.workspace.configuration)


async def _first_settings(session: Session) -> None:
    """Request the settings; results that wait for them proceed once they arrive, or fail to."""
    try:
        await _request_settings(session)
    finally:
        if session.awaited_settings is not None:
            session.awaited_settings.set()


async def _request_settings(session: Session) -> None:
    """Request the settings of each folder; if the client does not answer, or has none, its initial settings apply."""
    if not _answers_configuration(session.client_capabilities):
        return
    folders = tuple(session.protocol.workspace.folders.values())
    items = [lsp.ConfigurationItem(folder.uri, OWN_SECTION) for folder in folders]
    items.append(lsp.ConfigurationItem(None, OWN_SECTION))
    try:
        request = session.workspace_configuration_async(lsp.ConfigurationParams(items))
        answers = await asyncio.wait_for(request, _SECONDS_FOR_AN_ANSWER)
    except Exception:  # noqa: BLE001  (a client may refuse in many ways)
        return
    if not isinstance(answers, (list, tuple)) or len(answers) != len(items):
        return
    paths = [path_of(folder.uri).rstrip("/\\") or "/" for folder in folders]
    each = {path: read_client_settings(answer) for path, answer in zip(paths, answers) if answer}
    before = (session.settings.by_folder, session.settings.client)
    _set_client_settings(session, answers[-1] or session.initial_settings)
    session.settings.by_folder = each
    session.complain_about_settings()
    if before != (each, session.settings.client):
        session.reload()


async def _register_watchers(session: Session) -> None:
    """Request notifications about changed files and settings, as far as the client supports it."""
    workspace = session.client_capabilities.workspace
    if workspace is None:
        return
    wanted: list[lsp.Registration] = []
    files, settings = workspace.did_change_watched_files, workspace.did_change_configuration
    if files is not None and files.dynamic_registration:
        watchers = [lsp.FileSystemWatcher(pattern) for pattern in _WATCHED]
        options = lsp.DidChangeWatchedFilesRegistrationOptions(watchers)
        wanted.append(lsp.Registration("ctxlint-files", lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES, options))
    if settings is not None and settings.dynamic_registration:
        section = lsp.DidChangeConfigurationRegistrationOptions(OWN_SECTION)
        wanted.append(lsp.Registration("ctxlint-settings", lsp.WORKSPACE_DID_CHANGE_CONFIGURATION, section))
    if wanted:
        try:
            request = session.client_register_capability_async(lsp.RegistrationParams(wanted))
            await asyncio.wait_for(request, _SECONDS_FOR_AN_ANSWER)
        except Exception:  # noqa: BLE001  (then nothing is watched)
            return
