"""Installs ctxlint from its own sources without a network."""

from __future__ import annotations

import os
import shutil
import site
from typing import TYPE_CHECKING

from tests.fixture_reader import ROOT

if TYPE_CHECKING:
    from pathlib import Path

PUBLISHED = (".pre-commit-hooks.yaml", "pyproject.toml", "README.md", "LICENSE", "ctxlint")


def copy_sources(folder: Path, names: tuple[str, ...] = PUBLISHED) -> None:
    """Copy files and folders of the repository into ``folder``."""
    for name in names:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, folder)


def offline(home: Path) -> dict[str, str]:
    """Environment variables without the user's settings; pip takes dependencies from the environment of the tests."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GIT_", "PRE_COMMIT", "PIP_", "CTXLINT_", "VIRTUAL_ENV"))
    }
    return {
        **inherited,
        "HOME": str(home),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip reads it as the negative of its name: do not isolate
        "PYTHONPATH": os.pathsep.join(site.getsitepackages()),
    }
