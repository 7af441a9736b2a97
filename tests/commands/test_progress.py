"""The progress bar: on a terminal, for long runs, and nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from ctxlint.commands import progress
from ctxlint.result import FileResult
from tests.fixture_reader import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RESULTS = [FileResult(f"{number}.py") for number in range(10)]

_RUN = """
import sys
from ctxlint.commands import progress
progress.SECONDS = 0
from ctxlint.cli import main
code = main(sys.argv[1:])
print("tqdm" in sys.modules, file=sys.stdout)
sys.exit(code)
"""


def _slowly() -> Iterator[FileResult]:
    for each in RESULTS:
        time.sleep(0.15)
        yield each


def test_a_run_that_takes_a_second_has_a_bar(capfd: pytest.CaptureFixture[str]) -> None:
    assert list(progress.shown(_slowly(), 10)) == RESULTS
    assert "/10 [" in capfd.readouterr().err


def test_a_quick_run_has_none(capfd: pytest.CaptureFixture[str]) -> None:
    assert list(progress.shown(iter(RESULTS), 10)) == RESULTS
    assert capfd.readouterr().err == ""


def test_without_tqdm_there_is_none(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr(progress, "SECONDS", 0)
    assert list(progress.shown(iter(RESULTS), 10)) == RESULTS
    assert capfd.readouterr().err == ""


if sys.platform != "win32":
    import fcntl
    import struct
    import termios

    def _terminal() -> tuple[int, int]:
        ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        return ours, theirs

    @pytest.mark.parametrize(
        ("arguments", "terminal", "bar"),
        [([], True, True), (["-q"], True, False), (["-s"], True, False), ([], False, False)],
    )
    def test_who_sees_it(arguments: list[str], terminal: bool, bar: bool, tmp_path: Path) -> None:
        for name in ("a.py", "b.py"):
            (tmp_path / name).write_text(
                "from torch.autograd import Function\n\n\nclass A(Function):\n    pass\n", encoding="utf-8"
            )
        ours, theirs = _terminal() if terminal else os.pipe()
        done = subprocess.run(
            [sys.executable, "-c", _RUN, *arguments, "."],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=theirs,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            check=True,
            text=True,
        )
        os.write(theirs, b".")
        said = os.read(ours, 10_000).decode()
        os.close(ours)
        os.close(theirs)
        assert ("/2 [" in said) is bar
        assert done.stdout.splitlines()[-1] == str(bar)
