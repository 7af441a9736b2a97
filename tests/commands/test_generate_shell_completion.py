"""Completion scripts, run in their shells."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from ctxlint.cli import main
from ctxlint.commands import COMMANDS
from ctxlint.commands.generate_shell_completion import SHELLS
from ctxlint.config.settings import FORMATS

if TYPE_CHECKING:
    from pathlib import Path

INSTALLED = [shell for shell in SHELLS if shutil.which(shell)]

# What bash does when somebody presses the tabulator key behind these words.
_ASK_BASH = """
source ./script
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
_shtab_ctxlint
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def script(request: pytest.FixtureRequest, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Path:
    """The completion script of one shell, as a file."""
    assert main(["generate-shell-completion", request.param]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    file = tmp_path / "script"
    file.write_text(out, encoding="utf-8")
    return file


def test_bash_is_there() -> None:
    assert "bash" in INSTALLED


@pytest.mark.parametrize(("shell", "script"), [(each, each) for each in INSTALLED], indirect=["script"])
def test_the_shell_accepts_the_script(shell: str, script: Path) -> None:
    done = subprocess.run([shell, "-n", str(script)], capture_output=True, check=False, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("script", ["bash"], indirect=True)
def test_bash_completes(script: Path) -> None:
    (script.parent / "layer.py").write_text("", encoding="utf-8")

    def offered(*words: str) -> list[str]:
        asked = ["bash", "-c", _ASK_BASH, "bash", "ctxlint", *words]
        done = subprocess.run(asked, cwd=script.parent, capture_output=True, check=True, text=True)
        assert done.stderr == ""
        return done.stdout.split()

    assert offered("") == list(COMMANDS)
    assert offered("ch") == ["check"]
    assert offered("--output-f") == offered("check", "--output-f") == ["--output-format", "--output-file"]
    assert offered("check", "--output-format", "") == offered("--output-format", "") == list(FORMATS)
    assert offered("check", "la") == offered("check", "--output-file", "la") == ["layer.py"]
    assert offered("rule", "CTX20")[:2] == ["CTX201", "CTX202"]
    assert offered("rule", "missing-st") == ["missing-staticmethod"]
    assert offered("check", "--select", "CTX203") == ["CTX203"]
    assert offered("config", "target") == ["target-torch"]
    assert offered("generate-shell-completion", "") == list(SHELLS)


if "fish" in INSTALLED:

    @pytest.mark.parametrize("script", ["fish"], indirect=True)
    def test_fish_completes(script: Path) -> None:
        command = f"source {script}; complete -C 'ctxlint check --output-format sa'"
        done = subprocess.run(["fish", "-c", command], capture_output=True, check=True, text=True)
        assert done.stdout.split("\t")[0] == "sarif"


def test_without_shtab_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["generate-shell-completion", "bash"]) == 2
    assert capfd.readouterr().err == 'ctxlint: error: completion needs shtab; run `pip install "ctxlint[completion]"`\n'
