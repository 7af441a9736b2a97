"""``ctxlint check --watch``: what is checked again, and when it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from ctxlint.cli import main

if TYPE_CHECKING:
    from pathlib import Path

STASH = """\
from torch.autograd import Function


class Scale(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * ctx.x
"""
SECONDS = 60


@pytest.mark.skipif(sys.platform == "win32", reason="sends Ctrl-C as POSIX does")
def test_it_checks_again_after_a_change_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n", encoding="utf-8")
    (tmp_path / "json.py").write_text("raise SystemExit(3)\n", encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "ctxlint", "--watch", "--output-format", "concise", "--isolated"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    stop = threading.Timer(SECONDS, process.kill)
    stop.start()
    try:
        assert _until_it_waits(process) == ["All checks passed! (0 Functions in 2 files)\n"]
        (tmp_path / "a.py").write_text(STASH, encoding="utf-8")
        assert _until_it_waits(process)[0].startswith("a.py:7:9: CTX301 ")
        (tmp_path / "a.py").unlink()
        assert _until_it_waits(process) == ["All checks passed! (0 Functions in 1 file)\n"]
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 130
    finally:
        stop.cancel()
        process.kill()
        process.communicate()


def _until_it_waits(process: subprocess.Popen[str]) -> list[str]:
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        if "Watching for file changes" in line:
            return lines
        lines.append(line)
    raise AssertionError(f"it ended: {lines}")


@pytest.mark.parametrize("arguments", [["-"], ["--stdin-filename=a.py"], ["--add-noqa"]])
def test_what_cannot_be_watched(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--watch", *arguments])
    assert "--watch cannot be combined" in capsys.readouterr().err
