"""Conversion between paths and the URIs of files, which VS Code writes in its own way."""

from __future__ import annotations

import os
from urllib.parse import quote, unquote, urlsplit

from ctxlint.patterns import pattern

_DRIVE = pattern(r"/[A-Za-z]:")


def path_of(uri: str) -> str:
    """The file of a URI; the URI itself if it is not a file."""
    try:
        parts = urlsplit(uri)
    except ValueError:  # an invalid URI
        return uri
    if parts.scheme != "file":
        return uri
    path = unquote(parts.path)
    if parts.netloc and path:
        path = f"//{unquote(parts.netloc)}{path}"
    elif _DRIVE.match(path):
        path = path[1].lower() + path[2:]
    return path.replace("/", os.sep) or uri


def uri_of(path: str) -> str:
    """The URI of a file."""
    path = path.replace(os.sep, "/")
    host, path = path[2:].partition("/")[::2] if path.startswith("//") else ("", path)
    path = path if path.startswith("/") else f"/{path}"
    drive = path[:3] if _DRIVE.match(path) else ""
    return f"file://{quote(host)}{drive.lower()}{quote(path[len(drive) :])}"
