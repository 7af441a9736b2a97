"""The folder that the cache is kept in: where it is, and whether a folder is one that ctxlint made."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.settings import Settings

NAME = ".ctxlint_cache"
"""What the folder is called, unless ``cache-dir`` says otherwise."""

TAG_FILE = "CACHEDIR.TAG"
TAG = """\
Signature: 8a477f597d28d172789f06886806bc55
# This file is a cache directory tag created by ctxlint.
# For information about cache directory tags, see https://bford.info/cachedir/
"""
"""What ``TAG_FILE`` says, so that backups pass the folder over, and ``ctxlint clean`` does not."""


def cache_folder(settings: Settings) -> str:
    """The absolute path of the cache for files under these settings."""
    return os.path.abspath(settings.cache_dir or os.path.join(settings.root, NAME))


IGNORE_FILE = ".gitignore"
RESULTS_FILE = "results.bin"


def check_cache_dir(folder: str) -> None:
    """Raise ConfigurationError for a ``cache-dir`` that holds something else, which git would have to ignore."""
    from ctxlint.configuration import ConfigurationError

    if os.path.isdir(folder) and not is_tagged(folder) and os.listdir(folder):
        raise ConfigurationError(f"cache-dir: {folder} holds other files; name a folder that is for the cache alone")


def is_cache(folder: str) -> bool:
    """Whether ctxlint made ``folder`` for its cache, nothing else is in it, and so ctxlint may remove it."""
    return is_tagged(folder) and all(
        name.startswith((TAG_FILE, IGNORE_FILE, RESULTS_FILE)) for name in os.listdir(folder)
    )


def is_tagged(folder: str) -> bool:
    """Whether ctxlint keeps its cache in ``folder``."""
    if os.path.islink(folder):
        return False
    try:
        with open(os.path.join(folder, TAG_FILE), "rb") as file:
            tag = file.read(len(TAG) * 2)
    except OSError:
        return False
    return tag.startswith(TAG.partition("\n")[0].encode()) and b"ctxlint" in tag


def caches_under(folder: str) -> Iterator[str]:
    """The caches that have the usual name, in ``folder`` and all folders below it, in order."""
    for parent, folders, _ in os.walk(folder):
        path = os.path.join(parent, NAME)
        if NAME in folders and is_cache(path):
            yield path
        folders[:] = sorted(each for each in folders if each not in (NAME, ".git"))
