"""The same files give the same output bytes, for any hash seed and order of arguments."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import whole_tree
from tests.fixture_reader import PROGRAMS, rule_fixtures
from tests.whole_tree import run


def test_two_analyses_give_the_same_bytes() -> None:
    """Nor does it matter whether the arguments are the folders, in any order, or the one around them."""
    first = whole_tree.found()
    assert first[0].count(b"CTX") > 100
    assert whole_tree.found_again() == first


@pytest.mark.parametrize("output_format", ["concise", "full", "json"])
def test_two_reports_are_the_same_bytes(output_format: str) -> None:
    """These read the cache, so they are about the reports."""
    whole_tree.found_again()
    first = run("0", "--output-format", output_format, ".")
    assert first[0].count(b"CTX") > 100
    assert run("42", "--output-format", output_format, ".") == first


def test_the_order_of_folders_in_one_project_does_not_matter(tmp_path: Path) -> None:
    """A sample: the programs, and the last case of each fixture, which search each other for facts."""
    texts = {path.relative_to(PROGRAMS): path.read_bytes() for path in PROGRAMS.rglob("*.py")}
    texts |= {
        Path(fixture.path.stem, f"last{last.suffix}"): last.marked.text.encode()
        for fixture in rule_fixtures()
        for last in fixture.cases[-1:]
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(text)
    folders = sorted({name.parent.as_posix() for name in texts})
    first = run("1", "--no-cache", "--output-format", "json", *folders, folder=tmp_path)
    assert first[0].count(b"CTX") > 100
    assert run("2", "--no-cache", "--output-format", "json", *folders[::-1], folders[0], folder=tmp_path) == first
