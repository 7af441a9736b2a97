"""All programs and all cases of all fixtures as files, and what the command finds in them: once for all workers."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock

from tests.fixture_reader import write_tree
from tests.linting import SHARED_BY_WORKERS

if TYPE_CHECKING:
    from collections.abc import Callable


def made_once(name: str, make: Callable[[Path], object]) -> Path:
    """A file or folder that all workers of pytest share: the first that needs it makes it, and the others wait."""
    shared = Path(os.environ[SHARED_BY_WORKERS])
    made = shared / name
    with FileLock(shared / f"{name}.lock"):
        if not made.exists():
            unfinished = Path(tempfile.mkdtemp(dir=shared), name)
            make(unfinished)
            unfinished.rename(made)
    return made


def tree() -> Path:
    """A folder with the files."""
    return made_once("tree", write_tree)


def run(seed: str, *arguments: str, folder: Path | None = None) -> tuple[bytes, bytes]:
    """What ctxlint writes to both streams about the tree, or another folder, with this hash seed."""
    done = subprocess.run(
        [sys.executable, "-m", "ctxlint", "check", "--isolated", "--select", "ALL", *arguments],
        cwd=folder or tree(),
        env={**os.environ, "PYTHONHASHSEED": seed, "XDG_CACHE_HOME": str(tree().with_name("cache"))},
        capture_output=True,
        check=False,
    )
    # Misspelt directives, in CTX910's fixture, and folders without code are all that is warned about, in one order.
    assert done.returncode == 1, done.stderr.decode()
    expected = (b"unknown rule", b"No Python files found")
    assert all(any(each in line for each in expected) for line in done.stderr.splitlines()), done.stderr.decode()
    return done.stdout, done.stderr


def found() -> tuple[bytes, bytes]:
    """What the command finds in the tree, as JSON, and its warnings: a run that reads no cache."""
    return _run_once("found", "0", "--no-cache", ".")


def found_again() -> tuple[bytes, bytes]:
    """What another run finds, with another hash seed and the folders as arguments, from the last to the first.

    It fills the cache of the later runs.
    """
    folders = sorted((entry.name for entry in tree().iterdir()), reverse=True)
    return _run_once("found_again", "42", *folders, folders[-1])


def _run_once(name: str, seed: str, *arguments: str) -> tuple[bytes, bytes]:
    def find(folder: Path) -> None:
        stdout, stderr = run(seed, "--output-format", "json", *arguments)
        folder.mkdir()
        (folder / "stdout").write_bytes(stdout)
        (folder / "stderr").write_bytes(stderr)

    made = made_once(name, find)
    return (made / "stdout").read_bytes(), (made / "stderr").read_bytes()
