"""Where a project ends, and which links lead out of it: a checkout may come from anybody, and its links with it."""

from __future__ import annotations

import os

from ctxlint.source.modules import is_repository, root_of


def leaves_project(path: str, root: str) -> bool:
    """Whether a link on the way to ``path``, or ``path`` itself, lies in a project and leads out of it.

    Links above the project are the user's own and may lead anywhere. ``root`` is the folder of the configuration,
    which bounds what is in no repository.
    """
    start, rest = os.path.splitdrive(os.path.abspath(path))
    real = start + os.sep
    for name in rest.split(os.sep):
        step = os.path.join(real, name)
        if not os.path.islink(step):
            real = step
            continue
        top = _project_of(real, root)
        real = os.path.realpath(step)
        if top is not None and not is_inside(real, top):
            return True
    return False


def lies_in_project(path: str, root: str) -> bool:
    """Whether ``path`` itself, which may be a link, lies in a project."""
    return _project_of(os.path.realpath(os.path.dirname(os.path.abspath(path))), root) is not None


def is_in_project(path: str, root: str) -> bool:
    """Whether ``path`` lies in the project that ``root`` lies in."""
    real_root = os.path.realpath(root)
    folder = os.path.realpath(os.path.dirname(os.path.abspath(path)))
    return is_inside(folder, _project_of(real_root, root) or real_root)


def _project_of(folder: str, root: str) -> str | None:
    """The top of the project that a folder, named without links, lies in: the nearest repository, else ``root``.

    Where that says nothing, it is the topmost folder that looks like a project; None where there is none.
    """
    repository = root_of(folder)
    if is_repository(repository) and not _is_top(repository):
        return repository
    for each in (os.path.realpath(root), repository):
        if is_inside(folder, each) and not _is_top(each):
            return each
    return None


def _is_top(folder: str) -> bool:
    return os.path.dirname(folder) == folder


def is_inside(path: str, folder: str) -> bool:
    """Whether ``path`` is ``folder`` or lies below it, as far as their names say."""
    path, folder = os.path.normcase(path), os.path.normcase(folder)
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
