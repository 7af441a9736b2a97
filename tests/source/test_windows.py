"""Names with backslashes, a busy file: what Windows does otherwise, simulated on any system."""

from __future__ import annotations

import errno
import ntpath
import os
from typing import TYPE_CHECKING

import pytest

from ctxlint.api import lint_paths
from ctxlint.config.settings import anchored
from ctxlint.source.boundary import is_inside
from ctxlint.source.gitignore import IgnoreFile, is_ignored
from ctxlint.source.globs import Globs
from ctxlint.source.writing import Unwritable, rewrite

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules of Windows for the names of files."""
    monkeypatch.setattr(os, "sep", "\\")
    for name in ("isabs", "splitdrive", "normcase"):
        monkeypatch.setattr(os.path, name, getattr(ntpath, name))
    monkeypatch.setattr(os.path, "abspath", ntpath.normpath)


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize(
    ("line", "ignored", "others"),
    [
        ("build/generated/*.py", [r"C:\p\build\generated\a.py"], [r"C:\p\build\a.py", r"C:\p\x\build\generated\a.py"]),
        ("/third_party/lib", [r"C:\p\third_party\lib"], [r"C:\p\x\third_party\lib"]),
        ("docs/**/a.py", [r"C:\p\docs\x\y\a.py"], [r"C:\p\docs\b.py"]),
        ("a.py", [r"C:\p\x\a.py"], [r"C:\p\x\b.py"]),
    ],
)
def test_gitignore_patterns_match_names_with_backslashes(line: str, ignored: list[str], others: list[str]) -> None:
    files = (IgnoreFile([line], r"C:\p"),)
    assert [path for path in ignored if not is_ignored(path, ntpath.basename(path), files)] == []
    assert [path for path in others if is_ignored(path, ntpath.basename(path), files)] == []


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize("glob", ["gen/*.py", r"gen\*.py", "./gen/*.py"])
@pytest.mark.parametrize("root", ["C:\\", r"C:\p", r"C:\p [x]"])
def test_globs_match_names_with_backslashes(glob: str, root: str) -> None:
    globs = Globs([anchored(glob, root)], r"C:\elsewhere")
    assert globs.fit(ntpath.join(root, "gen", "a.py"), "a.py")
    assert not globs.fit(ntpath.join(root, "other", "a.py"), "a.py")
    assert globs.fit_within(ntpath.join(root, "gen", "a.py"))


@pytest.mark.usefixtures("windows")
def test_a_folder_contains_names_in_other_case() -> None:
    assert is_inside(r"c:\Users\me\project\a.py", r"C:\users\me\Project")
    assert not is_inside(r"C:\users\me\project2", r"C:\users\me\project")


def test_a_file_that_another_program_has_open_is_not_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"before\n")
    monkeypatch.setattr(os, "replace", _busy)
    with pytest.raises(Unwritable, match="Cannot be written: Permission denied"):
        rewrite(str(path), b"before\n", b"after\n", str(tmp_path))
    assert path.read_bytes() == b"before\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_cache_that_another_run_has_open_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.py").write_text("def f(:\n# torch autograd Function\nclass A(Function): pass\n", encoding="utf-8")
    monkeypatch.setattr(os, "replace", _busy)
    assert [each.code for each in lint_paths([str(tmp_path)])] == ["CTX901"]


def _busy(_source: str, _target: str) -> None:
    raise PermissionError(errno.EACCES, "Permission denied")
