"""Notifications of the client: texts that are opened, changed and closed, changes of files and settings."""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ctxlint.editor import lsp
from ctxlint.editor.actions import register_command, takes_actions
from ctxlint.editor.stdio import end_with
from ctxlint.editor.uris import path_of, uri_of
from ctxlint.editor.workspace import OWN_SECTION, matters, read_client_settings
from ctxlint.version import __version__

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
)
_WATCHED_FILES = "workspace/didChangeWatchedFiles"
_CONFIGURATION = "workspace/didChangeConfiguration"
_SECONDS_FOR_AN_ANSWER = 10.0


def register(session: Session) -> None:
    """Add the features."""
    _register_start(session)
    _register_documents(session)
    _register_surroundings(session)


def _register_start(session: Session) -> None:
    @session.feature("initialize", lsp.Initialize)
    def initialize(params: lsp.Initialize) -> dict[str, Any]:
        session.client = params.get("capabilities") or {}
        session.documents.encoding = _encoding(session.supports("general", "positionEncodings"))
        folders = [folder["uri"] for folder in params.get("workspaceFolders") or ()]
        root = params.get("rootUri") or (uri_of(params["rootPath"]) if params.get("rootPath") else "")
        _set_folders(session, folders or [root] * bool(root))
        _set_client_settings(session, params.get("initializationOptions"), initial=True)
        if _answers_configuration(session):
            session.awaited_settings = asyncio.Event()
        if not takes_actions(session):
            register_command(session)
        end_with(params.get("processId"))
        session.worker.when_idle(lambda: _import_rules(session), key="rules")
        capabilities = {**session.capabilities, **_SYNCHRONISATION, "positionEncoding": session.documents.encoding}
        if session.supports("notebookDocument") is not None:
            capabilities["notebookDocumentSync"] = _NOTEBOOKS
        return {"capabilities": capabilities, "serverInfo": {"name": "ctxlint", "version": __version__}}

    @session.feature("initialized", Any)
    def initialized(params: object) -> None:  # noqa: ARG001
        session.start(_register_watchers(session))
        session.start(_first_settings(session))


_SYNCHRONISATION = {
    "textDocumentSync": {"openClose": True, "change": 1, "save": {"includeText": False}},
    "workspace": {"workspaceFolders": {"supported": True, "changeNotifications": True}},
}
"""Texts are sent as a whole."""
_NOTEBOOKS = {
    "notebookSelector": [{"notebook": "jupyter-notebook", "cells": [{"language": "python"}]}],
    "save": True,
}
"""The notebooks that the client should synchronise: their cells are checked together, as one module."""


def _register_documents(session: Session) -> None:
    @session.feature("textDocument/didOpen", lsp.TextOpened)
    def did_open(params: lsp.TextOpened) -> None:
        session.changed(session.documents.open(params["textDocument"]))

    @session.feature("textDocument/didChange", lsp.TextChanged)
    def did_change(params: lsp.TextChanged) -> None:
        document = session.documents.change(params["textDocument"], params["contentChanges"])
        if document is not None:
            session.unsaved.add(document.uri)
            session.changed(document)

    @session.feature("textDocument/didClose", lsp.InDocument)
    def did_close(params: lsp.InDocument) -> None:
        session.forget(params["textDocument"]["uri"])

    @session.feature("textDocument/didSave", lsp.InDocument)
    def did_save(params: lsp.InDocument) -> None:
        uri = params["textDocument"]["uri"]
        session.unsaved.discard(uri)
        if _watches(session):
            _files_changed(session, [uri])
        else:
            session.reload()


def _register_surroundings(session: Session) -> None:
    @session.feature(_WATCHED_FILES, lsp.FilesChanged)
    def watched(params: lsp.FilesChanged) -> None:
        _files_changed(session, [change["uri"] for change in params["changes"]])

    @session.feature(_CONFIGURATION, lsp.SettingsChanged)
    def configuration(params: lsp.SettingsChanged) -> None:
        if _answers_configuration(session):
            session.start(_request_settings(session))
        elif params.get("settings") is not None:
            _set_client_settings(session, params["settings"])
            session.reload()

    @session.feature("workspace/didChangeWorkspaceFolders", lsp.FoldersChanged)
    def workspace_folders(params: lsp.FoldersChanged) -> None:
        added, removed = ([each["uri"] for each in params["event"][key]] for key in ("added", "removed"))
        _set_folders(session, [*(each for each in session.folders if each not in {*added, *removed}), *added])
        session.start(_request_settings(session))
        session.reload()


def _encoding(wanted: object) -> str:
    """The first encoding of positions that both sides know."""
    known = ("utf-8", "utf-16", "utf-32")
    return next((each for each in wanted if each in known), "utf-16") if isinstance(wanted, list) else "utf-16"


def _import_rules(session: Session) -> None:
    """Import what the first check needs, above all LibCST, if no document is opened at once."""
    from ctxlint.rules import all_rules

    _ = session.checker
    all_rules()


def _set_folders(session: Session, addresses: list[str]) -> None:
    session.folders = addresses
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
    return bool(session.supports("workspace", "didChangeWatchedFiles", "dynamicRegistration"))


def _answers_configuration(session: Session) -> bool:
    return bool(session.supports("workspace", "configuration"))


async def _first_settings(session: Session) -> None:
    """Request the settings; results that wait for them proceed once they arrive, or fail to."""
    try:
        await _request_settings(session)
    finally:
        if session.awaited_settings is not None:
            session.awaited_settings.set()


async def _request_settings(session: Session) -> None:
    """Request the settings of each folder; if the client does not answer, its initial settings apply."""
    if not _answers_configuration(session):
        return
    folders = tuple(session.folders)
    items = [*({"scopeUri": folder, "section": OWN_SECTION} for folder in folders), {"section": OWN_SECTION}]
    try:
        request = session.request("workspace/configuration", {"items": items})
        answers = await asyncio.wait_for(request, _SECONDS_FOR_AN_ANSWER)
    except Exception:  # noqa: BLE001  (a client may refuse in many ways)
        return
    if not isinstance(answers, list) or len(answers) != len(items) or not any(answers):
        return
    paths = [path_of(folder).rstrip("/\\") or "/" for folder in folders]
    each = {path: read_client_settings(answer) for path, answer in zip(paths, answers) if answer}
    before = (session.settings.by_folder, session.settings.client)
    if answers[-1]:
        _set_client_settings(session, answers[-1])
    session.settings.by_folder = each
    session.complain_about_settings()
    if before != (each, session.settings.client):
        session.reload()


async def _register_watchers(session: Session) -> None:
    """Request notifications about changed files and settings, as far as the client supports it."""
    wanted: list[dict[str, Any]] = []
    if _watches(session):
        watchers = {"watchers": [{"globPattern": pattern} for pattern in _WATCHED]}
        wanted.append({"id": "ctxlint-files", "method": _WATCHED_FILES, "registerOptions": watchers})
    if session.supports("workspace", "didChangeConfiguration", "dynamicRegistration"):
        section = {"section": OWN_SECTION}
        wanted.append({"id": "ctxlint-settings", "method": _CONFIGURATION, "registerOptions": section})
    if wanted:
        try:
            request = session.request("client/registerCapability", {"registrations": wanted})
            await asyncio.wait_for(request, _SECONDS_FOR_AN_ANSWER)
        except Exception:  # noqa: BLE001  (then nothing is watched)
            return
