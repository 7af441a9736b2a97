"""Writing fixed files: mode and encoding are kept, and no reader sees a partial file."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxlint.fixes.diff import unified_diff
from ctxlint.source.source import Source
from ctxlint.source.writing import Unwritable, rewrite

if TYPE_CHECKING:
    from pathlib import Path


def test_mode_and_content(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"old")
    file.chmod(0o750)
    rewrite(str(file), b"old", b"new\r\n", str(tmp_path))
    assert file.read_bytes() == b"new\r\n"
    if sys.platform != "win32":
        assert stat.S_IMODE(file.stat().st_mode) == 0o750
    assert [each.name for each in tmp_path.iterdir()] == ["a.py"]


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    target = tmp_path / "folder" / "target.py"
    target.write_bytes(b"old")
    link = tmp_path / "link.py"
    link.symlink_to(os.path.join("folder", "target.py"))
    rewrite(str(link), b"old", b"new", str(tmp_path))
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_a_read_only_file_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"old")
    file.chmod(0o444)
    with pytest.raises(Unwritable, match="The file is read-only; it was not fixed"):
        rewrite(str(file), b"old", b"new", str(tmp_path))
    assert file.read_bytes() == b"old"


def test_a_file_that_has_gone(tmp_path: Path) -> None:
    with pytest.raises(Unwritable, match="No such file or directory"):
        rewrite(str(tmp_path / "a.py"), b"old", b"new", str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_failure_half_way_leaves_the_old_content_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(Unwritable, match="Cannot be written: No space left on device"):
        rewrite(str(file), b"old", b"new", str(tmp_path))
    assert file.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["a.py"]


def test_diff() -> None:
    before, after = Source("a.py", "1\n2\n3\n\x0c4\u2028\n5\n"), Source("a.py", "1\ntwo\n3\n\x0c4\u2028\n5\n6")
    lines = list(unified_diff(before, after))
    assert "".join(lines) == (
        "--- a.py\n+++ a.py\n@@ -1,5 +1,6 @@\n 1\n-2\n+two\n 3\n \x0c4\u2028\n 5\n+6\n\\ No newline at end of file\n"
    )
    assert list(unified_diff(before, after, named=False)) == lines[2:]
    assert list(unified_diff(before, before)) == []


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("a b/\u00e9.py", "a b/\u00e9.py"),
        ("a\n--- b.py\n+++ b.py", '"a\\n--- b.py\\n+++ b.py"'),
        ('\x1b["\\\udcff.py', '"\\033[\\"\\\\\\377.py"'),
    ],
)
def test_a_name_is_one_line_of_the_patch_and_git_reads_it(name: str, header: str, tmp_path: Path) -> None:
    """A name with a newline would end the header, and begin that of another file."""
    patch = "".join(unified_diff(Source(name, "x = 1\n"), Source(name, "x = 2\n")))
    assert patch.split("\n")[:2] == [f"--- {header}", f"+++ {header}"]
    if sys.platform == "win32":  # it has no such names
        return
    file = tmp_path / name.replace("/", "_")
    file.write_text("x = 1\n", encoding="utf-8")
    command = ["git", "apply", "-p0", "-"]
    subprocess.run(command, cwd=tmp_path, input=patch.replace("/", "_").encode(), check=True)
    assert [each.read_text(encoding="utf-8") for each in tmp_path.iterdir()] == ["x = 2\n"]


def _applied(old: list[str], diff: list[str]) -> list[str]:
    """``old`` after a unified diff, whose context must be right."""
    new, at = [], 0
    for line in diff:
        head = re.match(r"@@ -(\d+)(?:,(\d+))? ", line)
        if head:
            start = int(head[1]) - (head[2] != "0")
            new += old[at:start]
            at = start
        elif line[0] in " -":
            assert old[at] == line[1:]
            new += old[at : at + 1] if line[0] == " " else []
            at += 1
        else:
            new.append(line[1:])
    return new + old[at:]


LINES = ("x = 1\n", "\n", "    return x\n", *(f"line {number}\n" for number in range(40)))


@given(st.lists(st.sampled_from(LINES), max_size=60), st.lists(st.sampled_from(LINES), max_size=60))
def test_a_diff_makes_the_one_text_of_the_other(old: list[str], new: list[str]) -> None:
    diff = list(unified_diff(Source("a.py", "".join(old)), Source("a.py", "".join(new)), named=False))
    assert _applied(old, diff) == new


def test_frequent_lines_of_a_long_text_are_no_changes() -> None:
    """difflib alone ignores lines that make up more than one percent of a text."""
    old = ["@staticmethod\n", "def f(x):\n", "    return x\n", "\n"] * 100
    new = list(old)
    new[201] = "def g(x):\n"
    diff = list(unified_diff(Source("a.py", "".join(old)), Source("a.py", "".join(new)), named=False))
    assert [line for line in diff if line[0] in "-+"] == ["-def f(x):\n", "+def g(x):\n"]


def test_a_diff_of_a_huge_repetitive_text_takes_no_time() -> None:
    old = ["pass\n"] * 100_000
    diff = unified_diff(Source("a.py", "".join(old)), Source("a.py", "".join(["first\n", *old, "last\n"])))
    assert sum(1 for _ in diff) < 300_000
