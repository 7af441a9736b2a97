"""The server process: arguments, malformed input and shutdown."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from lsprotocol import types as lsprotocol
from lsprotocol.converters import get_converter
from pytest_lsp import client_capabilities

from ctxlint.editor import lsp
from ctxlint.editor.language_server import create
from tests.editor.client import SECONDS, Client, Message
from tests.editor.texts import ONE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.editor.conftest import Start

PULLS: Message = {"textDocument": {"diagnostic": {}}}


def test_it_ends_as_the_protocol_has_it(start: Start) -> None:
    client = start()
    assert client.stop() == 0
    assert client.errors == b""


def test_exit_without_shutdown_is_an_error(start: Start) -> None:
    client = start()
    client.notify("exit")
    assert client.process.wait(SECONDS) == 1


def test_stdio_is_accepted_and_nothing_else() -> None:
    client = Client("--stdio")
    try:
        client.initialize()
        assert client.stop() == 0
    finally:
        client.close()
    wrong = subprocess.run([sys.executable, "-m", "ctxlint", "server", "--tcp"], check=False, capture_output=True)
    assert wrong.returncode == 2


def test_rubbish_is_survived(start: Start, tmp_path: Path) -> None:
    client = start(capabilities=PULLS)
    uri = (tmp_path / "a.py").as_uri()
    for rubbish in (
        b"hello\r\n\r\n",
        b"\x00\xff\xfe\n" * 10,
        b"Content-Length: twelve\r\n\r\n{}",
        b"Content-Length: -5\r\n\r\n",
        b"Content-Length: 0\r\n\r\n",
        b"Content-Length: 9\r\n\r\nnot json!",
        b"Content-Length: 4\r\n\r\nnull",
        b"Content-Length: 2\r\n\r\n[]",
        b"Content-Length: 2\r\n\r\n{}",
        b"Content-Length: 3\r\n\r\n\xff\xfe\xfd",
        b"Content-Type: text/plain\r\ncontent-length: 2\r\n\r\n12",
        b"x" * 100_000 + b"\n",
        b'Content-Length: 17\r\n\r\n{"jsonrpc":"1.0"}',
        b'Content-Length: 32\r\n\r\n{"jsonrpc":"2.0","method":[1,2]}',
        b"Content-Length: 60000\r\n\r\n" + b"[" * 60_000,
    ):
        client.send_raw(rubbish)
    client.notify("no/such/notification", {"a": 1})
    client.notify("textDocument/didOpen", {"textDocument": 5})
    client.notify("textDocument/didOpen")
    client.notify("textDocument/didChange", {"textDocument": {"uri": uri, "version": 1}, "contentChanges": [{}]})
    client.change("file:///never/opened.py", "x", 1)
    client.notify("textDocument/didClose", {"textDocument": {"uri": "no address"}})
    client.open("::", ONE)
    client.open("file://[", ONE)
    assert "error" in client.answer(client.ask("no/such/request", {}))
    assert "error" in client.answer(client.ask("textDocument/codeAction", {"textDocument": 1}))
    assert "error" in client.answer(client.ask("textDocument/diagnostic"))
    client.open(uri, ONE)
    assert [each["code"] for each in client.pulled(uri)] == ["CTX203"]
    assert client.stop() == 0


def test_messages_out_of_their_time_are_refused(tmp_path: Path) -> None:
    client = Client()
    try:
        refused = client.answer(client.ask("textDocument/hover", {}))
        assert refused["error"]["code"] == -32002
        client.initialize(capabilities=PULLS)
        again = client.answer(client.ask("initialize", {"processId": None, "rootUri": None, "capabilities": {}}))
        assert again["error"]["code"] == -32600
        client.send_raw(b"Content-Length: 9\r\n\r\nnot json!")
        assert client.answer(None)["error"]["code"] == -32700  # type: ignore[arg-type]
        client.send_raw(b"Content-Length: 2\r\n\r\n[]")
        assert client.answer(None)["error"]["code"] == -32600  # type: ignore[arg-type]
        assert [each["code"] for each in client.pulled(client.open((tmp_path / "a.py").as_uri(), ONE))] == ["CTX203"]
        client.request("shutdown")
        late = client.answer(client.ask("textDocument/diagnostic", {"textDocument": {"uri": "file:///a.py"}}))
        assert late["error"]["code"] == -32600
        client.notify("exit")
        assert client.process.wait(SECONDS) == 0
    finally:
        client.close()


def test_the_client_is_answered_before_libcst_is_imported() -> None:
    code = "import sys, ctxlint.editor.language_server as s; s.create(); print([m for m in sys.modules if m.startswith('libcst')])"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout == b"[]\n"


def test_older_versions_of_a_file_are_left_alone(start: Start) -> None:
    client = start(capabilities=PULLS)
    assert client.pulled(client.open("git:/a.py?ref", ONE)) == []
    assert client.pulled(client.open("output:ctxlint", ONE)) == []


def test_a_closed_pipe_ends_it(start: Start) -> None:
    client = start()
    assert client.process.stdin is not None
    client.process.stdin.close()
    assert client.process.wait(SECONDS) == 0


def test_a_client_that_does_not_read_any_more_ends_it() -> None:
    server = subprocess.Popen(
        [sys.executable, "-m", "ctxlint", "server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        server.stdout.close()
        body = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":null,"capabilities":{}}}'
        server.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        server.stdin.flush()
        assert server.wait(SECONDS) == 0
    finally:
        server.kill()
        server.wait()
        server.stdin.close()


_EDITOR = """
import subprocess, sys, time
server = subprocess.Popen([sys.executable, "-m", "ctxlint", "server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
body = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":%d,"rootUri":null,"capabilities":{}}}'
import os
body = body % os.getpid()
server.stdin.write(b"Content-Length: %d\\r\\n\\r\\n" % len(body) + body)
server.stdin.flush()
server.stdout.readline()
print(server.pid, flush=True)
time.sleep(100)
"""


@pytest.mark.parametrize("pipe_stays_open", [False, True])
def test_a_killed_editor_leaves_no_server_behind(pipe_stays_open: bool) -> None:
    code = _EDITOR
    if pipe_stays_open:  # another child of the editor has inherited the pipe
        code = code.replace(
            "print(",
            "os.set_inheritable(server.stdin.fileno(), True)\n"
            "other = subprocess.Popen(['sleep', '30'], close_fds=False)\nprint(other.pid, ",
            1,
        )
    editor = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert editor.stdout is not None
    pids = [int(each) for each in editor.stdout.readline().split()]
    try:
        editor.kill()
        editor.wait()
        end = time.monotonic() + SECONDS
        while _runs(pids[-1]) and time.monotonic() < end:
            time.sleep(0.05)
        assert not _runs(pids[-1])
    finally:
        editor.stdout.close()
        for pid in pids:
            if _runs(pid):
                os.kill(pid, signal.SIGKILL)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as file:  # a child that nobody waits for any more is not running
        return file.read().rpartition(")")[2].split()[0] != "Z"


def test_asyncio_is_imported_without_ssl() -> None:
    code = (
        "import sys; from ctxlint.commands.server import import_asyncio; import_asyncio(); print('ssl' in sys.modules)"
    )
    found = subprocess.check_output(
        [sys.executable, "-c", f"{code}\nimport asyncio, ssl\nprint(ssl.create_default_context)"]
    )
    assert found.startswith(b"False")


@pytest.mark.parametrize("editor", ["visual-studio-code", "neovim", "emacs"])
def test_the_library_of_the_protocol_reads_what_is_answered(editor: str) -> None:
    converter, answers = get_converter(), list[bytes]()
    declared = json.dumps(client_capabilities(editor), default=converter.unstructure)
    server = create()
    server.write = answers.append
    server.receive(
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":null,"capabilities":%s}}'
        % declared.encode()
    )
    (answer,) = (json.loads(each.partition(b"\r\n\r\n")[2]) for each in answers)
    read = converter.structure(answer, lsprotocol.InitializeResponse).result.capabilities
    assert converter.unstructure(read) == answer["result"]["capabilities"]
    assert set(lsp.PARAMETERS) <= set(lsprotocol.METHOD_TO_TYPES)
