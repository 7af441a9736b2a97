"""Where modules are imported from: never from the current folder, which may hold code that nobody trusts."""

from __future__ import annotations

import os
import sys

home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""The folder that ctxlint itself was imported from."""


def without_current_folder(path: list[str]) -> list[str]:
    """``path``, as ``sys.path`` is, without the current folder.

    Where ctxlint itself lies there it stays: what lies beside it may be what it depends on.
    """
    try:
        current = os.path.realpath(os.curdir)
    except OSError:  # it has gone, and nothing can be imported from there
        return path
    if current == os.path.realpath(home):
        return path
    return [each for each in path if os.path.realpath(each) != current]


def leave_current_folder() -> None:
    """Import no more modules from the current folder, which ``python -m`` and ``PYTHONPATH`` may have put in."""
    sys.path[:] = without_current_folder(sys.path)
