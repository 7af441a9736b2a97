"""The boundary of a project, and which links leave it: a checkout, including its links, may come from anybody."""

from __future__ import annotations

import os

from ctxlint.source.modules import is_repository, root_of


def leaves_project(path: str, root: str) -> bool:
    """Whether ``path``, or a link on the way to it, is in a project and leads out of it.

    Links above the project belong to the user and may lead anywhere. ``root`` is the folder of the configuration, the
    boundary outside of repositories.
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


def is_link_in_project(path: str, root: str) -> bool:
    """Whether ``path`` itself, which may be a link, is in a project."""
    return _project_of(os.path.realpath(os.path.dirname(os.path.abspath(path))), root) is not None


def is_in_project(path: str, root: str) -> bool:
    """Whether ``path`` is in the project that contains ``root``."""
    real_root = os.path.realpath(root)
    folder = os.path.realpath(os.path.dirname(os.path.abspath(path)))
    return is_inside(folder, _project_of(real_root, root) or real_root)


def _project_of(folder: str, root: str) -> str | None:
    """The root of the project that contains a folder, named without links: the nearest repository, otherwise ``root``.

    If neither applies, it is the topmost folder that looks like a project; None if there is none.
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
    """Whether ``path`` is ``folder`` or below it, according to their names."""
    path, folder = os.path.normcase(path), os.path.normcase(folder)
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
