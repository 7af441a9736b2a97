"""Terminal sessions in Markdown: run the commands of a block and return it with their actual output."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def replay(session: str, folder: Path) -> str:
    """Run each line of ``session`` that starts with ``$ `` in ``folder``; return these lines with what they print.

    ``ctxlint`` and ``cat`` are the commands that such a session may use. Both streams are shown, as on a terminal,
    and an exit code other than 0 is no failure: most sessions show findings. ``$ echo $?`` shows it.
    """
    shown = []
    code = 0
    for line in session.split("\n"):
        if not line.startswith("$ "):
            continue
        shown.append(line + "\n")
        command = shlex.split(line[2:])
        if command == ["echo", "$?"]:
            shown.append(f"{code}\n")
        elif command[0] == "cat":
            shown.append((folder / command[1]).read_text(encoding="utf-8"))
        elif command[0] == "ctxlint":
            code, output = run_ctxlint(command[1:], folder)
            shown.append(output)
        else:
            raise ValueError(f"a session shows ctxlint, not {command[0]}")
    return "".join(shown)


def run_ctxlint(arguments: list[str], folder: Path) -> tuple[int, str]:
    """The exit code of ctxlint, started in ``folder``, and what it prints on both streams."""
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100"}
    done = subprocess.run(
        [sys.executable, "-m", "ctxlint", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        check=False,
        encoding="utf-8",
    )
    return done.returncode, done.stdout


def passed(functions: int, files: int, baselined: int = 0) -> str:
    """The last line of a run that finds nothing, or nothing that is not in the baseline."""
    plural = ["" if number == 1 else "s" for number in (functions, files, baselined)]
    known = f"; {baselined} finding{plural[2]} in the baseline" if baselined else ""
    return f"All checks passed! ({functions} Function{plural[0]} in {files} file{plural[1]}{known})\n"


NOTHING_FOUND = "warning: No Python files found under the given path(s)\n"
