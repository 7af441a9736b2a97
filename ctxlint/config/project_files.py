"""The files that configure a project: their content, and the settings of other tools in them."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from ctxlint.source.reading import Unreadable, read_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")

PROJECT_FILE = "pyproject.toml"
MOST_BYTES = 1_000_000
"""The maximum size of a configuration; those of large projects have a tenth of it."""
_OF_INTEREST = ("torch", "python", "line-length", "black", "ruff")
"""Most files contain none of these words, and should not cost a TOML parser."""


class ConfigurationError(Exception):
    """A configuration that cannot be used; the message names the file, the line and a correction."""


def nearest(
    folder: str, known: dict[str, Result], found_in: Callable[[str], Result | None], otherwise: Callable[[], Result]
) -> Result:
    """What ``found_in`` gives for a folder or, where it gives None, for the nearest one above; ``known`` keeps it.

    Not recursive: folders may nest deeper than Python's recursion limit.
    """
    below = []
    while folder not in known:
        below.append(folder)
        parent, found = os.path.dirname(folder), found_in(folder)
        if found is not None or parent == folder:
            known[folder] = otherwise() if found is None else found
            break
        folder = parent
    result = known[folder]
    known.update(dict.fromkeys(below, result))
    return result


def bytes_of(path: str) -> bytes:
    """The content of a configuration file.

    Raises:
        ConfigurationError: It cannot be read.
    """
    try:
        return read_bytes(path, MOST_BYTES)
    except Unreadable as error:
        raise ConfigurationError(f"{shown(path)}: cannot be read: {error}") from None


def shown(path: str) -> str:
    """``path`` for a message: relative if that is shorter."""
    try:
        relative = os.path.relpath(path)
    except ValueError:  # another drive
        return path
    return min(relative, path, key=len)


# Settings of other tools. Nothing is raised: an unreadable file counts as empty, because reporting its errors is up to
# these tools.


@cache
def project_tables(folder: str) -> dict[str, Any]:
    """The ``pyproject.toml`` in a folder; empty if nothing in it is relevant."""
    return tables_of(read_text(folder, PROJECT_FILE))


def tables_of(text: str) -> dict[str, Any]:
    """The tables of a TOML text; empty if nothing in it is relevant, or it is not TOML."""
    lower = text.lower()
    if not any(word in lower for word in _OF_INTEREST):
        return {}
    from ctxlint.source.formats import Malformed, from_toml

    try:
        return from_toml(text)
    except Malformed:
        return {}


def read_text(folder: str, name: str) -> str:
    """The text of a file; empty if it cannot be read."""
    try:
        return read_bytes(os.path.join(folder, name), MOST_BYTES).decode("utf-8-sig", "replace")
    except Unreadable:
        return ""


def table(value: object) -> dict[str, Any]:
    """``value`` if it is a table; otherwise an empty one."""
    return value if isinstance(value, dict) else {}
