"""The positions of values in JSON text, and rewriting the source of a cell in its original style."""

from __future__ import annotations

import json
import re
from difflib import SequenceMatcher
from typing import Any

from ctxlint.patterns import pattern
from ctxlint.source.formats import integer

_DECODER = json.JSONDecoder(parse_int=integer)
_SPACE = pattern(r"[ \t\r\n]*")
_STRING = pattern(r'"(?:[^"\\]|\\.)*"')
_CHARACTER = pattern(r"\\(?:u[0-9a-fA-F]{4}|.)|[^\\]", re.DOTALL)
_SECOND_HALF = pattern(r"\\u[dD][c-fC-F]")
"""The second half of a character that JSON writes as a surrogate pair."""
_LINE = pattern(r"[^\n]*\n|[^\n]+")
_COLON = pattern(r'":([ ]?)')


def members(document: str, at: int) -> dict[str, tuple[int, int]]:
    """The span of each value of the object at ``at``, by its key. The JSON is known to be valid."""
    places = {}
    at = _value(document, at)
    if document[at] != "{":
        raise TypeError("not an object")
    at = _value(document, at + 1)
    while document[at] != "}":
        key, at = _DECODER.raw_decode(document, at)
        start = _value(document, _value(document, at) + 1)
        _, end = _DECODER.raw_decode(document, start)
        places[key] = (start, end)
        at = _after(document, end)
    return places


def elements(document: str, at: int) -> list[tuple[int, int]]:
    """The span of each element of the list at ``at``."""
    places = []
    if document[at] != "[":
        raise TypeError("not a list")
    at = _value(document, at + 1)
    while document[at] != "]":
        _, end = _DECODER.raw_decode(document, at)
        places.append((at, end))
        at = _after(document, end)
    return places


def value_of(document: str, at: int) -> Any:
    """The value that starts at ``at``."""
    return _DECODER.raw_decode(document, at)[0]


def _value(document: str, at: int) -> int:
    """The start of the next token."""
    found = _SPACE.match(document, at)
    return found.end() if found else at


def _after(document: str, end: int) -> int:
    """The start of the next element, or of the bracket that closes the list."""
    at = _value(document, end)
    return _value(document, at + 1) if document[at] == "," else at


def place_in(document: str, start: int, end: int, offset: int) -> int:
    """The position of a character in the string, or the list of strings, from ``start`` to ``end``."""
    at = start
    for string in _STRING.finditer(document, start, end):
        for character in _CHARACTER.finditer(document, string.start() + 1, string.end() - 1):
            if _SECOND_HALF.match(character[0]):
                continue
            if offset == 0:
                return character.start()
            offset -= 1
        at = string.end() - 1
    return at


def with_lines(document: str, start: int, end: int, text: str) -> str:
    """The JSON for ``text`` as replacement of the string, or list of strings, from ``start`` to ``end``.

    Unchanged lines keep their JSON, a list keeps its layout. New text is written in ASCII if the whole document is.
    """
    old = document[start:end]
    if old.startswith('"'):
        return f'"{"".join(_written(document, _lines_of(old[1:-1]), _LINE.findall(text)))}"'
    strings = [each[1:-1] for each in _STRING.findall(old)]
    lines = _LINE.findall(text)
    # Python's Jupyter also splits the list at form feeds and the like.
    if [_text_of(each) for each in strings] == "".join(map(_text_of, strings)).splitlines(keepends=True):
        lines = text.splitlines(keepends=True)
    if not lines:
        return "[]"
    written = [f'"{each}"' for each in _written(document, strings, lines)]
    first, *between, last = _STRING.split(old) if strings else ("[", "]")
    if not between:
        space = _COLON.search(document)
        between = [f",{first[1:] or (space[1] if space else '')}"]
    if len(lines) != len(strings):
        between = between[:1] * (len(lines) - 1)
    return "".join([first, *(part for pair in zip(written[:-1], between) for part in pair), written[-1], last])


def _lines_of(string: str) -> list[str]:
    """The JSON inside the quotes of a string, split after each line."""
    lines = [""]
    for character in _CHARACTER.findall(string):
        lines[-1] += character
        if character in ("\\n", "\\u000a", "\\u000A"):
            lines.append("")
    return [line for line in lines if line]


def _written(document: str, old: list[str], new: list[str]) -> list[str]:
    """The JSON inside the quotes for the lines ``new``: that of the ``old`` ones if they are equal."""
    matcher = SequenceMatcher(None, [_text_of(each) for each in old], new, autojunk=False)
    ascii_only = document.isascii()
    written: list[str] = []
    for tag, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if tag == "equal":
            written += old[old_start:old_end]
        else:
            written += (json.dumps(line, ensure_ascii=ascii_only)[1:-1] for line in new[new_start:new_end])
    return written


def _text_of(string: str) -> str:
    text: str = json.loads(f'"{string}"')
    return text
