"""What all cached data depends on: the exact code of ctxlint, the Python that runs it, and its LibCST."""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from importlib.util import find_spec

from ctxlint.cache.stamp import digest
from ctxlint.search_path import home
from ctxlint.version import __version__


@lru_cache(maxsize=1)
def identity() -> str:
    """An identifier of the code that computes findings. Data cached by other code is ignored."""
    found = [__version__, sys.version, *_sources(os.path.join(home, "ctxlint"))]
    for package in ("libcst", "packaging"):
        origin = _origin(package)
        if origin is not None:
            folder = os.path.dirname(origin)
            found += [folder, _seen(origin), _seen(os.path.join(folder, "_version.py"))]
    return digest("\n".join(found).encode("utf-8", "surrogatepass")).hex()


def _sources(folder: str) -> list[str]:
    """The modules of ctxlint as they are on disk: in development, they may change at any time."""
    found = []
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(each for each in folders if each != "__pycache__")
        paths = (os.path.join(parent, name) for name in sorted(files) if name.endswith(".py"))
        found += [f"{path} {_seen(path)}" for path in paths]
    return found


def _origin(package: str) -> str | None:
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        return None
    return spec.origin if spec is not None else None


def _seen(path: str) -> str:
    try:
        status = os.stat(path)
    except OSError:
        return ""
    return f"{status.st_size} {status.st_mtime_ns}"
