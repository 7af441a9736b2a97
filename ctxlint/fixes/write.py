"""Writing a mended file so that nobody ever sees half of it."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile


class Unwritable(Exception):
    """A file that cannot be written; the message says why."""


def write_atomically(path: str, data: bytes) -> None:
    """Replace the content of ``path`` by ``data`` in one step, through a file beside it that is renamed.

    Mode and owner stay, and a symbolic link stays one: the file that it points to is replaced. Raises Unwritable for a
    file that is read-only or whose folder cannot be written to; the old content is then untouched.
    """
    target = os.path.realpath(path)
    temporary = None
    try:
        before = os.stat(target)
        if not os.access(target, os.W_OK) or not before.st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
            raise Unwritable("The file is read-only; it was not fixed")
        handle, temporary = tempfile.mkstemp(prefix=".ctxlint-", dir=os.path.dirname(target))
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        shutil.copymode(target, temporary)
        _keep_owner(before, temporary)
        os.replace(temporary, target)
    except OSError as error:
        raise Unwritable(f"Cannot be written: {error.strerror or error}") from None
    finally:
        if temporary is not None and os.path.exists(temporary):
            os.unlink(temporary)


def _keep_owner(before: os.stat_result, temporary: str) -> None:
    """Give the new file the owner of the old one, where that is allowed and means something."""
    after = os.stat(temporary)
    if hasattr(os, "chown") and (after.st_uid, after.st_gid) != (before.st_uid, before.st_gid):
        try:
            os.chown(temporary, before.st_uid, before.st_gid)
            os.chmod(temporary, stat.S_IMODE(before.st_mode))
        except OSError:
            pass  # only the administrator may give files away; the content matters more
