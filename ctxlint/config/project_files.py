"""The files that configure a project: their content, and what other tools are told in them."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from ctxlint.source.reading import Unreadable, read_bytes

PROJECT_FILE = "pyproject.toml"
MOST_BYTES = 1_000_000
"""The size of the largest configuration; those of large projects have a tenth of it."""
_OF_INTEREST = ("torch", "line-length", "black", "ruff")
"""Most files hold none of these words, and should not cost a TOML parser."""


class ConfigurationError(Exception):
    """A configuration that cannot be used; the message names file, line and what to write instead."""


def bytes_of(path: str) -> bytes:
    """The content of a configuration file. Raises ConfigurationError."""
    try:
        return read_bytes(path, MOST_BYTES)
    except Unreadable as error:
        raise ConfigurationError(f"{shown(path)}: cannot be read: {error}") from None


def shown(path: str) -> str:
    """``path`` as a message should show it: relative where that is shorter."""
    try:
        relative = os.path.relpath(path)
    except ValueError:  # another drive
        return path
    return min(relative, path, key=len)


# What other tools are told. Nothing is raised: a file that cannot be read says nothing, what is wrong with it is for
# others to report.


@cache
def project_tables(folder: str) -> dict[str, Any]:
    """The ``pyproject.toml`` in a folder; empty where nothing in it is of interest."""
    return tables_of(read_text(folder, PROJECT_FILE))


def tables_of(text: str) -> dict[str, Any]:
    """The tables of a text in TOML; empty where nothing in it is of interest, and where it is not TOML."""
    lower = text.lower()
    if not any(word in lower for word in _OF_INTEREST):
        return {}
    from ctxlint.source.formats import Malformed, from_toml

    try:
        return from_toml(text)
    except Malformed:
        return {}


def read_text(folder: str, name: str) -> str:
    """The text of a file; empty where there is none that can be read."""
    try:
        return read_bytes(os.path.join(folder, name), MOST_BYTES).decode("utf-8-sig", "replace")
    except Unreadable:
        return ""


def table(value: object) -> dict[str, Any]:
    """``value`` where it is a table; an empty one where it is anything else."""
    return value if isinstance(value, dict) else {}
