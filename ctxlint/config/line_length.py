"""The maximum line length of a project, from the configuration of its formatter: fixes keep to it."""

from __future__ import annotations

import os
from typing import Any

from ctxlint.config.project_files import nearest, project_tables, read_text, table, tables_of

DEFAULT = 88
"""The default of ruff and black."""

_RUFF_FILES = (".ruff.toml", "ruff.toml")
_LONGEST = 320


def line_length(folder: str) -> int:
    """The limit for the files in an absolute ``folder``, from the nearest configuration of a formatter."""
    return nearest(folder, line_lengths, _own_line_length, lambda: DEFAULT)


line_lengths: dict[str, int] = {}
"""The results of ``line_length``, by folder."""


def _own_line_length(folder: str) -> int | None:
    for name in _RUFF_FILES:
        if os.path.isfile(os.path.join(folder, name)):
            return _limit(tables_of(read_text(folder, name))) or DEFAULT
    tool = table(project_tables(folder).get("tool"))
    ruff, black = table(tool.get("ruff")), table(tool.get("black"))
    # Projects formatted with black are often linted with ruff, whose limit may be higher.
    for formatter in (ruff, black) if "format" in ruff else (black, ruff):
        found = _limit(formatter)
        if found is not None:
            return found
    return DEFAULT if {"ruff", "black"} & tool.keys() else None


def _limit(options: dict[str, Any]) -> int | None:
    value = options.get("line-length")
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _LONGEST else None
