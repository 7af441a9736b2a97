"""The same files give the same output bytes, for any hash seed and order of arguments."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.fixture_reader import write_tree

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all programs and all cases of all fixtures as files."""
    root = tmp_path_factory.mktemp("tree")
    write_tree(root)
    return root


def _run(tree: Path, output_format: str, paths: list[str], seed: str) -> bytes:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "ctxlint",
            "check",
            "--isolated",
            "--select",
            "ALL",
            "--output-format",
            output_format,
            *paths,
        ],
        cwd=tree,
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        check=False,
    )
    # Misspelt directives, in CTX910's fixture, and folders without code are all that is warned about, in one order.
    assert done.returncode == 1, done.stderr.decode()
    expected = (b"unknown rule", b"No Python files found")
    assert all(any(each in line for each in expected) for line in done.stderr.splitlines()), done.stderr.decode()
    return done.stdout + done.stderr


@pytest.mark.parametrize("output_format", ["concise", "full", "json"])
def test_two_runs_give_the_same_bytes(tree: Path, output_format: str) -> None:
    first = _run(tree, output_format, ["."], "0")
    assert first.count(b"CTX") > 100
    assert _run(tree, output_format, ["."], "42") == first


def test_the_order_of_arguments_does_not_matter(tree: Path) -> None:
    folders = sorted(entry.name for entry in tree.iterdir())
    first = _run(tree, "json", folders, "1")
    assert _run(tree, "json", [*folders[::-1], folders[0]], "2") == first
