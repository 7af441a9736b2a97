"""How long the lines of a project may be, as its formatter is told: what is written by fixes keeps to it."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from ctxlint.config.configuration import MOST_BYTES, PROJECT_FILE
from ctxlint.source.decode import Unreadable, read_bytes

DEFAULT = 88
"""What ruff and black take where nothing is said."""

_RUFF_FILES = (".ruff.toml", "ruff.toml")
_LONGEST = 320


@cache
def line_length(folder: str) -> int:
    """The limit for the files in an absolute ``folder``: what the nearest configuration of a formatter says."""
    for name in _RUFF_FILES:
        if os.path.isfile(os.path.join(folder, name)):
            return _limit(_read(folder, name)) or DEFAULT
    tool = _table(_read(folder, PROJECT_FILE).get("tool"))
    ruff, black = _table(tool.get("ruff")), _table(tool.get("black"))
    # Who formats with black often lints with ruff, which is allowed longer lines then.
    for table in (ruff, black) if "format" in ruff else (black, ruff):
        found = _limit(table)
        if found is not None:
            return found
    parent = os.path.dirname(folder)
    return DEFAULT if {"ruff", "black"} & tool.keys() or parent == folder else line_length(parent)


def _read(folder: str, name: str) -> dict[str, Any]:
    """A TOML file of a formatter; empty where there is none that can be read."""
    try:
        data = read_bytes(os.path.join(folder, name), MOST_BYTES)
    except Unreadable:
        return {}
    if not any(word in data for word in (b"line-length", b"black", b"ruff")):  # most should not cost a TOML parser
        return {}
    from ctxlint.source.formats import Malformed, from_toml, text_of

    try:
        return from_toml(text_of(data))
    except Malformed:
        return {}


def _limit(table: dict[str, Any]) -> int | None:
    value = table.get("line-length")
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _LONGEST else None


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
