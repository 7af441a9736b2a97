"""Logs the audit events of a process that linting has no reason to cause, one line each: name and arguments.

It is copied into the site-packages of an environment of its own, with a ``.pth`` file that imports it, so that it is
loaded before anything else in every Python process of a run, isolated ones too.
"""

import os
import sys

_HARMLESS = ("os.listdir", "os.scandir", "os.walk", "os.putenv", "os.unsetenv", "socket.__new__")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def _hook(event: str, args: tuple[object, ...]) -> None:
    if event == "open":
        path, mode, flags = args
        writes = any(each in mode for each in "wax+") if isinstance(mode, str) else bool(_WRITING & int(str(flags)))
        if writes and not isinstance(path, int):  # a number is open already
            _log("open", path)
    elif event == "exec":
        if _in_checkout(getattr(args[0], "co_filename", None)):
            _log("exec", getattr(args[0], "co_filename", None))
    elif event == "import":
        if _in_checkout(args[1]):
            _log("import", args[1])
    elif event in ("subprocess.Popen", "os.posix_spawn"):  # the one uses the other from Python 3.13 on
        _log("process", args[1])
    elif event == "os.kill" and _is_own_child(args[0]):  # a worker that takes too long to end
        return
    elif event.startswith(("os.", "shutil.", "socket.", "pty.", "ctypes.")) and event not in _HARMLESS:
        _log(event, *args)


def _is_own_child(process: object) -> bool:
    """Whether it is an unreaped child of this process."""
    if not hasattr(os, "waitid") or not isinstance(process, int):
        return False
    try:
        os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except OSError:
        return False
    return True


def _in_checkout(path: object) -> bool:
    return isinstance(path, str) and path[:1] != "<" and os.path.abspath(path).startswith(_checkout + os.sep)


def _log(*event: object) -> None:
    os.write(_file, ascii(list(event)).encode() + b"\n")


if "AUDIT_LOG" in os.environ:
    _checkout = os.environ["AUDITED_CHECKOUT"]
    _file = os.open(os.environ["AUDIT_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    sys.addaudithook(_hook)
