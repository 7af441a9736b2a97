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


def _run(tree: Path, seed: str, *arguments: str) -> bytes:
    done = subprocess.run(
        [sys.executable, "-m", "ctxlint", "check", "--isolated", "--select", "ALL", *arguments],
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


def test_two_analyses_give_the_same_bytes(tree: Path) -> None:
    first = _run(tree, "0", "--no-cache", "--output-format", "json", ".")
    assert first.count(b"CTX") > 100
    assert _run(tree, "42", "--output-format", "json", ".") == first


@pytest.mark.parametrize("output_format", ["concise", "full", "json"])
def test_two_reports_are_the_same_bytes(tree: Path, output_format: str) -> None:
    """These read the cache, so they are about the reports."""
    first = _run(tree, "0", "--output-format", output_format, ".")
    assert first.count(b"CTX") > 100
    assert _run(tree, "42", "--output-format", output_format, ".") == first


def test_the_order_of_arguments_does_not_matter(tree: Path) -> None:
    folders = sorted(entry.name for entry in tree.iterdir())
    first = _run(tree, "1", "--output-format", "json", *folders)
    assert _run(tree, "2", "--output-format", "json", *folders[::-1], folders[0]) == first
