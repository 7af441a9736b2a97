"""``ctxlint clean`` removes caches, and nothing that is not one."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxlint.cache.folder import TAG, TAG_FILE
from ctxlint.cli import main


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("CTXLINT_CACHE_DIR", "CTXLINT_CONFIG"):
        monkeypatch.delenv(name, raising=False)


def _cache(path: str, tag: str = TAG) -> Path:
    folder = Path(path)
    folder.mkdir(parents=True)
    (folder / TAG_FILE).write_text(tag, encoding="utf-8")
    (folder / ".gitignore").write_text("*\n", encoding="utf-8")
    (folder / "results.bin").write_bytes(b"")
    return folder


def _removed(capfd: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["clean", *arguments]) == 0
    out, err = capfd.readouterr()
    assert out == ""
    return [line.removeprefix("Removing cache at: ") for line in err.splitlines()]


def test_caches_in_all_folders_go(capfd: pytest.CaptureFixture[str]) -> None:
    for path in (".ctxlint_cache", "a/b/.ctxlint_cache", "c/.ctxlint_cache"):
        _cache(path)
    Path("a/kept.py").write_text("", encoding="utf-8")
    Path("a/ctxlint.toml").write_text("", encoding="utf-8")
    assert _removed(capfd, "a") == ["a/b/.ctxlint_cache"]
    assert _removed(capfd) == [".ctxlint_cache", "c/.ctxlint_cache"]
    assert sorted(each.as_posix() for each in Path().rglob("*")) == ["a", "a/b", "a/ctxlint.toml", "a/kept.py", "c"]
    assert _removed(capfd) == []


def test_what_is_not_a_cache_of_ours_stays(capfd: pytest.CaptureFixture[str]) -> None:
    signature = TAG.partition("\n")[0]
    kept = [
        _cache("a/.ctxlint_cache", tag=f"{signature}\n# created by another tool\n"),
        _cache("b/.ctxlint_cache", tag="ctxlint\n"),
        _cache(".ruff_cache"),
        _cache(".git/.ctxlint_cache"),
    ]
    Path("c/.ctxlint_cache").mkdir(parents=True)
    real = _cache("real")
    Path("d").mkdir()
    Path("d/.ctxlint_cache").symlink_to(real.resolve(), target_is_directory=True)
    assert _removed(capfd) == []
    assert all(each.exists() for each in (*kept, real, Path("c/.ctxlint_cache"), Path("d/.ctxlint_cache")))


def test_a_cache_with_another_name(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    Path("ctxlint.toml").write_text('cache-dir = "stored"\n', encoding="utf-8")
    _cache("stored")
    assert _removed(capfd, "-q") == []
    assert not Path("stored").exists()
    _cache("other")
    assert _removed(capfd, "--cache-dir", "other") == ["other"]
    _cache("third")
    monkeypatch.setenv("CTXLINT_CACHE_DIR", "third")
    assert _removed(capfd) == ["third"]
    Path("third").mkdir()
    assert _removed(capfd) == []


def test_what_the_users_cache_holds_about_projects(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ctxlint.cache import folder
    from ctxlint.cache.run import _place

    cache = tmp_path / "cache" / "ctxlint"
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache.parent))
    monkeypatch.setattr("ctxlint.cache.stamp._SETTLED", 0)
    folder.forget()
    _place.cache_clear()
    for path in ("a/b", "c", "ab"):
        Path(path).mkdir(parents=True)
        Path(path, "f.py").write_text("import os\n", encoding="utf-8")
        Path(path, "ctxlint.toml").write_text("", encoding="utf-8")
        assert main(["check", "-q", path]) == 0
    assert len(list(cache.glob("*.cache"))) == 3
    (cache / "notes.cache").write_text("not ours", encoding="utf-8")
    [removed] = _removed(capfd, "a")
    assert Path(removed).name.startswith("b-")
    assert [Path(each).name.rpartition("-")[0] for each in _removed(capfd)] == ["ab", "c"]
    assert sorted(each.name for each in cache.iterdir()) == [".gitignore", "CACHEDIR.TAG", "key", "notes.cache"]
    folder.forget()
    _place.cache_clear()


def test_a_folder_that_is_not_there(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["clean", "gone"]) == 2
    assert capfd.readouterr().err == "ctxlint: error: gone: no such folder\n"


@pytest.mark.parametrize("other", ["a.py", ".git", "pyproject.toml", "src/a.py"])
def test_a_folder_with_something_else_in_it_stays(other: str, capfd: pytest.CaptureFixture[str]) -> None:
    _cache("project")
    Path("project", other).parent.mkdir(exist_ok=True)
    Path("project", other).write_text("", encoding="utf-8")
    assert _removed(capfd, "--cache-dir", "project") == []
    assert Path("project", other).exists()
