"""A Python process that executes requests, isolated from the folder in which it is started.

``multiprocessing`` runs ``python -c``, with the current folder first on the path, so that a ``random.py`` of the
checkout would be executed. This module starts Python with ``-I``, with the search path of the parent process, but never
with the current folder. Requests and answers are pickles, one after the other, through pipes.

On Linux, a process without other threads is copied instead: importing everything again takes most of a second.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any, TypeVar, cast

from ctxlint.search_path import home, leave_current_folder, without_current_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from io import BufferedReader

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

    def __init__(self, prepare: Callable[[], None] | None, *, is_copy: bool = False) -> None:
        """Start the process; it calls ``prepare`` immediately. A copy of this process has what it has imported."""
        self._process: subprocess.Popen[bytes] | _Copy
        if is_copy:
            self._process = _Copy()
            return
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
        self.begin(function, items)
        answer: list[Result] = self.answer()
        return answer

    def begin(self, function: Callable[[Item], object], items: Sequence[Item], patience: float | None = None) -> None:
        """Let the process work on the results of ``function`` for each item, which are the next ``answer``.

        If it does not accept them in so many seconds, it is killed.

        Raises:
            Died: The process ended.
        """
        try:
            with self._killed_after(patience):
                self._send((function, items))
        except OSError as error:
            raise Died from error

    def answer(self, patience: float | None = None) -> list[Any]:
        """The next answer. If it does not come in so many seconds, the process is killed.

        Raises:
            Died: The process ended, which includes an exception in the function.
        """
        assert self._process.stdout is not None
        try:
            with self._killed_after(patience):
                answer: list[Any] = pickle.load(self._process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            raise Died from error
        return answer

    @contextmanager
    def _killed_after(self, patience: float | None) -> Iterator[None]:
        """Kill the process unless this context ends in so many seconds."""
        if patience is None:
            yield
            return
        watch = threading.Timer(patience, self.kill)
        watch.start()
        try:
            yield
        finally:
            watch.cancel()

    def has_answer(self) -> bool:
        """Whether ``answer`` need not wait, as far as is known. Not for Windows, where pipes do not tell."""
        answers = cast("BufferedReader", self._process.stdout)
        os.set_blocking(answers.fileno(), False)
        try:
            return bool(answers.peek(1))  # of several answers, the pipe is empty once the first one was read
        finally:
            os.set_blocking(answers.fileno(), True)

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


class _Copy:
    """A copy of this process that answers requests, with the interface of ``subprocess.Popen``.

    Raises:
        OSError: No process can be started.
    """

    def __init__(self) -> None:
        requests, answers = os.pipe(), os.pipe()
        try:
            self.pid = os.fork()
        except OSError:
            for each in (*requests, *answers):
                os.close(each)
            raise
        if self.pid == 0:
            try:
                _serve_as_copy(requests, answers)
            finally:
                os._exit(1)
        os.close(requests[0])
        os.close(answers[1])
        self.stdin, self.stdout = open(requests[1], "wb"), open(answers[0], "rb")  # noqa: SIM115  (until ``close``)
        self._has_ended = False
        _COPIES.add(self)

    def kill(self) -> None:
        if not self._has_ended:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> None:
        _COPIES.discard(self)
        with suppress(ChildProcessError):  # the host ignores SIGCHLD
            os.waitpid(self.pid, 0)
        self._has_ended = True


_COPIES: set[_Copy] = set()
"""The copies that run. Each new one also has the pipes to the others, and has to close them."""


def can_copy() -> bool:
    """Whether this process can be copied: on Linux, without other threads, whose locks the copy could wait for."""
    try:
        return sys.platform == "linux" and hasattr(os, "fork") and len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False


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
    _answer_all(requests, answers)


def _serve_as_copy(requests: tuple[int, int], answers: tuple[int, int]) -> None:
    """Like ``serve``, in a copy of the process that sends the requests."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()
    for copy in _COPIES:
        os.close(copy.stdin.fileno())
        os.close(copy.stdout.fileno())
    os.close(requests[1])
    os.close(answers[0])
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    leave_current_folder()
    with open(requests[0], "rb") as asked, open(answers[1], "wb") as answered:
        _answer_all(asked, answered)


def _answer_all(requests: IO[bytes], answers: IO[bytes]) -> None:
    while True:
        try:
            function, items = pickle.load(requests)
        except EOFError:
            os._exit(0)  # without traversing all objects to free them
        _answer(answers, [function(item) for item in items])


def _answer(answers: IO[bytes], results: list[Any]) -> None:
    answers.write(pickle.dumps(results, pickle.HIGHEST_PROTOCOL))
    answers.flush()
