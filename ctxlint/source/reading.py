"""Reading files: with a maximum size, regular files only, and nothing that is too large to analyse."""

from __future__ import annotations

import os
import stat
import sys

_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_CHUNK = 1 << 24
MOST_BYTES = 100_000_000
"""The maximum size of a file; GitHub accepts none that is larger."""
MOST_CHARACTERS = 2_000_000
"""The maximum length of code to analyse. Parsing that much may take 1.8 GB, and no real file has half of it."""


OPEN: dict[str, str] = {}
"""The texts of files that are open in an editor, saved or not, by absolute paths: they override the disk."""


class Unreadable(Exception):
    """A file that cannot be read; the text of the exception gives the reason."""


class Undecodable(Exception):
    """A file that is not the text it claims to be; the text of the exception gives the reason."""


class NotPython(Exception):
    """A notebook in another language; the text of the exception names it."""


def read_bytes(path: str | os.PathLike[str], most: int = MOST_BYTES) -> bytes:
    """The content of a file of at most so many bytes; never waits for a pipe or a device.

    Raises:
        Unreadable: It is larger, or cannot be read.
    """
    try:
        descriptor = os.open(path, _OPEN_FLAGS)
        try:
            return _read_all(descriptor, most)
        finally:
            os.close(descriptor)
    except MemoryError as error:
        raise Unreadable("Not enough memory to read it") from error
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        raise Unreadable(getattr(error, "strerror", None) or str(error)) from error


def content_of(path: str) -> bytes:
    """The content of a file of the project: that of its open text, if there is one.

    Raises:
        Unreadable: It is not open, and cannot be read.
    """
    text = OPEN.get(os.path.abspath(path)) if OPEN else None
    return read_bytes(path) if text is None else text.encode("utf-8", "surrogatepass")


def content_or_nothing(path: str) -> bytes:
    """The content of a file of the project; empty if it cannot be read."""
    try:
        return content_of(path)
    except Unreadable:
        return b""


def read_stdin() -> bytes:
    """The content of standard input.

    Raises:
        Unreadable: It is too large.
    """
    data = sys.stdin.buffer.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise too_large()
    return data


def first_bytes(path: str, count: int) -> bytes:
    """The beginning of a regular file; empty if it cannot be read. Never waits for a pipe or a device."""
    try:
        descriptor = os.open(path, _OPEN_FLAGS)
    except (OSError, ValueError):
        return b""
    try:
        return os.read(descriptor, count) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _read_all(descriptor: int, most: int) -> bytes:
    status = os.fstat(descriptor)
    if stat.S_ISDIR(status.st_mode):
        raise Unreadable("Is a directory")
    if not stat.S_ISREG(status.st_mode):
        raise Unreadable("Not a regular file")
    if status.st_size > most:
        raise too_large(most)
    pieces = [os.read(descriptor, min(status.st_size + 1, _CHUNK))]
    if len(pieces[0]) != status.st_size:  # large, growing, or a virtual file, whose size is 0
        size = len(pieces[0])
        while pieces[-1]:
            pieces.append(os.read(descriptor, _CHUNK))
            size += len(pieces[-1])
            if size > most:
                raise too_large(most)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def too_large(most: int = MOST_BYTES) -> Unreadable:
    """The error for something of more than so many bytes."""
    return Unreadable(f"Larger than {most // 1_000_000} MB, the most that ctxlint reads")


def refusal(text: str) -> str:
    """Why code is not analysed; empty if it is."""
    from ctxlint.source.disguise import has_many_marks, is_disguised

    if len(text) > MOST_CHARACTERS:
        return f"The code has more than {MOST_CHARACTERS:,} characters, the most that ctxlint analyses"
    if has_many_marks(text):
        return "The code has more than 1,000 combining characters in sequence; ctxlint does not analyse it"
    if is_disguised(text):
        return "The code spells `autograd` with lookalike characters; ctxlint does not analyse it"
    return ""
