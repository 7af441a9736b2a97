"""What a client sends is checked, answered in order, and can be cancelled."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from ctxlint.editor import lsp
from ctxlint.editor.connection import Connection, RefusedByClient
from ctxlint.editor.uris import path_of, uri_of

HERE = {"textDocument": {"uri": "file:///a.py"}, "position": {"line": 1, "character": 0}}
CELLS = {"array": {"start": 0, "deleteCount": 1}, "didOpen": None, "didClose": [{"uri": "cell:1"}]}


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (HERE, lsp.AtPosition),
        ({**HERE, "more": 1}, lsp.AtPosition),
        ({**HERE, "context": {"includeDeclaration": False}}, lsp.References),
        ({"textDocument": {"uri": "a"}, "previousResultId": None}, lsp.Pull),
        ({"textDocument": {"uri": "a", "version": None}, "contentChanges": [{"text": ""}]}, lsp.TextChanged),
        (
            {"notebookDocument": {"uri": "a", "version": 1}, "change": {"cells": {"structure": CELLS}}},
            lsp.NotebookChanged,
        ),
        ({"id": "x"}, lsp.Cancelled),
        ({"settings": [1]}, lsp.SettingsChanged),
        ({}, lsp.Initialize),
        (None, Any),
    ],
)
def test_what_the_protocol_allows_fits(value: object, kind: object) -> None:
    assert lsp.fits(value, kind)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, lsp.AtPosition),
        ({"textDocument": {"uri": "a"}}, lsp.AtPosition),
        ({**HERE, "position": {"line": "1", "character": 0}}, lsp.AtPosition),
        ({**HERE, "position": {"line": True, "character": 0}}, lsp.AtPosition),
        ({**HERE, "textDocument": {"uri": None}}, lsp.AtPosition),
        ({"textDocument": {"uri": "a"}, "contentChanges": [{"text": ""}]}, lsp.TextChanged),
        ({"textDocument": {"uri": "a", "version": 1}, "contentChanges": {}}, lsp.TextChanged),
        ({"id": 1.5}, lsp.Cancelled),
        ({"capabilities": []}, lsp.Initialize),
    ],
)
def test_anything_else_does_not(value: object, kind: object) -> None:
    assert not lsp.fits(value, kind)


class Conversation:
    """A connection that has begun, and what it has written."""

    def __init__(self) -> None:
        self.connection = Connection()
        self.written: list[dict[str, Any]] = []
        self.connection.write = lambda data: self.written.append(json.loads(data.partition(b"\r\n\r\n")[2]))
        self.connection.feature("initialize", Any)(lambda _: {})
        self.send("initialize", number=0)
        self.written.clear()

    def send(self, method: str, parameters: object = None, number: object = None) -> None:
        self.receive({"id": number, "method": method, "params": parameters})

    def receive(self, message: object) -> None:
        self.connection.receive(json.dumps(message).encode())

    def codes(self) -> list[tuple[object, int]]:
        return [(each["id"], each["error"]["code"]) for each in self.written]


def test_a_request_is_cancelled() -> None:
    async def talk() -> None:
        talked = Conversation()

        async def wait(_parameters: object) -> None:
            await asyncio.sleep(100)

        talked.connection.feature("wait", Any)(wait)
        talked.send("wait", number=1)
        talked.send("wait", number="two")
        talked.send("wait")
        await asyncio.sleep(0)
        talked.send("$/cancelRequest", {"id": "two"})
        talked.send("$/cancelRequest", {"id": 3})
        await asyncio.sleep(0)
        assert talked.codes() == [("two", -32800)]
        talked.send("shutdown", number=4)
        await asyncio.sleep(0)
        assert talked.written[1] == {"jsonrpc": "2.0", "id": 4, "result": None}
        assert talked.written[2]["error"]["code"] == -32800

    asyncio.run(talk())


def test_a_handler_that_fails_is_answered(caplog: pytest.LogCaptureFixture) -> None:
    async def talk() -> None:
        talked = Conversation()

        def fail(_parameters: object) -> object:
            raise KeyError("x")

        async def fail_later(_parameters: object) -> object:
            return {1j}  # which JSON cannot hold

        talked.connection.feature("fail", Any)(fail)
        talked.connection.feature("later", Any)(fail_later)
        talked.send("fail", number=1)
        talked.send("fail")
        talked.send("later", number=2)
        await asyncio.sleep(0)
        assert talked.codes() == [(1, -32603), (2, -32603)]

    asyncio.run(talk())
    assert len(caplog.records) == 3


def test_answers_of_the_client() -> None:
    async def talk() -> None:
        talked = Conversation()
        asked = [talked.connection.request("a"), talked.connection.request("b", [1]), talked.connection.request("c")]
        assert "params" not in talked.written[0]
        talked.receive({"id": 2, "error": {"code": 1, "message": "no"}})
        talked.receive({"id": 1, "result": "yes"})
        rest: tuple[object, ...] = (1, "x", 9, None, {})
        for rubbish in rest:
            talked.receive({"id": rubbish, "result": 0})
        assert await asked[0] == "yes"
        with pytest.raises(RefusedByClient, match="no"):
            await asked[1]
        assert not asked[2].done()

    asyncio.run(talk())


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a/b%20c%23.py", "/a/b c#.py"),
        ("file:///c%3A/x.py", "c:/x.py"),
        ("file:///C:/x%3F.py", "c:/x?.py"),
        ("file://host/share/x.py", "//host/share/x.py"),
    ],
)
def test_addresses(uri: str, path: str) -> None:
    assert path_of(uri) == path
    assert path_of(uri_of(path)) == path


@pytest.mark.parametrize("uri", ["git:/a.py?ref", "untitled:Untitled-1", "::", "file://[", "", "no address"])
def test_other_addresses_are_no_files(uri: str) -> None:
    assert path_of(uri) == uri
