"""A Python process that executes requests, isolated from the folder in which it is started.

``multiprocessing`` runs ``python -c``, with the current folder first on the path, so that a ``random.py`` of the
checkout would be executed. This module starts Python with ``-I``, with the search path of the parent process, but never
with the current folder. Requests and answers are pickles, one after the other, through pipes.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import subprocess
import sys
from typing import IO, TYPE_CHECKING, Any, TypeVar

from ctxlint.search_path import home, without_current_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Item = TypeVar("Item")
Result = TypeVar("Result")

_IMPORT = """\
import importlib.machinery, importlib.util, sys
sys.path[:] = {path}
spec = importlib.machinery.PathFinder.find_spec("ctxlint", [{home}])
sys.modules["ctxlint"] = package = importlib.util.module_from_spec(spec)
spec.loader.exec_module(package)
"""
"""ctxlint is imported from its own folder, whatever else of this name is on the path."""
_SERVE = """\
from ctxlint.run.worker_process import serve
serve()
"""


class Died(Exception):
    """The process has ended."""


class WorkerProcess:
    """One process, and the parent's end of the pipes.

    Raises:
        OSError: No process can be started.
    """

    def __init__(self, prepare: Callable[[], None] | None) -> None:
        """Start the process; it calls ``prepare`` immediately."""
        self._process = subprocess.Popen(
            command(_SERVE),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            creationflags=_FLAGS,
        )
        try:
            self._send(prepare)
        except BaseException:
            self.kill()
            self.close()
            raise

    def ask(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """The results of ``function`` for each item.

        Raises:
            Died: The process ended, which includes an exception in the function.
        """
        try:
            self._send((function, items))
            assert self._process.stdout is not None
            answer: list[Result] = pickle.load(self._process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            raise Died from error
        return answer

    def _send(self, request: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(pickle.dumps(request, pickle.HIGHEST_PROTOCOL))
        self._process.stdin.flush()

    def megabytes(self) -> int:
        """The memory of the process; 0 if the system does not report it."""
        try:
            with open(f"/proc/{self._process.pid}/statm", "rb") as file:
                pages = int(file.read().split()[1])
        except OSError:
            return 0
        return pages * os.sysconf("SC_PAGE_SIZE") >> 20

    def kill(self) -> None:
        """Terminate the process immediately; a pending ``ask`` gets no answer."""
        self._process.kill()

    def close(self) -> None:
        """Let the process end, and wait for it; no ``ask`` may be pending."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except OSError:  # unsent requests are lost with the process
                continue
        self._process.wait()


if sys.platform == "win32":
    _FLAGS = subprocess.CREATE_NO_WINDOW  # no console, so Ctrl-C does not reach it either
else:
    _FLAGS = 0


def can_start() -> bool:
    """Whether this Python can start another one like it: not if it is embedded in another program."""
    return bool(sys.executable) and not getattr(sys, "frozen", False)


def command(program: str) -> list[str]:
    """The command that starts another isolated Python, imports ctxlint, and runs a program."""
    path = [os.fspath(each) for each in without_current_folder(sys.path)]
    start = _IMPORT.format(path=ascii(path), home=ascii(home))
    # -I ignores the environment variables that correspond to these options.
    options = [f"-Xutf8={sys.flags.utf8_mode}"]
    if sys.dont_write_bytecode:
        options.append("-B")
    if sys.pycache_prefix is not None:
        options.append(f"-Xpycache_prefix={sys.pycache_prefix}")
    return [sys.executable, "-I", *options, "-c", start + program]


def serve() -> None:
    """The main loop of the process: answer requests until the pipe is closed.

    Only the parent handles Ctrl-C, and the short life needs no garbage collection. An exception ends the process: the
    parent then does the work itself, and raises the exception there.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr
    prepare = pickle.load(requests)
    if prepare is not None:
        prepare()
    while True:
        try:
            function, items = pickle.load(requests)
        except EOFError:
            os._exit(0)  # without traversing all objects to free them
        _answer(answers, [function(item) for item in items])


def _answer(answers: IO[bytes], results: list[Any]) -> None:
    answers.write(pickle.dumps(results, pickle.HIGHEST_PROTOCOL))
    answers.flush()
