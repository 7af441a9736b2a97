"""A small client of the language server; it sends what an editor sends, and can violate the protocol."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SECONDS = 30
"""How long an answer may take on a busy machine before a test gives up."""

Message = dict[str, Any]


class Client:
    """The server as a process, and the editor's side of the protocol."""

    def __init__(self, *arguments: str, environment: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ctxlint", "server", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(environment or {})},
        )
        self.capabilities: Message = {}
        self.requests: list[Message] = []
        """What the server asked."""
        self.notifications: list[Message] = []
        self.configuration: Callable[[str | None], object] = lambda _: None
        """What is answered to workspace/configuration, by the address of the folder."""
        self.answers = True
        """Whether the server's requests are answered."""
        self._incoming: queue.Queue[Message | None] = queue.Queue()
        self._next_id = 0
        self.errors = b""
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._drain, daemon=True).start()

    # Messages

    def send_raw(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message: object) -> None:
        body = json.dumps(message).encode()
        self.send_raw(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def notify(self, method: str, params: object = None) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def ask(self, method: str, params: object = None) -> int:
        """Send a request without waiting for the answer; gives its id."""
        self._next_id += 1
        self.send({"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": params})
        return self._next_id

    def answer(self, asked: int) -> Message:
        """The whole answer to a request."""
        return self.until(lambda message: message.get("id") == asked and "method" not in message)

    def request(self, method: str, params: object = None) -> Any:
        """The result of a request."""
        message = self.answer(self.ask(method, params))
        assert "error" not in message, message
        return message["result"]

    def until(self, fits: Callable[[Message], bool], seconds: float = SECONDS) -> Message:
        """The next message that fits. Requests of the server are answered on the way."""
        while True:
            message = self._incoming.get(timeout=seconds)
            if message is None:
                raise EOFError(self.errors.decode())
            self._note(message)
            if fits(message):
                return message

    def told(self, method: str) -> Message:
        """The parameters of the first notification of a kind; waits for it if none has arrived."""
        come = next((each for each in self.notifications if each["method"] == method), None)
        found = come or self.until(lambda message: message.get("method") == method)
        return dict(found["params"])

    def _note(self, message: Message) -> None:
        if "method" not in message:
            return
        if "id" not in message:
            self.notifications.append(message)
            return
        self.requests.append(message)
        if not self.answers:
            return
        result: object = None
        if message["method"] == "workspace/configuration":
            result = [self.configuration(item.get("scopeUri")) for item in message["params"]["items"]]
        self.send({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while True:
            length = 0
            while (line := stream.readline()) not in (b"\r\n", b""):
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            if not line:
                self._incoming.put(None)
                return
            self._incoming.put(json.loads(stream.read(length)))

    def _drain(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.errors += line

    # A session

    def initialize(
        self,
        folders: list[Path] | None = None,
        capabilities: Message | None = None,
        options: object = None,
        process: int | None = None,
    ) -> Client:
        params = {
            "processId": process,
            "rootUri": None,
            "capabilities": capabilities or {},
            "initializationOptions": options,
            "workspaceFolders": [{"uri": each.as_uri(), "name": each.name} for each in folders or []] or None,
        }
        self.capabilities = self.request("initialize", params)["capabilities"]
        self.notify("initialized", {})
        return self

    def open(self, uri: str, text: str, version: int = 1, language: str = "python") -> str:
        item = {"uri": uri, "languageId": language, "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})
        return uri

    def change(self, uri: str, text: str, version: int) -> None:
        changes = [{"text": text}]
        identifier = {"uri": uri, "version": version}
        self.notify("textDocument/didChange", {"textDocument": identifier, "contentChanges": changes})

    def pushed(self, uri: str, version: int | None = None) -> list[Message]:
        """The next diagnostics pushed for a document, of this version if one is given."""

        def fits(message: Message) -> bool:
            params = message.get("params") or {}
            return (
                message.get("method") == "textDocument/publishDiagnostics"
                and params["uri"] == uri
                and (version is None or params.get("version") == version)
            )

        return list(self.until(fits)["params"]["diagnostics"])

    def pulled(self, uri: str) -> list[Message]:
        """The diagnostics that a pull request returns."""
        return list(self.request("textDocument/diagnostic", {"textDocument": {"uri": uri}})["items"])

    def actions(self, uri: str, only: list[str] | None = None, where: Message | None = None) -> list[Message]:
        """The code actions for a range, by default the whole document."""
        everything = {"start": {"line": 0, "character": 0}, "end": {"line": 100_000, "character": 0}}
        context: Message = {"diagnostics": []} if only is None else {"diagnostics": [], "only": only}
        params = {"textDocument": {"uri": uri}, "range": where or everything, "context": context}
        return list(self.request("textDocument/codeAction", params) or [])

    def stop(self) -> int:
        """End the session as the protocol requires; return the exit code."""
        self.request("shutdown")
        self.notify("exit")
        return self.process.wait(SECONDS)

    def close(self) -> None:
        """Leave no process behind, however the test ended."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    continue


# Texts


def unit_index(line: str, units: int, encoding: str) -> int:
    """The index of the character that ``units`` of the encoding lead to, worked out by encoding the line."""
    name, size = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}[encoding]
    return len(line.encode(name)[: units * size].decode(name))


def lines_of(text: str) -> list[str]:
    """The lines as the protocol counts them, each with its ending."""
    lines, start = [], 0
    for index, character in enumerate(text):
        if character == "\n" or (character == "\r" and text[index + 1 : index + 2] != "\n"):
            lines.append(text[start : index + 1])
            start = index + 1
    return [*lines, text[start:]]


def offset(text: str, position: Message, encoding: str = "utf-16") -> int:
    lines = lines_of(text)
    above = sum(len(line) for line in lines[: position["line"]])
    return above + unit_index(lines[position["line"]], position["character"], encoding)


def marked(text: str, where: Message, encoding: str = "utf-16") -> str:
    """The text of a range."""
    return text[offset(text, where["start"], encoding) : offset(text, where["end"], encoding)]


def applied(text: str, edit: Message, encoding: str = "utf-16") -> str:
    """The text after a WorkspaceEdit of one document."""
    changes = edit.get("documentChanges")
    edits = changes[0]["edits"] if changes else next(iter(edit["changes"].values()), [])
    places = [
        (offset(text, each["range"]["start"], encoding), offset(text, each["range"]["end"], encoding), each["newText"])
        for each in edits
    ]
    for start, end, content in sorted(places, reverse=True):
        text = text[:start] + content + text[end:]
    return text
