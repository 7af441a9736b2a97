"""Messages on standard input and output, and the end of the process when the client is gone."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import threading
import time
from typing import TYPE_CHECKING

from ctxlint.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.editor.connection import Connection

_LENGTH = pattern(rb"Content-Length:[ \t]*(\d{1,10})[ \t]*\Z", re.IGNORECASE)
_LONGEST_HEADER = 1 << 16
_SECONDS_TO_END = 2.0
_SECONDS_BETWEEN_LOOKS = 2.0


def serve(connection: Connection) -> int:
    """Answer messages on standard input and output until the client ends; returns the exit code."""
    incoming, outgoing = os.dup(sys.stdin.fileno()), os.dup(sys.stdout.fileno())
    # Anything that other code prints by mistake must not get between the messages.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        asyncio.run(_serve(connection, incoming, outgoing))
    except KeyboardInterrupt:
        return 130
    except SystemExit as end:  # the answer to `exit`
        return end.code if isinstance(end.code, int) else 1
    return 0


async def _serve(connection: Connection, incoming: int, outgoing: int) -> None:
    loop, gone = asyncio.get_running_loop(), asyncio.Event()
    connection.write = _Writer(outgoing, gone).write

    def read() -> None:
        try:
            for body in messages(incoming):
                loop.call_soon_threadsafe(connection.receive, body)
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
