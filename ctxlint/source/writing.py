"""All writing of files: each is written as a whole or not at all, through a temporary file that is moved into place.

The temporary file is next to its target, has an unpredictable name, and is opened only if nothing has that name, so
that nobody can place a link there. A link in the place of the target is replaced or refused, and never followed out of
its project.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from ctxlint.source.boundary import is_link_in_project, leaves_project
from ctxlint.source.reading import Unreadable, read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

_BINARY = getattr(os, "O_BINARY", 0)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | _BINARY
_TEMPORARY = r"\.ctxlint-(\d{1,10})-[0-9a-f]{16}\.tmp"
_IN_USE = 60
"""A temporary file exists for milliseconds; one older than so many seconds may belong to a killed run."""
_PATIENCE = 10
"""How many seconds to wait for a pipe that has no reader."""


class Unwritable(Exception):
    """A file that could not be written and is unchanged; the message gives the reason."""


def write_whole(path: str, data: bytes, mode: int = 0o666, *, lasting: bool = False) -> None:
    """Put a file with this content at ``path``, replacing any file or link.

    It gets the mode of the previous regular file; a new one gets ``mode`` without the umask. ``lasting`` flushes it to
    disk before the old one is replaced.

    Raises:
        OSError: Writing failed.
    """
    try:
        before = os.lstat(path)
        previous = stat.S_IMODE(before.st_mode) if stat.S_ISREG(before.st_mode) else None
    except FileNotFoundError:
        previous = None
    with _next_to(path, data, mode, lasting=lasting) as temporary:
        if previous is not None:
            os.chmod(temporary, previous)
        os.replace(temporary, path)


def write_report(path: str, data: bytes, root: str) -> None:
    """Write output that the user requested: a file as a whole, to a device or a pipe directly.

    A link inside a project is refused if it leads out of it: it comes with the checkout. ``root`` is as for
    ``leaves_project``.

    Raises:
        OSError: Writing failed, or the link is refused.
    """
    if leaves_project(path, root) or (os.path.islink(path) and is_link_in_project(path, root)):
        raise OSError(errno.ELOOP, "the path leads through a link in the project; pass the path of the file itself")
    if _is_stream(path):
        _pour(path, data)
    else:
        _check_writable(path)
        write_whole(os.path.realpath(path), data, lasting=True)


def rewrite(path: str, before: bytes, after: bytes, root: str) -> None:
    """Replace the content of a source file that was ``before``.

    Mode, owner and extended attributes stay, and a symbolic link stays one: its target is replaced. ``root`` is as for
    ``leaves_project``.

    Raises:
        Unwritable: Nothing has changed.
    """
    check_links(path, root)
    target = os.path.realpath(path)
    try:
        status = os.stat(target)
        if not os.access(target, os.W_OK) or not status.st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
            raise Unwritable("The file is read-only; it was not fixed")
        if status.st_nlink > 1:
            raise Unwritable(
                f"The file has {status.st_nlink} hard links, and a fix would break them; it was not changed"
            )
        with _next_to(target, after, 0o600, lasting=True) as temporary:
            _keep_owner(status, temporary)
            _keep_attributes(target, temporary)
            if read_bytes(target) != before:
                raise Unwritable(
                    "The file was modified while ctxlint was running; it was not changed. Run ctxlint again"
                )
            os.replace(temporary, target)
    except OSError as error:
        raise Unwritable(f"Cannot be written: {error.strerror or error}") from None
    except Unreadable as error:
        raise Unwritable(f"Cannot be read again: {error}; it was not changed") from None


def check_links(path: str, root: str) -> None:
    """Raise Unwritable for a source file that ``rewrite`` would refuse because it is outside the project."""
    if leaves_project(path, root):
        raise Unwritable("The path leads out of the project through a link; the file was not changed")


@contextmanager
def _next_to(path: str, data: bytes, mode: int, *, lasting: bool = False) -> Iterator[str]:
    """A temporary file with this content, removed unless it is moved away. ``lasting`` flushes it to disk."""
    folder = os.path.dirname(path) or os.curdir
    _remove_leftovers(folder)
    temporary = os.path.join(folder, f".ctxlint-{os.getpid()}-{os.urandom(8).hex()}.tmp")
    descriptor = os.open(temporary, _CREATE, mode)
    try:
        try:
            _write_all(descriptor, data)
            if lasting:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        yield temporary
    finally:
        with suppress(OSError):
            os.remove(temporary)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _remove_leftovers(folder: str) -> None:
    """Remove temporary files of killed runs."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            found = re.fullmatch(_TEMPORARY, entry.name)
            if found is not None and _is_leftover(entry, int(found[1])):
                os.remove(entry.path)


