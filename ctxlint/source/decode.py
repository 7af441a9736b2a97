"""From bytes to text and back, so that everything that is not edited stays the same, byte for byte."""

from __future__ import annotations

import codecs
import warnings
from typing import TYPE_CHECKING

from ctxlint.patterns import pattern
from ctxlint.profiling import stage
from ctxlint.source.disguise import FOREIGN_MARKS, SLOW
from ctxlint.source.reading import Undecodable, refusal

if TYPE_CHECKING:
    from ctxlint.source.source import Source

NOTEBOOK = ".ipynb"
_BOM = "\ufeff"
_TWO_LINES = pattern(rb"([^\r\n]*)(?:\r\n|\r|\n)?([^\r\n]*)")
_LINE_END = pattern(rb"\r\n|\r|\n")
_PLAIN = ("utf-8", "ascii", "iso-8859-1")
"""The usual encodings, which round-trip any bytes."""


def _checked(text: str) -> str:
    """``text``, if it can be analysed.

    Raises:
        Undecodable: It cannot.
    """
    reason = refusal(text)
    if reason:
        raise Undecodable(reason)
    return text


@stage("read")
def decode(path: str, data: bytes) -> Source:
    """The text of a file; for a notebook, its code.

    Raises:
        Undecodable: It is not in the encoding that it declares (PEP 263, otherwise UTF-8), or not a notebook.
        NotPython: A notebook in another language.
    """
    from ctxlint.source.source import Source  # most files are never decoded

    for mark, name in FOREIGN_MARKS.items():
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
    """A file with this text, which may begin with a byte order mark. For a notebook, raises what ``decode`` raises."""
    from ctxlint.source.source import Source

    bom = text.startswith(_BOM)
    text = text[len(_BOM) :] if bom else text
    if path.endswith(NOTEBOOK):
        from ctxlint.source.notebook import read_notebook

        return read_notebook(path, text, bom=bom)
    return Source(path, _checked(text), bom=bom)


def encode(source: Source, text: str) -> bytes:
    """The bytes of ``text`` in the encoding of ``source``.

    Raises:
        Undecodable: The encoding cannot represent it.
    """
    try:
        data = text.encode(source.encoding)
    except UnicodeEncodeError as error:
        raise Undecodable(f"The file's encoding {source.encoding} cannot encode {text[error.start]!r}") from error
    return codecs.BOM_UTF8 + data if source.bom else data


def _declared_encoding(body: bytes) -> str:
    """The encoding that one of the first two lines declares, or UTF-8.

    Raises:
        Undecodable: The encoding is unknown.
    """
    found = _TWO_LINES.match(body)
    lines = found.groups() if found else ()
    if b"coding" not in b"".join(lines):
        return "utf-8"
    import tokenize  # few files get here

    # Only the declaration matters here; `detect_encoding` would also validate the rest of the lines, with less clear
    # errors.
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
    """Decode, and check that ASCII is represented as itself and that the text round-trips."""
    if codecs.lookup(encoding).name in SLOW:
        raise LookupError(encoding)
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
