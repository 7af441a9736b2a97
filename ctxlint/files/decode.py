"""From bytes to text and back, so that what is not edited stays as it was, byte for byte."""

from __future__ import annotations

import codecs
import io
import os
import stat
import tokenize

from ctxlint.files.source import Source


class Unreadable(Exception):
    """A file that the system will not give; the text of the exception says why."""


class Undecodable(Exception):
    """A file that is not the text it says it is; the text of the exception says why."""


def read_bytes(path: str) -> bytes:
    """The content of a file. Raises Unreadable; never waits for a pipe or a device."""
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise Unreadable("Is a directory")
        if not stat.S_ISREG(mode):
            raise Unreadable("Not a regular file")
        with open(path, "rb") as file:
            return file.read()
    except (OSError, ValueError) as error:
        raise Unreadable(getattr(error, "strerror", None) or str(error)) from error


def decode(path: str, data: bytes) -> Source:
    """The text of a file. Raises Undecodable where it is not in the encoding that it declares (PEP 263, else UTF-8)."""
    bom = data.startswith(codecs.BOM_UTF8)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise Undecodable("The file is in UTF-16, which Python does not read; save it as UTF-8")
    try:
        encoding, _lines = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError as error:
        raise Undecodable(f"The encoding of the file is not clear: {error.msg}") from error
    encoding = "utf-8" if encoding == "utf-8-sig" else encoding
    try:
        text = (data[len(codecs.BOM_UTF8) :] if bom else data).decode(encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise Undecodable(f"The file is not valid {encoding} (line {line}, byte {error.start + 1})") from error
    except (LookupError, ValueError) as error:
        raise Undecodable(f"The file cannot be read as {encoding}: {error}") from error
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise Undecodable(f"The file holds a null byte (line {line}), so it is no Python source")
    return Source(path, text, encoding, bom)


def encode(source: Source, text: str) -> bytes:
    """The bytes of ``text`` as the file of ``source`` writes them. Raises Undecodable where its encoding cannot."""
    try:
        data = text.encode(source.encoding)
    except UnicodeEncodeError as error:
        raise Undecodable(f"The file's encoding {source.encoding} cannot write {text[error.start]!r}") from error
    return codecs.BOM_UTF8 + data if source.bom else data
