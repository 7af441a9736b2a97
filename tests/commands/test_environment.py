"""Environment variables that set defaults, and argument files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ctxlint.cli import main
from ctxlint.commands.overrides import parse
from tests import stand_ins
from tests.stand_ins import CANDIDATE

if TYPE_CHECKING:
    from ctxlint.config.settings import Settings


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stand_ins.install(monkeypatch)
    monkeypatch.chdir(tmp_path)
    for name in ("CONFIG", "OUTPUT_FORMAT", "OUTPUT_FILE", "CACHE_DIR", "NO_CACHE"):
        monkeypatch.delenv(f"CTXLINT_{name}", raising=False)
    Path("a.py").write_text(f"{CANDIDATE}wrong = plain\n", encoding="utf-8")


def _settings(*arguments: str) -> Settings:
    return parse(list(arguments))[1].settings_for(".")


def test_config(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    Path("ctxlint.toml").write_text('target-torch = "2.1"\n', encoding="utf-8")
    Path("other.toml").write_text('target-torch = "2.2"\n', encoding="utf-8")
    Path("third.toml").write_text('target-torch = "2.3"\n', encoding="utf-8")
    assert _settings().target_torch == "2.1"
    monkeypatch.setenv("CTXLINT_CONFIG", "")
    assert _settings().target_torch == "2.1"
    monkeypatch.setenv("CTXLINT_CONFIG", "other.toml")
    assert _settings().target_torch == "2.2"
    assert _settings("--config", "third.toml").target_torch == "2.3"
    assert _settings("--config", 'target-torch = "2.4"').target_torch == "2.4"
    assert _settings("--isolated").target_torch is None
    monkeypatch.setenv("CTXLINT_CONFIG", "gone.toml")
    with pytest.raises(SystemExit, match="2"):
        main([])
    assert capfd.readouterr().err.endswith("error: CTXLINT_CONFIG: no such file: gone.toml\n")


@pytest.mark.parametrize(
    ("value", "expected"), [("", False), ("0", False), ("false", False), ("No", False), ("1", True), ("true", True)]
)
def test_no_cache(monkeypatch: pytest.MonkeyPatch, value: str, expected: bool) -> None:
    assert not _settings().no_cache
    assert _settings("--no-cache").no_cache
    assert _settings("-n").no_cache
    monkeypatch.setenv("CTXLINT_NO_CACHE", value)
    assert _settings().no_cache is expected


def test_cache_dir(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("ctxlint.toml").write_text('cache-dir = "in_file"\n', encoding="utf-8")
    assert _settings().cache_dir == str(Path("in_file").resolve())
    monkeypatch.setenv("CTXLINT_CACHE_DIR", "in_environment")
    assert _settings().cache_dir == str(Path("in_environment").resolve())
    assert _settings("--cache-dir", "as_option").cache_dir == str(Path("as_option").resolve())


def test_output(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    Path("ctxlint.toml").write_text('output-format = "concise"\n', encoding="utf-8")
    monkeypatch.setenv("CTXLINT_OUTPUT_FORMAT", "json")
    monkeypatch.setenv("CTXLINT_OUTPUT_FILE", "report")
    assert main([]) == 1
    assert capfd.readouterr().out == ""
    assert len(json.loads(Path("report").read_text(encoding="utf-8"))) == 2
    assert main(["--output-format", "pylint", "-o", "other"]) == 1
    assert Path("other").read_text(encoding="utf-8").startswith("a.py:2: [CTX211]")
    monkeypatch.setenv("CTXLINT_OUTPUT_FORMAT", "jsn")
    with pytest.raises(SystemExit, match="2"):
        main([])
    assert "CTXLINT_OUTPUT_FORMAT: unknown output format `jsn`; did you mean `json`?" in capfd.readouterr().err


def test_colours(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    def coloured(*arguments: str) -> bool:
        main(arguments)
        return "\x1b[" in capfd.readouterr().out

    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    assert not coloured()
    assert coloured("--color", "always")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert coloured()
    assert not coloured("--color", "never")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not coloured()


def test_arguments_in_a_file(capfd: pytest.CaptureFixture[str]) -> None:
    Path("args.txt").write_text("check\n--select\nCTX3\n--output-format=concise\n", encoding="utf-8")
    Path("with space.py").write_text(f"{CANDIDATE}plain = 1\n", encoding="utf-8")
    Path("paths.txt").write_bytes(b"a.py\r\nwith space.py\r\n")
    assert main(["@args.txt", "-q", "@paths.txt"]) == 1
    assert capfd.readouterr().out == ("a.py:2:9: CTX301 `plain` is found\nwith space.py:2:1: CTX301 `plain` is found\n")
    Path("@odd.py").write_text("", encoding="utf-8")
    assert main(["--", "@odd.py"]) == main(["./@odd.py"]) == 0
    assert main(["@gone.txt"]) == 2
    assert capfd.readouterr().err == "ctxlint: error: @gone.txt: No such file or directory\n"