def _is_leftover(entry: os.DirEntry[str], process: int) -> bool:
    if not entry.is_file(follow_symlinks=False):
        return False
    return time.time() - entry.stat(follow_symlinks=False).st_mtime > _IN_USE and not _is_alive(process)


def _is_alive(process: int) -> bool:
    """Whether there is such a process; on Windows, where it cannot be checked without harm, always False."""
    if os.name != "posix":
        return False
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it belongs to another user
        return True
    return True


# Attributes that are preserved


def _check_writable(path: str) -> None:
    """Raise PermissionError for a read-only file, even if its folder allows replacing it."""
    if os.path.exists(path) and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _keep_owner(before: os.stat_result, temporary: str) -> None:
    """Give the new file the owner and the mode of the old one, where that is permitted and meaningful."""
    after = os.stat(temporary)
    if hasattr(os, "chown") and (after.st_uid, after.st_gid) != (before.st_uid, before.st_gid):
        with suppress(OSError):  # only the administrator may change owners; the content matters more
            os.chown(temporary, before.st_uid, before.st_gid)
    os.chmod(temporary, stat.S_IMODE(before.st_mode))


if hasattr(os, "listxattr"):

    def _keep_attributes(target: str, temporary: str) -> None:
        """Give the new file exactly the extended attributes of the old one, access control lists included."""
        before, after = _attributes(target), _attributes(temporary)
        for name in {*before, *after}:
            if before.get(name) == after.get(name):
                continue
            try:
                if name in before:
                    os.setxattr(temporary, name, before[name])
                else:
                    os.removexattr(temporary, name)
            except OSError:
                message = f"The extended attribute {name} cannot be preserved; the file was not changed"
                raise Unwritable(message) from None

    def _attributes(path: str) -> dict[str, bytes]:
        try:
            return {name: os.getxattr(path, name) for name in os.listxattr(path)}
        except OSError as error:
            if error.errno in (errno.ENOTSUP, errno.ENOSYS):
                return {}
            raise

else:

    def _keep_attributes(target: str, temporary: str) -> None:
        """Python supports extended attributes on Linux only."""


# Devices and pipes


def _is_stream(path: str) -> bool:
    """Whether ``path`` cannot be replaced: a device, a pipe, or the name of an open file descriptor."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return not os.path.isdir(path)
    except (OSError, ValueError):
        return False
    folder = os.path.realpath(os.path.dirname(os.path.abspath(path)))
    return folder in ("/dev", "/dev/fd") or folder.startswith("/proc/")


def _pour(path: str, data: bytes) -> None:
    """Append to a device or a pipe."""
    descriptor = _open_stream(path)
    try:
        _write_all(descriptor, data)
    finally:
        os.close(descriptor)


def _open_stream(path: str) -> int:
    status = os.stat(path)
    for standard in (1, 2) if os.name == "posix" else ():  # a socket cannot be reopened by its name
        with suppress(OSError):
            if os.path.samestat(os.fstat(standard), status):
                return os.dup(standard)
    if not stat.S_ISFIFO(status.st_mode):
        return os.open(path, os.O_WRONLY | os.O_APPEND | _BINARY)
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO or time.monotonic() > until:
                raise
            time.sleep(0.02)
        else:
            os.set_blocking(descriptor, True)
            return descriptor
