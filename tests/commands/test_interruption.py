"""Ctrl-C ends a run at once and in silence, whatever the run is at."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from ctxlint.commands.interruption import noticed, until_interrupted
from ctxlint.workers import WORTH_SHARING
from tests.fixture_reader import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

if sys.platform != "win32":

    def test_what_is_swallowed_is_not_lost() -> None:
        def swallowing() -> Iterator[int]:
            yield 1
            try:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(60)
            except KeyboardInterrupt:  # as a `finally` that raises does
                yield 2

        with noticed():
            results = until_interrupted(swallowing())
            assert next(results) == 1
            with pytest.raises(KeyboardInterrupt):
                next(results)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        with noticed():
            assert list(until_interrupted([1, 2])) == [1, 2]

    def test_workers_do_not_keep_it_waiting(tmp_path: Path) -> None:
        program = (ROOT / "fixtures" / "programs" / "broken" / "checkpoint.py").read_text(encoding="utf-8")
        for number in range(WORTH_SHARING * 2):
            (tmp_path / f"a{number}.py").write_text(program * 10, encoding="utf-8")
        process = subprocess.Popen(
            [sys.executable, "-m", "ctxlint", "-j2", str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            start_new_session=True,
        )
        time.sleep(4)  # until the workers are at it
        assert process.poll() is None
        started = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        out, err = process.communicate(timeout=60)
        assert (out, err) == (b"", b"")
        assert process.returncode in (130, -signal.SIGINT)  # a shell shows 130 for both
        assert time.monotonic() - started < 10
