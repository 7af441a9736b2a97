"""The location of caches: a folder owned by the user, inaccessible to the author of the linted code.

Each project has one file there. Its content is valid only with the seal of a key that is stored there too, so that
``cache-dir`` may be any folder, even one that comes with the checkout.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING

from ctxlint.cache.stamp import digest
from ctxlint.config.project_files import ConfigurationError
from ctxlint.source.boundary import is_in_project, is_link_in_project, leaves_project
from ctxlint.source.reading import Unreadable, read_bytes
from ctxlint.source.writing import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings

OLD_NAME = ".ctxlint_cache"
"""The name of caches when they were inside the projects."""

SUFFIX = ".cache"
TAG_FILE = "CACHEDIR.TAG"
TAG = """\
Signature: 8a477f597d28d172789f06886806bc55
# This file is a cache directory tag created by ctxlint.
# For information about cache directory tags, see https://bford.info/cachedir/
"""
"""The content of ``TAG_FILE``: backups skip the folder, and ``ctxlint clean`` recognises it."""

IGNORE_FILE = ".gitignore"
KEY_FILE = "key"
KEPT_DAYS = 30
"""The retention in days for what no run has used."""

_KEY_SIZE = 32
_OLD_RESULTS = "results.bin"


# The user's folder


@lru_cache(maxsize=1)
def user_folder() -> str | None:
    """The folder for the caches of this user, which may not exist yet; None for a user without a home."""
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        folder = os.path.join(os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local"), "ctxlint")
    elif sys.platform == "darwin":
        folder = os.path.join(home, "Library", "Caches", "ctxlint")
    else:
        folder = os.path.join(home, ".cache", "ctxlint")
    named = os.environ.get("XDG_CACHE_HOME", "")
    folder = os.path.join(named, "ctxlint") if os.path.isabs(named) else folder
    return folder if os.path.isabs(folder) else None


@lru_cache(maxsize=1)
def _private_folder() -> str | None:
    """The folder for the caches of this user, created if necessary; None if it cannot be protected from others."""
    folder = user_folder()
    if folder is None:
        return None
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        status = os.stat(folder)
    except OSError:
        return None
    if os.name == "posix" and (status.st_uid != os.geteuid() or status.st_mode & 0o022):
        return None
    return folder if os.access(folder, os.W_OK) else None


@lru_cache(maxsize=64)
def key(root: str) -> bytes | None:
    """The key that seals the cache of the project with this root; None without such a secret.

    It is ``CTXLINT_CACHE_KEY``, otherwise the one in the user's folder, unless that is a part of the project itself.
    """
    secret = os.environ.get("CTXLINT_CACHE_KEY")
    if secret:
        return digest(os.fsencode(secret))
    folder = _private_folder()
    path = os.path.join(folder or "", KEY_FILE)
    return None if folder is None or is_in_project(path, root) else _key_in(path) or _new_key(path)


def why_not(settings: Settings) -> str:
    """Why nothing is cached for files under these settings; empty if caching is possible."""
    if settings.no_cache or (key(settings.root) is not None and cache_folder(settings) is not None):
        return ""
    folder = user_folder() or "the home of this user"
    return f"Cache disabled: {folder} must be outside of the project and writable by this user only"


def _key_in(path: str) -> bytes | None:
    try:
        status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode) or (os.name == "posix" and status.st_mode & 0o077):
            return None
        found = read_bytes(path)
    except (OSError, Unreadable):
        return None
    return found if len(found) == _KEY_SIZE else None


def _new_key(path: str) -> bytes | None:
    """If two runs create one at once, the last wins: the cache of the other will be ignored."""
    with suppress(OSError):
        prepare(os.path.dirname(path))
        if os.path.lexists(path):
            os.remove(path)
        made = os.urandom(_KEY_SIZE)
        write_whole(path, made, mode=0o600)
        return made
    return None


def forget() -> None:
    """Look up the user's folder and the key again, after a change of the environment."""
    for each in (user_folder, _private_folder, key):
        each.cache_clear()


# Caches


def cache_folder(settings: Settings) -> str | None:
    """The absolute path of the folder with the cache for files under these settings; None if there cannot be one."""
    return os.path.abspath(settings.cache_dir) if settings.cache_dir is not None else _private_folder()


def cache_file(folder: str, root: str) -> str:
    """The file for the project with this root."""
    root = os.path.realpath(root)
    name = "".join(each if each.isalnum() else "-" for each in os.path.basename(root))[:40]
    return os.path.join(folder, f"{name}-{digest(os.fsencode(root)).hex()}{SUFFIX}")


def check_cache_dir(folder: str, root: str) -> None:
    """Raise ConfigurationError for a ``cache-dir`` that is a link of the project, or that contains something else."""
    if leaves_project(folder, root) or (os.path.islink(folder) and is_link_in_project(folder, root)):
        raise ConfigurationError(
            f"cache-dir: the path leads to {folder} through a link in the project; set the path of the folder itself"
        )
    if os.path.isdir(folder) and not is_tagged(folder) and os.listdir(folder):
        raise ConfigurationError(f"cache-dir: {folder} contains other files; set a folder for the cache only")


def prepare(folder: str) -> None:
    """Create a folder for caches if necessary, and remove expired ones from it.

    Raises:
        OSError: It cannot be written to.
    """
    os.makedirs(folder, mode=0o700, exist_ok=True)
    for name, text in ((TAG_FILE, TAG), (IGNORE_FILE, "# Made by ctxlint.\n*\n")):
        path = os.path.join(folder, name)
        if not os.path.lexists(path):
            write_whole(path, text.encode())
    oldest = time.time() - KEPT_DAYS * 86_400
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(SUFFIX) and entry.stat(follow_symlinks=False).st_mtime < oldest:
                with suppress(OSError):
                    os.remove(entry.path)


def is_cache(folder: str) -> bool:
    """Whether ctxlint created ``folder`` for its caches, and nothing else is in it, so that it may be removed."""
    own = (TAG_FILE, IGNORE_FILE, KEY_FILE)
    return is_tagged(folder) and all(
        name in own or name.startswith((".ctxlint-", _OLD_RESULTS)) or name.endswith(SUFFIX)
        for name in os.listdir(folder)
    )


def is_tagged(folder: str) -> bool:
    """Whether ``folder`` is tagged as a cache of ctxlint."""
    if os.path.islink(folder):
        return False
    try:
        tag = read_bytes(os.path.join(folder, TAG_FILE))
    except Unreadable:
        return False
    return tag.startswith(TAG.partition("\n")[0].encode()) and b"ctxlint" in tag


def old_caches_under(folder: str) -> Iterator[str]:
    """The caches that older releases left in ``folder`` and its subfolders, in order."""
    for parent, folders, _ in os.walk(folder):
        path = os.path.join(parent, OLD_NAME)
        if OLD_NAME in folders and is_cache(path):
            yield path
        folders[:] = sorted(each for each in folders if each not in (OLD_NAME, ".git"))
