"""``--profile``: the time of each part of a run."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from ctxlint.profiling import STAGES

if TYPE_CHECKING:
    from pathlib import Path

DOUBLE = """\
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2, None
"""


def test_stages(tmp_path: Path) -> None:
    (tmp_path / "double.py").write_text(DOUBLE)
    (tmp_path / "plain.py").write_text("import os\n")
    command = [sys.executable, "-m", "ctxlint", "--isolated", "--no-cache", "."]
    plain = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    done = subprocess.run([*command, "--profile"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)
    assert plain.stderr == ""
    rows = [line.split() for line in done.stderr.splitlines()]
    assert [row[0] for row in rows] == ["stage", *STAGES, "all"]
    calls = {row[0]: int(row[3]) for row in rows[1:-1]}
    assert calls["scan"] >= 2
    assert calls["read"] == calls["analyse"] == 1
    shares = [float(row[2].rstrip("%")) for row in rows[1:-1]]
    assert abs(sum(shares) - 100) < 1
