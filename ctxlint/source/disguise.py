r"""Names that Python recognises although the bytes of a file do not show them.

Python treats a full-width ``a`` in ``autograd`` as an ``a``: it normalises identifiers (NFKC). An encoding such as
UTF-7 spells letters differently, and so does the JSON of a notebook: ``\u0061``. The only reason to write ``autograd``
like that is to hide it.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from itertools import groupby

FOREIGN_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
"""The byte order marks of encodings that Python does not accept for source code; the longer ones first."""

_ASCII = bytes(range(128))
# Compiled at first use, as few files contain what they might match.
_LOOK_ALIKES = rb"""(?x)
      \xc2[\xaa\xba] | \xc4\xb3 | \xc5[\x89\xbf] | \xc7[\x86\x8c\xb3] | \xca\xb3 | \xcb\xa2
    | \xe1[\xb4-\xb6\xba] | \xe2\x81[\xb1\xbf] | \xe2\x82[\x90-\x9c] | \xe2\x84[\x8a\xaf\xb1\xb4\xb9]
    | \xe2\x85[\x86-\x88\xb0-\xbe] | \xea\x9f\xb3 | \xef\xac[\x81-\x86] | \xef\xb8[\xb3\xb4] | \xef\xb9[\x8d-\x8f]
    | \xef\xbc[\xa6\xbf] | \xef\xbd[\x81-\x95] | \xf0\x9d[\x90-\x9b]
"""
"""The UTF-8 sequences that are equivalent to a letter of the relevant words, and some others."""
_JSON = rb"(?:\xef\xbb\xbf)?\s*\{"
_ESCAPE = r"\\u([0-9a-fA-F]{4})"
_COOKIE = rb"coding[:=][ \t]*([-\w.]+)"
SLOW = ("punycode", "idna")
"""Encodings for the names of hosts, which Python needs quadratic time to decode."""
_MARKS = r"[^\0-\u02ff]{1001}"
_MOST_MARKS = 1000
_TRANSPARENT = (b"utf-8", b"utf8", b"ascii", b"us-ascii")


def contains_words(data: bytes) -> bool:
    """Whether the bytes contain the words that every Function, and every custom gradient of an operator, needs."""
    if b"autograd" not in data:
        return False
    return b"register_autograd" in data or (re.search(_MODULE, data) is not None and re.search(_BASE, data) is not None)


_MODULE = rb"autograd\b(?:(?<![A-Za-z0-9_]autograd)|(?<=\\[bfnrt]autograd))"
"""The whole name of the module, also after a line break in JSON; not ``is_autograd_on``."""
_BASE = rb"Function\b"
"""The end of the name of a base: ``Function``, ``InplaceFunction``; not ``FunctionCtx``."""


def contains_hidden_words(data: bytes) -> bool:
    """Whether a file contains these words for Python, or for a JSON reader, although its bytes do not show them."""
    encoding = _encoding(data)
    if encoding.lower() in SLOW:
        return True  # `decode` refuses it
    escaped = re.match(_JSON, data) is not None and b"\\u" in data
    if not (encoding or escaped or _has_look_alikes(data)):
        return False
    try:
        text = data.decode(encoding or "utf-8", "replace")
    except (LookupError, ValueError, AssertionError):  # not a text encoding: `decode` reports it
        return False
    if escaped:
        text = re.sub(_ESCAPE, lambda found: chr(int(found[1], 16)), text)
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")  # two escapes may be one letter
    return _contains_words(text.translate({ord(each): unicodedata.normalize("NFKC", each) for each in set(text)}))


def is_disguised(text: str) -> bool:
    """Whether the code contains these words only in characters that Python treats as ASCII ones."""
    if text.isascii() or _contains_words(text) or unicodedata.is_normalized("NFKC", text):
        return False
    return _contains_words(unicodedata.normalize("NFKC", text))


def has_many_marks(text: str) -> bool:
    """Whether there are so many combining marks in a sequence that Python needs long to normalise a name of them."""
    if len(text.encode("utf-8", "surrogatepass")) - len(text) <= _MOST_MARKS:  # each takes several bytes
        return False
    return any(_longest_marks(found[0]) > _MOST_MARKS for found in re.finditer(_MARKS, text))


def _longest_marks(text: str) -> int:
    runs = groupby(text, lambda char: unicodedata.combining(char) > 0)
    return max((len(list(run)) for are_marks, run in runs if are_marks), default=0)


def _contains_words(text: str) -> bool:
    return "autograd" in text and ("Function" in text or "register_autograd" in text)


def _encoding(data: bytes) -> str:
    """The encoding that the file declares, by a mark or in words, if it may represent ASCII differently."""
    for mark, name in FOREIGN_MARKS.items():
        if data.startswith(mark):
            return name
    head = data[: data.find(b"\n", data.find(b"\n") + 1)]
    found = re.search(_COOKIE, head) if b"coding" in head else None
    return "" if found is None or found[1].lower().replace(b"_", b"-") in _TRANSPARENT else found[1].decode("ascii")


def _has_look_alikes(data: bytes) -> bool:
    return not data.isascii() and re.search(_LOOK_ALIKES, data.translate(None, _ASCII)) is not None
