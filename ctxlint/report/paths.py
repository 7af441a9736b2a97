"""File names for programs that read reports."""

from __future__ import annotations

import os

STDIN = "-"


def absolute(path: str) -> str:
    """The full path; standard input stays ``-``."""
    return path if path == STDIN else os.path.abspath(path)


def relative(path: str) -> str:
    """The path relative to the current folder, with slashes, if possible; otherwise unchanged."""
    if path == STDIN:
        return path
    try:
        shown = os.path.relpath(path)
    except ValueError:  # another drive
        shown = path
    if shown.startswith(".."):
        shown = os.path.abspath(path)
    return shown.replace(os.sep, "/")
