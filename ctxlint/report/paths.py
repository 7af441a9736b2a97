"""File names as the programs that read reports want them."""

from __future__ import annotations

import os

STDIN = "-"


def absolute(path: str) -> str:
    """The full path; standard input stays ``-``."""
    return path if path == STDIN else os.path.abspath(path)


def relative(path: str) -> str:
    """The path from the current folder, with slashes, where there is one; else the path as it is."""
    if path == STDIN:
        return path
    try:
        shown = os.path.relpath(path)
    except ValueError:  # another drive
        shown = path
    if shown.startswith(".."):
        shown = os.path.abspath(path)
    return shown.replace(os.sep, "/")
