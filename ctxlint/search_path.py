"""The module search path: never includes the current folder, which may contain untrusted code."""

import os
import site
import sys

home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""The folder that ctxlint itself was imported from."""


def without_current_folder(path: list[str]) -> list[str]:
    """``path``, in the form of ``sys.path``, without the current folder.

    It stays if ctxlint itself is in it, or what is installed for this Python: its dependencies may be there.
    """
    try:
        current = os.path.realpath(os.curdir)
    except OSError:  # it was deleted, and nothing can be imported from it
        return path
    left = [each for each in path if os.path.realpath(each) != current]
    if len(left) == len(path) or current in map(os.path.realpath, (home, *site.getsitepackages())):
        return path
    return left


def leave_current_folder() -> None:
    """Stop importing modules from the current folder, which ``python -m`` and ``PYTHONPATH`` may have added."""
    sys.path[:] = without_current_folder(sys.path)
