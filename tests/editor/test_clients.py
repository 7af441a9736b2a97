"""The server with the capabilities of real editors, as recorded in pytest-lsp."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import pytest
from lsprotocol import types as lsp
from pytest_lsp import ClientServerConfig, client_capabilities

from tests.editor.client import offset
from tests.editor.texts import FIXED, ONE

if TYPE_CHECKING:
    from pathlib import Path

SERVER = ClientServerConfig(server_command=[sys.executable, "-m", "ctxlint", "server"])
TEXT = ONE.replace("return grad", "'\U0001f600'; return grad")


@pytest.mark.parametrize(
    ("editor", "encoding", "pulls"),
    [("visual-studio-code", "utf-16", False), ("neovim", "utf-8", True), ("emacs", "utf-32", False)],
)
def test_editors(tmp_path: Path, editor: str, encoding: str, pulls: bool) -> None:
    asyncio.run(session(tmp_path, editor, encoding, pulls))


async def session(folder: Path, editor: str, encoding: str, pulls: bool) -> None:
    client: Any = await SERVER.start()

    def accept(params: lsp.RegistrationParams) -> None:
        """Accept every request of the server."""

    client.feature(lsp.CLIENT_REGISTER_CAPABILITY)(accept)
    capabilities = client_capabilities(editor)
    answer = await client.initialize_session(
        lsp.InitializeParams(capabilities=capabilities, root_uri=folder.as_uri(), workspace_folders=None)
    )
    agreed = answer.capabilities.position_encoding
    assert str(getattr(agreed, "value", agreed)) == encoding
    uri = (folder / "a.py").as_uri()
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(uri, "python", 1, TEXT)))
    document = lsp.TextDocumentIdentifier(uri)
    if pulls:
        report = await client.text_document_diagnostic_async(lsp.DocumentDiagnosticParams(document))
        (found,) = report.items
        assert uri not in client.diagnostics
    else:
        await client.wait_for_notification(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        (found,) = client.diagnostics[uri]
    start = {"line": found.range.start.line, "character": found.range.start.character}
    assert TEXT[offset(TEXT, start, encoding) :].startswith("return grad_output")
    context = lsp.CodeActionContext(diagnostics=[found], only=["source.fixAll"])
    (action,) = await client.text_document_code_action_async(lsp.CodeActionParams(document, found.range, context))
    if action.edit is None:
        action = await client.code_action_resolve_async(action)
    changes = action.edit.document_changes
    edits = changes[0].edits if changes else action.edit.changes[uri]
    assert [each.new_text for each in edits] == [
        line
        for line in FIXED.replace("return grad", "'\U0001f600'; return grad").splitlines(keepends=True)
        if line not in TEXT.splitlines(keepends=True)
    ]
    await client.shutdown_session()
