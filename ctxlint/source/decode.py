"""From bytes to text and back, so that what is not edited stays as it was, byte for byte."""

from __future__ import annotations

import codecs
import os
import re
import stat
import sys
import warnings
from typing import TYPE_CHECKING

from ctxlint.profiling import stage

if TYPE_CHECKING:
    from ctxlint.source.source import Source

NOTEBOOK = ".ipynb"
_BOM = "\ufeff"
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_CHUNK = 1 << 24
MOST_BYTES = 100_000_000
"""The size of the largest file that is read; GitHub takes none that is larger."""
MOST_CHARACTERS = 2_000_000
"""The length of the longest code that is analysed. To parse that much may take 1.8 GB, and nobody writes half of it."""
_FOREIGN_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
_TWO_LINES = re.compile(rb"([^\r\n]*)(?:\r\n|\r|\n)?([^\r\n]*)")
_LINE_END = re.compile(rb"\r\n|\r|\n")
_PLAIN = ("utf-8", "ascii", "iso-8859-1")
"""The usual encodings, which give back the bytes that they were given."""


class Unreadable(Exception):
    """A file that the system will not give; the text of the exception says why."""


class Undecodable(Exception):
    """A file that is not the text it says it is; the text of the exception says why."""


class NotPython(Exception):
    """A notebook in another language; the text of the exception says in which."""


def read_bytes(path: str | os.PathLike[str], most: int = MOST_BYTES) -> bytes:
    """The content of a file of at most so many bytes. Raises Unreadable; never waits for a pipe or a device."""
    try:
        descriptor = os.open(path, _OPEN_FLAGS)
        try:
            return _read_all(descriptor, most)
        finally:
            os.close(descriptor)
    except MemoryError as error:
        raise Unreadable("Too large for the memory") from error
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        raise Unreadable(getattr(error, "strerror", None) or str(error)) from error


def read_stdin() -> bytes:
    """What is on standard input. Raises Unreadable where that is too much."""
    data = sys.stdin.buffer.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise too_large()
    return data


def first_bytes(path: str, count: int) -> bytes:
    """How a regular file begins; empty where that cannot be read. Never waits for a pipe or a device."""
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
    if len(pieces[0]) != status.st_size:  # large, growing, or one of the system's files, which say 0
        size = len(pieces[0])
        while pieces[-1]:
            pieces.append(os.read(descriptor, _CHUNK))
            size += len(pieces[-1])
            if size > most:
                raise too_large(most)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def too_large(most: int = MOST_BYTES) -> Unreadable:
    """The reason why something of more than so many bytes is not read."""
    return Unreadable(f"Larger than {most // 1_000_000} MB, the most that ctxlint reads")


def refusal(text: str) -> str:
    """Why code is not analysed; empty where it is."""
    from ctxlint.source.disguise import is_disguised

    if len(text) > MOST_CHARACTERS:
        return f"The code has more than {MOST_CHARACTERS:,} characters, the most that ctxlint analyses"
    if is_disguised(text):
        return "The code spells `autograd` with lookalike characters; ctxlint does not analyse it"
    return ""


def _checked(text: str) -> str:
    """``text``, if it is analysed. Raises Undecodable."""
    reason = refusal(text)
    if reason:
        raise Undecodable(reason)
    return text


@stage("read")
def decode(path: str, data: bytes) -> Source:
    """The text of a file, and of a notebook its code.

    Raises Undecodable where it is not in the encoding that it declares (PEP 263, else UTF-8) or no notebook, NotPython
    for a notebook in another language.
    """
    from ctxlint.source.source import Source  # most files are never decoded

    for mark, name in _FOREIGN_MARKS.items():
        if data.startswith(mark):
            raise Undecodable(f"The file is in {name}, which Python cannot read; save it as UTF-8")
    bom = data.startswith(codecs.BOM_UTF8)
    body = data[len(codecs.BOM_UTF8) :] if bom else data
    if path.endswith(NOTEBOOK):
        return source_of(path, _decode(data, "utf-8"))
    encoding = _declared_encoding(body)
    if bom and encoding != "utf-8":
        raise Undecodable(
            f"The file starts with the byte order mark of UTF-8 but declares {encoding}; remove one of the two"
        )
    text = _checked(_decode(body, encoding))
    if "\0" in text:
        line = _line_of(body, max(body.find(b"\0"), 0))
        raise Undecodable(f"The file contains a null byte (line {line}), so it is not Python source")
    return Source(path, text, encoding, bom)


def source_of(path: str, text: str) -> Source:
    """A file with this text, which may begin with a byte order mark. Raises for a notebook what ``decode`` raises."""
    from ctxlint.source.source import Source

    bom = text.startswith(_BOM)
    text = text[len(_BOM) :] if bom else text
    if path.endswith(NOTEBOOK):
        from ctxlint.source.notebook import read_notebook

        return read_notebook(path, text, bom=bom)
    return Source(path, _checked(text), bom=bom)


def encode(source: Source, text: str) -> bytes:
    """The bytes of ``text`` as the file of ``source`` writes them. Raises Undecodable where its encoding cannot."""
    try:
        data = text.encode(source.encoding)
    except UnicodeEncodeError as error:
        raise Undecodable(f"The file's encoding {source.encoding} cannot encode {text[error.start]!r}") from error
    return codecs.BOM_UTF8 + data if source.bom else data


def _declared_encoding(body: bytes) -> str:
    """The encoding that one of the first two lines names, or UTF-8. Raises Undecodable for a name that is none."""
    found = _TWO_LINES.match(body)
    lines = found.groups() if found else ()
    if b"coding" not in b"".join(lines):
        return "utf-8"
    import tokenize  # few files get here

    # Only the names matter here; `detect_encoding` would judge the rest of the lines as well, and less clearly.
    plain = [line.decode("ascii", "replace").encode("ascii", "replace") + b"\n" for line in lines]
    try:
        encoding, _ = tokenize.detect_encoding(iter(plain).__next__)
    except SyntaxError as error:
        name = str(error.msg).rpartition(": ")[2]
        raise Undecodable(f"The file declares the encoding {name}, which Python does not support") from error
    return "utf-8" if codecs.lookup(encoding).name in ("utf-8", "utf-8-sig") else encoding


def _decode(body: bytes, encoding: str) -> str:
    try:
        text = body.decode(encoding) if encoding in _PLAIN else _decode_unusual(body, encoding)
    except UnicodeDecodeError as error:
        place = f"line {_line_of(body, error.start)}, byte {body[error.start]:#04x}"
        if encoding == "utf-8":
            raise Undecodable(f"The file is not valid UTF-8 ({place}) and declares no other encoding") from error
        raise Undecodable(f"The file declares {encoding} but is not valid {encoding} ({place})") from error
    except (LookupError, ValueError) as error:
        raise Undecodable(f"The file declares {encoding}, which is not an encoding for source code") from error
    return text


def _decode_unusual(body: bytes, encoding: str) -> str:
    """Decode, and make sure that ASCII stands for itself and that the text gives the same bytes back."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # unicode_escape warns of unknown escapes
        if b"# coding".decode(encoding) != "# coding":
            raise LookupError(encoding)
        text = body.decode(encoding)
        if text.encode(encoding) != body:
            raise Undecodable(f"The file is in {encoding}, which does not preserve its text when it is written")
    return text


def _line_of(body: bytes, offset: int) -> int:
    return len(_LINE_END.findall(body, 0, offset)) + 1
