"""Messages on standard input and output, and the end of the process when the client is gone."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInternalError,
    JsonRpcInvalidRequest,
    JsonRpcParseError,
    JsonRpcServerNotInitialized,
)

from ctxlint.editor.protocol_types import drop_unread
from ctxlint.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pygls.lsp.server import LanguageServer

_LENGTH = pattern(rb"Content-Length:[ \t]*(\d{1,10})[ \t]*\Z", re.IGNORECASE)
_LONGEST_HEADER = 1 << 16
_FUTURES_KEPT = 32
_SECONDS_TO_END = 2.0
_SECONDS_BETWEEN_LOOKS = 2.0


def serve(server: LanguageServer) -> int:
    """Answer messages on standard input and output until the client ends; returns the exit code."""
    incoming, outgoing = os.dup(sys.stdin.fileno()), os.dup(sys.stdout.fileno())
    # Anything that other code prints by mistake must not get between the messages.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        asyncio.run(_serve(server, incoming, outgoing))
    except KeyboardInterrupt:
        return 130
    except SystemExit as end:  # pygls answers `exit` this way
        return end.code if isinstance(end.code, int) else 1
    return 0


async def _serve(server: LanguageServer, incoming: int, outgoing: int) -> None:
    loop, gone = asyncio.get_running_loop(), asyncio.Event()
    writer = _Writer(outgoing, gone)
    server.protocol.set_writer(writer)
    phase = _Phase()

    def handle(body: bytes) -> None:
        _handle(server, phase, body)
        _forget_answered(server)

    def read() -> None:
        try:
            for body in messages(incoming):
                loop.call_soon_threadsafe(handle, body)
        except (OSError, MemoryError):
            pass
        try:
            loop.call_soon_threadsafe(gone.set)
        except RuntimeError:  # the loop has ended already
            return
        time.sleep(_SECONDS_TO_END)  # the loop may be blocked writing to a client that does not read
        os._exit(1)

    threading.Thread(target=read, name="stdin", daemon=True).start()
    await gone.wait()


def messages(descriptor: int) -> Iterator[bytes]:
    """The bodies of the messages on a pipe, up to its end. Text that is not a header is skipped."""
    data = bytearray()
    while True:
        header_end = data.find(b"\n")
        if header_end < 0:
            if len(data) > _LONGEST_HEADER:
                data.clear()
            if not _read_on(descriptor, data):
                return
            continue
        found = _LENGTH.search(bytes(data[:header_end]).rstrip(b"\r"))
        del data[: header_end + 1]
        if found is None:
            continue
        body = _body(descriptor, data, int(found[1]))
        if body is None:
            return
        yield body


def _body(descriptor: int, data: bytearray, length: int) -> bytes | None:
    """The body after a header with its length; bytes beyond it stay in ``data``. None at the end."""
    while True:  # the rest of the header, up to an empty line
        line_end = data.find(b"\n")
        if line_end >= 0:
            line = bytes(data[:line_end]).rstrip(b"\r")
            del data[: line_end + 1]
            if not line:
                break
        elif not _read_on(descriptor, data):
            return None
    while len(data) < length:
        if not _read_on(descriptor, data):
            return None
    body = bytes(data[:length])
    del data[:length]
    return body


def _read_on(descriptor: int, data: bytearray) -> bool:
    more = os.read(descriptor, 1 << 16)
    data += more
    return bool(more)


class _Phase:
    """The phase of the protocol."""

    is_begun = False
    is_over = False


def _is_refused(server: LanguageServer, phase: _Phase, raw: dict[str, Any]) -> bool:
    """Whether a message is not allowed in this phase; a request gets an error response."""
    method = raw.get("method")
    refusal: JsonRpcException | None = None
    if method is None or method == "exit":
        return False
    if phase.is_over:
        refusal = JsonRpcInvalidRequest("the session was shut down")
    elif phase.is_begun and method == "initialize":
        refusal = JsonRpcInvalidRequest("the session has begun already")
    elif not phase.is_begun and method != "initialize":
        refusal = JsonRpcServerNotInitialized("the session has not begun")
    if refusal is None:
        phase.is_begun, phase.is_over = True, method == "shutdown"
        return False
    if isinstance(raw.get("id"), (int, str)):
        error = {"code": refusal.code, "message": refusal.message}
        _send(server, {"jsonrpc": "2.0", "id": raw["id"], "error": error})
    return True


def _handle(server: LanguageServer, phase: _Phase, body: bytes) -> None:
    """Dispatch one message. An invalid request gets an error response; anything else is logged."""
    request_id: Any = None
    try:
        try:
            raw = json.loads(body)
        except (ValueError, RecursionError) as error:
            refusal = {"code": JsonRpcParseError.CODE, "message": f"no JSON: {error}"}
            _send(server, {"jsonrpc": "2.0", "id": None, "error": refusal})
            return
        if not isinstance(raw, dict):
            refusal = {"code": JsonRpcInvalidRequest.CODE, "message": "a message is an object"}
            _send(server, {"jsonrpc": "2.0", "id": None, "error": refusal})
            return
        if _is_refused(server, phase, raw):
            return
        request_id = raw.get("id") if "method" in raw else None
        if raw.get("method") == "initialize":
            drop_unread(raw.get("params"))
        message = server.protocol.structure_message(raw)
        if isinstance(message, dict):
            raise TypeError("no JSON-RPC message")
        request_id = None  # from here on, pygls responds
        server.protocol.handle_message(message)
    except (Exception, RecursionError) as error:  # noqa: BLE001  (one message must not end the server)
        server.report_server_error(error, JsonRpcInternalError)
        if isinstance(request_id, (int, str)):
            known = error if isinstance(error, JsonRpcException) else JsonRpcInternalError(str(error))
            answer = {"code": known.code, "message": known.message}
            _send(server, {"jsonrpc": "2.0", "id": request_id, "error": answer})


def _forget_answered(server: LanguageServer) -> None:
    """Drop the future that pygls 2.1 keeps forever for every notification."""
    futures = getattr(server.protocol, "_request_futures", {})
    if len(futures) > _FUTURES_KEPT:
        for key in [key for key, future in futures.items() if future.done()]:
            del futures[key]


def _send(server: LanguageServer, message: dict[str, Any]) -> None:
    body = json.dumps(message).encode()
    writer = server.protocol.writer
    if writer is not None:
        writer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)


class _Writer:
    """Writes messages; a closed pipe ends the server."""

    def __init__(self, descriptor: int, gone: asyncio.Event) -> None:
        self._descriptor = descriptor
        self._gone = gone

    def write(self, data: bytes) -> None:
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError:
            self._gone.set()

    def close(self) -> None:
        os.close(self._descriptor)


def end_with(process: int | None) -> None:
    """End this process when the client's ``process`` ends, even if the pipe is still open in another process.

    A process that is not visible from here (another container) is ignored.
    """
    if process is None or os.name != "posix" or not _runs(process):
        return

    def watch() -> None:
        while _runs(process):
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        os._exit(1)

    threading.Thread(target=watch, name="client", daemon=True).start()


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True
