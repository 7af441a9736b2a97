"""Small files in formats other than Python: configurations, baselines, lists of arguments and of requirements.

They come with a checkout and are untrusted. An invalid file results in a clear error; nothing in it takes more time or
memory than its size justifies.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ctxlint.patterns import pattern
from ctxlint.source.reading import read_bytes

if TYPE_CHECKING:
    import os

_MOST_VALUES = 5_000_000
_DEEPEST = 200
_MOST_DIGITS = 300
_MOST_PARTS = 100

_BRACKETS = pattern(r"([\[{]+)|[\]}]+")
_KEYS = pattern(r"""[\w"'. \t-]+""")
_PART = pattern(r"""[\w"'-][ \t]*\.""")


class Malformed(Exception):
    """A text in an invalid format; the text of the exception gives the reason."""


def read_text(path: str | os.PathLike[str], most: int) -> str:
    """The text of a file in UTF-8, without a byte order mark.

    Raises:
        Unreadable: The file cannot be read.
        Malformed: It is not UTF-8.
    """
    return text_of(read_bytes(path, most))


def text_of(data: bytes) -> str:
    """The text of bytes in UTF-8, without a byte order mark.

    Raises:
        Malformed: They are not UTF-8.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Malformed(f"not UTF-8: {error.reason} at byte {error.start}") from None


def from_json(text: str) -> Any:
    """The value of a JSON text; an absurdly large integer is infinite.

    Raises:
        Malformed: It is not JSON.
    """
    import json

    if sum(map(text.count, ",[{")) > _MOST_VALUES:
        raise Malformed(f"it holds more than {_MOST_VALUES:,} values")
    if _is_deep(text):
        raise Malformed("it is nested too deeply")
    try:
        return json.loads(text, parse_int=integer)
    except json.JSONDecodeError as error:
        raise Malformed(f"it is not valid JSON ({error.msg} on line {error.lineno}, column {error.colno})") from None


def integer(digits: str) -> int | float:
    """A number in JSON. Python rejects thousands of digits, or needs quadratic time."""
    return int(digits) if len(digits) <= _MOST_DIGITS else math.inf


def _is_deep(text: str) -> bool:
    """Whether brackets outside of strings are nested too deeply for a parser that recurses in C."""
    if sum(map(text.count, "[{")) <= _DEEPEST:
        return False
    outside = "".join(text.replace("\\\\", "").replace('\\"', "").split('"')[::2])
    depth = 0
    for found in _BRACKETS.finditer(outside):
        depth += len(found[0]) if found[1] else -len(found[0])
        if depth > _DEEPEST:
            return True
    return False


def from_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text.

    Raises:
        Malformed: It is not TOML.
    """
    # The standard library's parser needs time quadratic in the length of a dotted key.
    if any(len(_PART.findall(found[0])) > _MOST_PARTS for found in _KEYS.finditer(text)):
        raise Malformed(f"a key has more than {_MOST_PARTS} parts")
    try:
        document: dict[str, Any] = toml().loads(text)
    except RecursionError:
        raise Malformed("it is nested too deeply") from None
    except ValueError as error:
        raise Malformed(f"not valid TOML: {error}") from None
    return document


def toml() -> Any:
    """The standard library's TOML parser, or its backport on Python 3.10."""
    from importlib import import_module

    try:
        return import_module("tomllib")
    except ImportError:
        return import_module("tomli")
