"""Addresses of files: ``file:`` URIs as editors write them, and paths."""

from __future__ import annotations

import os
import re
from urllib.parse import quote, unquote, urlsplit

_DRIVE = re.compile(r"/[A-Za-z]:")


def path_of(uri: str) -> str:
    """The file of a URI; the URI itself if it is not a file."""
    try:
        parts = urlsplit(uri)
    except ValueError:  # an invalid URI
        return uri
    path = unquote(parts.path)
    if parts.scheme != "file" or not path:
        return uri
    if parts.netloc:  # a share of Windows
        path = f"//{unquote(parts.netloc)}{path}"
    elif _DRIVE.match(path):
        path = path[1].lower() + path[2:]
    return path.replace("/", os.sep)


def uri_of(path: str) -> str:
    """The URI of a file with an absolute path."""
    path = path.replace(os.sep, "/")
    if path.startswith("//"):
        return f"file:{quote(path)}"
    path = path if path.startswith("/") else f"/{path}"
    if _DRIVE.match(path):
        return f"file:///{path[1].lower()}:{quote(path[3:])}"
    return f"file://{quote(path)}"
