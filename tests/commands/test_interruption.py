"""Ctrl-C ends a run at once and silently, at any stage."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ctxlint.run.interruption import noticed, until_interrupted
from ctxlint.run.workers import WORTH_SHARING
from tests.fixture_reader import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

if sys.platform == "linux":

    def _workers_of(pid: int) -> list[str]:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()

elif sys.platform != "win32":

    def _workers_of(pid: int) -> list[str]:
        return subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False).stdout.split()


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
        for number in range(WORTH_SHARING * 8):
            (tmp_path / f"a{number}.py").write_text(program * 10, encoding="utf-8")
        process = subprocess.Popen(
            [sys.executable, "-m", "ctxlint", "-j2", str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            start_new_session=True,
        )
        while process.poll() is None and len(_workers_of(process.pid)) < 2:
            time.sleep(0.05)
        time.sleep(0.5)  # until they are at it
        assert process.poll() is None
        started = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        out, err = process.communicate(timeout=60)
        assert (out, err) == (b"", b"")
        assert process.returncode in (130, -signal.SIGINT)  # a shell shows 130 for both
        assert time.monotonic() - started < 10

    @pytest.mark.parametrize(
        "starts",
        [
            "subprocess:Popen.__init__",
            "os:fork",
            "ctxlint.run.worker_process:WorkerProcess.__init__",
            "threading:Thread.start",
        ],
    )
    @pytest.mark.parametrize("seconds", [0.01, 0.02, 0.04])
    @pytest.mark.parametrize("command", ["--no-cache", "--add-noqa"])
    def test_processes_that_are_just_starting_say_nothing(
        tmp_path: Path, starts: str, seconds: float, command: str
    ) -> None:
        if starts == "os:fork" and sys.platform != "linux":
            pytest.skip("only new processes are used here")
        program = (ROOT / "fixtures" / "programs" / "broken" / "checkpoint.py").read_text(encoding="utf-8")
        for number in range(WORTH_SHARING):
            (tmp_path / f"a{number}.py").write_text(program, encoding="utf-8")
        script = tmp_path / "interrupted.py"
        script.write_text(_INTERRUPTED, encoding="utf-8")
        run = subprocess.run(
            [sys.executable, str(script), starts, str(seconds), command, "-j2", str(tmp_path)],
            check=False,
            capture_output=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            start_new_session=True,
            timeout=60,
        )
        assert (run.returncode, run.stdout, run.stderr) == (130, b"", b"")

    _INTERRUPTED = """
import importlib, os, signal, sys, time
from ctxlint.cli import main
from ctxlint.run import worker_process

if __name__ == "__main__":
    module, _, path = sys.argv[1].partition(":")
    *owner, name = path.split(".")
    place = importlib.import_module(module)
    for each in owner:
        place = getattr(place, each)
    starts = getattr(place, name)

    def starts_and_is_interrupted(*args, **kwargs):
        result = starts(*args, **kwargs)
        time.sleep(float(sys.argv[2]))
        os.killpg(0, signal.SIGINT)  # as a terminal does
        return result

    setattr(place, name, starts_and_is_interrupted)
    if module == "subprocess":
        worker_process.can_copy = lambda: False
    sys.exit(main(sys.argv[3:]))
"""
