"""Processes that are put an end to in the middle of what they do."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.fixture_reader import ROOT

if TYPE_CHECKING:
    from pathlib import Path

_SCRIPT = """
import sys, time
from ctxlint.workers import WORTH_SHARING, Workers

def long_answer(number):
    return bytes(3_000_000)

if __name__ == "__main__":
    with Workers(2) as workers:
        for answer in workers.map(long_answer, range(WORTH_SHARING)):
            time.sleep(float(sys.argv[1]))
            raise KeyboardInterrupt
"""


def test_half_a_result_is_not_waited_for(tmp_path: Path) -> None:
    script = tmp_path / "interrupted.py"
    script.write_text(_SCRIPT, encoding="utf-8")
    for seconds in ("0", "0.005", "0.02"):
        run = subprocess.run(
            [sys.executable, str(script), seconds],
            check=False,
            capture_output=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            timeout=60,
        )
        assert run.stderr.count(b"Traceback") == 1  # the script's own
        assert run.stderr.rstrip().endswith(b"KeyboardInterrupt")
