"""How long the lines of a project may be, as its formatter is told: what is written by fixes keeps to it."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from ctxlint.config.project_files import project_tables, read_text, table, tables_of

DEFAULT = 88
"""What ruff and black take where nothing is said."""

_RUFF_FILES = (".ruff.toml", "ruff.toml")
_LONGEST = 320


@cache
def line_length(folder: str) -> int:
    """The limit for the files in an absolute ``folder``: what the nearest configuration of a formatter says."""
    for name in _RUFF_FILES:
        if os.path.isfile(os.path.join(folder, name)):
            return _limit(tables_of(read_text(folder, name))) or DEFAULT
    tool = table(project_tables(folder).get("tool"))
    ruff, black = table(tool.get("ruff")), table(tool.get("black"))
    # Who formats with black often lints with ruff, which is allowed longer lines then.
    for formatter in (ruff, black) if "format" in ruff else (black, ruff):
        found = _limit(formatter)
        if found is not None:
            return found
    parent = os.path.dirname(folder)
    return DEFAULT if {"ruff", "black"} & tool.keys() or parent == folder else line_length(parent)


def _limit(options: dict[str, Any]) -> int | None:
    value = options.get("line-length")
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _LONGEST else None
