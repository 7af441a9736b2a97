"""Text output for any terminal: stream, encoding, colours."""

from __future__ import annotations

import os
import stat
import sys
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterable


def write(pieces: Iterable[str], stream: TextIO, *, encoding: str = "") -> None:
    """Write ``pieces`` to ``stream``; unsupported characters are escaped, file names keep their bytes."""
    buffer = getattr(stream, "buffer", None)
    if buffer is None:
        stream.writelines(pieces)
        return
    stream.flush()
    for piece in pieces:
        buffer.write(encoded(piece, encoding or stream.encoding or "utf-8"))
    buffer.flush()


def write_bytes(data: bytes, stream: Any) -> None:
    """Write ``data`` unchanged to a binary file, or to the buffer of a text stream."""
    stream.flush()
    buffer = getattr(stream, "buffer", stream)
    buffer.write(data)
    buffer.flush()


def encoded(text: str, encoding: str) -> bytes:
    """``text`` as bytes; never raises."""
    try:
        return text.encode(encoding, "surrogateescape" if encoding.lower() != "utf-8" else "strict")
    except UnicodeEncodeError:
        return text.encode(encoding, "backslashreplace")


def wants_color(when: str, stream: TextIO) -> bool:
    """Whether to use colours on ``stream``: decided by ``--color``, by the environment, or by it being a terminal."""
    if when != "auto":
        return when == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def is_read_by_people(stream: TextIO) -> bool:
    """Whether ``stream`` is a terminal, or the log of a CI system that parses commands in it."""
    if stream.isatty():
        return True
    if not (os.environ.get("GITHUB_ACTIONS") or os.environ.get("TF_BUILD")):
        return False
    try:
        return not stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except OSError:
        return False


def path_shown(path: str) -> str:
    """A path for messages: relative if it is below the current folder."""
    try:
        relative = os.path.relpath(path)
    except ValueError:  # another drive
        return path
    return path if relative.startswith("..") else relative


def say(message: str) -> None:
    """Print a message for users that is not part of the report, on one line."""
    from ctxlint.report.visible import visible

    write([f"{visible(message)}\n"], sys.stderr)
