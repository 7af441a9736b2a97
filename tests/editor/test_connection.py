"""JSON-RPC without a process: requests of both sides that fail or are cancelled, and how messages are read."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from ctxlint.editor import lsp
from ctxlint.editor.connection import Connection, Refusal
from ctxlint.editor.uris import path_of, uri_of

if TYPE_CHECKING:
    from collections.abc import Awaitable

Sent = list[dict[str, Any]]


def connected() -> tuple[Connection, Sent]:
    """A connection that has begun, and what it sends from now on."""
    connection, sent = Connection(), Sent()
    connection.feature("initialize")(lambda _: None)
    receive(connection, id=0, method="initialize", params={"capabilities": {}})
    connection.write = lambda message: sent.append(json.loads(message.partition(b"\r\n\r\n")[2]))
    return connection, sent


def receive(connection: Connection, **message: object) -> None:
    connection.receive(json.dumps({"jsonrpc": "2.0", **message}).encode())


def test_a_request_is_cancelled() -> None:
    async def session() -> None:
        connection, sent = connected()
        connection.feature("wait")(lambda _: asyncio.sleep(60))
        receive(connection, id=7, method="wait")
        await asyncio.sleep(0)
        receive(connection, method="$/cancelRequest", params={"id": 7})
        receive(connection, method="$/cancelRequest", params={"id": 8})
        receive(connection, method="$/cancelRequest")
        await asyncio.sleep(0.01)
        assert [(each["id"], each["error"]["code"]) for each in sent] == [(7, -32800)]

    asyncio.run(session())


def test_what_fails_is_answered_with_an_error(caplog: pytest.LogCaptureFixture) -> None:
    async def later(_: object) -> None:
        raise KeyError("late")

    def at_once(_: object) -> None:
        raise ValueError("early")

    async def session() -> None:
        connection, sent = connected()
        connection.feature("later")(later)
        connection.feature("at once")(at_once)
        for number, method in enumerate(("later", "at once", "unknown")):
            receive(connection, id=number, method=method)
        receive(connection, method="at once")
        receive(connection, method="unknown")
        await asyncio.sleep(0.01)
        assert {each["id"]: each["error"]["code"] for each in sent} == {0: -32603, 1: -32603, 2: -32601}

    asyncio.run(session())
    assert "late" in caplog.text
    assert "early" in caplog.text


def test_what_the_client_is_asked_may_fail(caplog: pytest.LogCaptureFixture) -> None:
    async def failing(answer: Awaitable[object]) -> None:
        with pytest.raises(Refusal, match="no"):
            await answer

    async def session() -> None:
        connection, sent = connected()
        asked, forgotten = connection.request("a"), connection.request("b")
        for each in sent[:2]:
            receive(connection, id=each["id"], error={"code": 1, "message": "no"})
        await failing(asked)
        del forgotten
        answered = connection.request("c", lsp.Position(1, 2))
        receive(connection, id=sent[2]["id"], result=[3])
        receive(connection, id=sent[2]["id"], result=[4])
        assert await answered == [3]
        assert sent[2]["params"] == {"line": 1, "character": 2}

    asyncio.run(session())
    assert [each.levelname for each in caplog.records] == ["WARNING"]


def test_messages_are_read_by_their_types() -> None:
    place = lsp.read(lsp.Position, {"line": 1.0, "character": 2, "more": None})
    assert (place.line, place.character) == (1, 2)
    assert lsp.read(lsp.CodeActionContext, {"only": ["quickfix"]}).only == ["quickfix"]
    assert lsp.read(lsp.CodeActionContext, {"only": None}).only is None
    for value in (None, 1, [], {"line": 1}, {"line": 1, "character": "2"}, {"line": True, "character": 0}):
        with pytest.raises(lsp.Invalid):
            lsp.read(lsp.Position, value)


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("/a b/ü#.py", "file:///a%20b/%C3%BC%23.py"),
        ("//host/share/a.py", "file://host/share/a.py"),
        ("c:/a.py", "file:///c:/a.py"),
    ],
)
def test_paths_of_addresses(path: str, uri: str) -> None:
    assert uri_of(path) == uri
    assert path_of(uri) == path
    assert path_of(uri.replace("c:", "C%3A")) == path


def test_other_addresses_are_kept() -> None:
    for uri in ("untitled:a.py", "file://[", "file:", "::"):
        assert path_of(uri) == uri
