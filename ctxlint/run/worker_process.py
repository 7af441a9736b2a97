"""A process of Python that does what it is given, in isolation from the folder that it is started in.

``multiprocessing`` runs ``python -c``, with the current folder first on the path, so that a ``random.py`` of the
checkout would run. Here Python is started with ``-I``, and looks for modules where the process that starts it does, but
never in the current folder. Requests and answers are pickles, one after the other, through the pipes between the two.
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
"""ctxlint is imported from its own folder, whatever else of this name the path holds."""
_SERVE = """\
from ctxlint.run.worker_process import serve
serve()
"""


class Died(Exception):
    """The process is not there any more."""


class WorkerProcess:
    """One process, and this side of the pipes. Raises OSError where no process can be started."""

    def __init__(self, prepare: Callable[[], None] | None) -> None:
        """Start the process; it does ``prepare`` first, and does not wait to be asked."""
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
        """``function`` of each item. Raises Died, also where the function raised something."""
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
        """How much memory the process has now; 0 where the system does not say."""
        try:
            with open(f"/proc/{self._process.pid}/statm", "rb") as file:
                pages = int(file.read().split()[1])
        except OSError:
            return 0
        return pages * os.sysconf("SC_PAGE_SIZE") >> 20

    def kill(self) -> None:
        """Put an end to the process in the middle of what it does; whoever waits for an answer gets none."""
        self._process.kill()

    def close(self) -> None:
        """Let the process end, and wait for that; nobody may be waiting for an answer."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except OSError:  # what was not sent is lost with the process
                continue
        self._process.wait()


if sys.platform == "win32":
    _FLAGS = subprocess.CREATE_NO_WINDOW  # nor does Ctrl-C reach it
else:
    _FLAGS = 0


def can_start() -> bool:
    """Whether this Python can start another one like it: not where it is part of another program."""
    return bool(sys.executable) and not getattr(sys, "frozen", False)


def command(program: str) -> list[str]:
    """What starts another Python, isolated, that runs a program after it has imported ctxlint."""
    path = [os.fspath(each) for each in without_current_folder(sys.path)]
    start = _IMPORT.format(path=ascii(path), home=ascii(home))
    # -I ignores the variables of the environment that these stand for.
    options = [f"-Xutf8={sys.flags.utf8_mode}"]
    if sys.dont_write_bytecode:
        options.append("-B")
    if sys.pycache_prefix is not None:
        options.append(f"-Xpycache_prefix={sys.pycache_prefix}")
    return [sys.executable, "-I", *options, "-c", start + program]


def serve() -> None:
    """What the process does: answer until nobody asks any more.

    Ctrl-C is left to the process that people see, and garbage is not collected in a short life. What raises an
    exception ends it: the other process does the work itself then, and sees the exception.
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
            os._exit(0)  # without going through all that was read, to free it
        _answer(answers, [function(item) for item in items])


def _answer(answers: IO[bytes], results: list[Any]) -> None:
    answers.write(pickle.dumps(results, pickle.HIGHEST_PROTOCOL))
    answers.flush()
