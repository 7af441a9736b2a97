"""The server process: arguments, malformed input and shutdown."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from cattrs.errors import ClassValidationError
from lsprotocol import types as lsp
from lsprotocol.converters import get_converter
from pygls.protocol import default_converter
from pytest_lsp import client_capabilities

from ctxlint.editor import stdio
from ctxlint.editor.language_server import create
from ctxlint.editor.protocol_types import drop_unread, make_converter
from tests.editor.client import SECONDS, Client, Message
from tests.editor.texts import ONE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.editor.conftest import Start

PULLS: Message = {"textDocument": {"diagnostic": {}}}


@pytest.mark.parametrize("missing", ["pygls", "lsprotocol"])
def test_without_the_extra_it_says_what_to_install(tmp_path: Path, missing: str) -> None:
    (tmp_path / f"{missing}.py").write_text(f"raise ModuleNotFoundError(name={missing!r})\n")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    run = subprocess.run(
        [sys.executable, "-m", "ctxlint", "server"],
        check=False,
        env={**os.environ, "PYTHONPATH": path},
        input="",
        capture_output=True,
        text=True,
    )
    assert run.returncode == 2
    assert run.stdout == ""
    assert run.stderr == (f'ctxlint: error: the language server needs {missing}; run `pip install "ctxlint[lsp]"`\n')


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


def test_classes_of_the_protocol_are_the_same_when_they_are_completed_late() -> None:
    fields = "{name: [(each.name, str(each.type), str(each.default)) for each in attrs.fields(one)]"
    fields += " for name, one in types.ALL_TYPES_MAP.items() if isinstance(one, type) and attrs.has(one)}"
    here = "from ctxlint.editor.protocol_types import import_protocol_types; import_protocol_types()"
    after = "converters.get_converter(); import sys; print(len(fields)); print(fields)"
    found = [
        subprocess.check_output(
            [sys.executable, "-c", f"{how}\nimport attrs\nfrom lsprotocol import types, converters\n{what}\n{after}"]
        )
        for how, what in ((here, f"fields = {fields}"), ("", f"converters.get_converter(); fields = {fields}"))
    ]
    assert found[0] == found[1]
    assert int(found[0].split()[0]) > 500


def test_asyncio_is_imported_without_ssl() -> None:
    code = (
        "import sys; from ctxlint.commands.server import import_asyncio; import_asyncio(); print('ssl' in sys.modules)"
    )
    found = subprocess.check_output(
        [sys.executable, "-c", f"{code}\nimport asyncio, ssl\nprint(ssl.create_default_context)"]
    )
    assert found.startswith(b"False")


def test_capabilities_that_nothing_reads_are_dropped() -> None:
    hover = {"contentFormat": ["markdown"]}
    parameters = {
        "processId": 1,
        "capabilities": {
            "general": {"positionEncodings": ["utf-8"], "markdown": {"parser": "marked"}},
            "textDocument": {"hover": hover, "completion": {"contextSupport": True}},
            "window": {"workDoneProgress": True},
            "workspace": 5,
        },
    }
    drop_unread(parameters)
    assert parameters == {
        "processId": 1,
        "capabilities": {
            "general": {"positionEncodings": ["utf-8"]},
            "textDocument": {"hover": hover},
            "window": {},
            "workspace": 5,
        },
    }
    rest: tuple[object, ...] = (None, [], {}, {"capabilities": "all"})
    for rubbish in rest:
        drop_unread(rubbish)


@pytest.mark.parametrize("editor", ["visual-studio-code", "neovim", "emacs"])
def test_dropped_capabilities_change_no_answer(editor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    declared = json.dumps(client_capabilities(editor), default=get_converter().unstructure)
    body = f'{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"processId":null,"capabilities":{declared}}}}}'
    answers: list[list[bytes]] = []
    for drop in (drop_unread, lambda _: None):
        monkeypatch.setattr(stdio, "drop_unread", drop)
        server, written = create(), list[bytes]()
        server.protocol.set_writer(SimpleNamespace(write=written.append))
        stdio._handle(server, stdio._Phase(), body.encode())
        answers.append(written)
    assert answers[0] == answers[1]
    assert b"positionEncoding" in answers[0][0]


@pytest.mark.parametrize("editor", ["visual-studio-code", "neovim", "emacs"])
def test_capabilities_are_read_and_written_as_by_the_library(editor: str) -> None:
    library, own = default_converter(), make_converter()  # type: ignore[no-untyped-call]
    declared = library.unstructure(client_capabilities(editor))
    read = own.structure(declared, lsp.ClientCapabilities)
    assert read == library.structure(declared, lsp.ClientCapabilities)
    assert own.unstructure(read) == declared
    server, written = create(), list[bytes]()
    server.protocol.set_writer(SimpleNamespace(write=written.append))
    asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"processId": None, "capabilities": declared}}
    stdio._handle(server, stdio._Phase(), json.dumps(asked).encode())
    (answer,) = (json.loads(each.partition(b"\r\n\r\n")[2]) for each in written)
    capabilities = answer["result"]["capabilities"]
    assert library.unstructure(library.structure(capabilities, lsp.ServerCapabilities)) == capabilities
    with pytest.raises(ClassValidationError, match="InitializeParams"):
        own.structure({"processId": None, "capabilities": 5}, lsp.InitializeParams)
