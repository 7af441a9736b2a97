"""No code of a hostile checkout runs, and only requested files are written, whatever the options."""

from __future__ import annotations

import ast
import os
import re
import shutil
import site
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from ctxlint.config.settings import FORMATS
from tests.editor.client import Client
from tests.fixture_reader import ROOT
from tests.hostile import audit
from tests.hostile.checkout import BROKEN, add_links, build, imported_first

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SCRIPT = """\
#!{python}
import sys
from ctxlint.cli import program
sys.exit(program())
"""


@dataclass(frozen=True)
class Watched:
    """An installation of ctxlint in which every Python process logs its audit events, and a checkout to lint."""

    python: Path
    checkout: Path
    marker: Path
    log: Path
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def script(self) -> str:
        return str(self.python.with_name("ctxlint"))

    def run(self, *command: str) -> subprocess.CompletedProcess[bytes]:
        done = subprocess.run(
            command,
            cwd=self.checkout,
            env=self.environment,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            check=False,
            timeout=120,
        )
        assert b"bug in ctxlint" not in done.stderr
        return done

    def events(self) -> Iterator[tuple[str, list[Any]]]:
        """The logged events that a run may not cause."""
        for line in self.log.read_text(encoding="ascii").splitlines() if self.log.exists() else ():
            event, *arguments = ast.literal_eval(line)
            if not self._is_expected(event, arguments):
                yield event, arguments

    def _is_expected(self, event: str, arguments: list[Any]) -> bool:
        """Whether something is written into the user's cache, or a worker is started: a fork, or an isolated process."""
        if event == "os.fork":  # the copy logs its events as well
            return True
        if event == "process":
            return [os.fsdecode(each) for each in arguments[0][:2]] == [str(self.python), "-I"]
        paths = [os.fsdecode(each) for each in arguments if isinstance(each, (str, bytes))]
        places = (self.environment["HOME"], os.devnull)
        return event not in ("exec", "import") and bool(paths) and all(path.startswith(places) for path in paths)

    def assert_untouched(self) -> None:
        assert not self.marker.exists(), self.marker.read_text(encoding="utf-8")
        assert list(self.events()) == []


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that logs its audit events."""
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-I", "-m", "venv", "--without-pip", str(folder)], check=True)
    binaries = folder / ("Scripts" if sys.platform == "win32" else "bin")
    [packages] = folder.glob("Lib/site-packages") if sys.platform == "win32" else folder.glob("lib/*/site-packages")
    shutil.copy(audit.__file__ or "", packages / "watching.py")
    paths = [str(ROOT), *site.getsitepackages(), "import watching"]
    (packages / "watching.pth").write_text("\n".join(paths) + "\n", encoding="utf-8")
    python = binaries / ("python.exe" if sys.platform == "win32" else "python")
    script = binaries / "ctxlint"
    script.write_text(_SCRIPT.format(python=python), encoding="utf-8")
    script.chmod(0o755)
    return python


@pytest.fixture(scope="module")
def first() -> frozenset[str]:
    return imported_first()


def _watched(installed: Path, folder: Path, first: frozenset[str]) -> Watched:
    checkout, marker, log, home = (folder / name for name in ("checkout", "marker", "log", "home"))
    build(checkout, marker, but=first)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "CTXLINT_"))}
    environment |= {"AUDIT_LOG": str(log), "AUDITED_CHECKOUT": str(checkout), "PYTHONDONTWRITEBYTECODE": "1"}
    environment |= dict.fromkeys(("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"), str(home))
    return Watched(installed, checkout, marker, log, environment)


@pytest.fixture
def watched(installed: Path, tmp_path: Path, first: frozenset[str]) -> Watched:
    return _watched(installed, tmp_path, first)


@pytest.fixture(scope="module")
def same(installed: Path, tmp_path_factory: pytest.TempPathFactory, first: frozenset[str]) -> Watched:
    """Shared by read-only tests, so that they use the cache of the first."""
    return _watched(installed, tmp_path_factory.mktemp("same"), first)


@pytest.mark.parametrize("jobs", ["-j1", "-j2"])
@pytest.mark.parametrize("module", [False, True], ids=["script", "module"])
def test_no_code_of_the_checkout_runs(watched: Watched, jobs: str, module: bool) -> None:
    program = [str(watched.python), "-m", "ctxlint"] if module else [watched.script]
    done = watched.run(*program, "--no-cache", jobs, ".")
    assert (done.returncode, done.stderr) == (1, b"")
    watched.assert_untouched()


@pytest.mark.parametrize("output_format", FORMATS)
def test_no_format_writes_anything(same: Watched, output_format: str) -> None:
    done = same.run(same.script, "--output-format", output_format, "-j2", ".")
    assert (done.returncode, done.stderr) == (1, b"")
    same.assert_untouched()


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
@pytest.mark.parametrize(
    "options",
    [
        ("--fix",),
        ("--add-noqa",),
        ("--output-file=report.json", "--output-format=sarif"),
        ("--output-file=out/secret",),
        ("--output-file=new.json", "--output-format=sarif"),
        ("--write-baseline=baseline.json",),
        ("--write-baseline=new.json",),
        ("--cache-dir=.ctxlint_cache",),
        ("--cache-dir=new",),
        ("--diff",),
    ],
    ids=" ".join,
)
def test_only_what_was_asked_for_is_written(watched: Watched, options: tuple[str, ...]) -> None:
    outside = watched.checkout.parent / "outside"
    add_links(watched.checkout, outside)
    before = {path: path.read_bytes() for path in outside.iterdir()}
    done = watched.run(watched.script, *options, "-j2", "--", ".")
    assert done.returncode in (0, 1, 2)
    assert {path: path.read_bytes() for path in outside.iterdir()} == before
    assert b"hunter2" not in done.stdout + done.stderr
    assert not watched.marker.exists()
    assert [each for each in watched.events() if not _is_a_whole_file(*each, watched.checkout)] == []
    written = watched.checkout / "new.json"
    if options[0].endswith("=new.json"):
        assert b"program0.py" in written.read_bytes()
        assert b"hunter2" not in written.read_bytes()
    else:
        assert not written.exists()


_TEMPORARY = re.compile(r"\.ctxlint-\d+-[0-9a-f]{16}\.tmp")


def _is_a_whole_file(event: str, arguments: list[Any], checkout: Path) -> bool:
    """Whether this is a step of writing a file of the checkout through one next to it."""
    if event in ("os.listxattr", "os.getxattr"):
        return True
    paths = [checkout / os.fsdecode(each) for each in arguments if isinstance(each, (str, bytes))]
    if event == "os.mkdir":
        return paths == [checkout / "new"]
    if event == "os.rename":
        source, target = paths
        return _TEMPORARY.fullmatch(source.name) is not None and target.parent == source.parent
    writes = event in ("open", "os.chmod", "os.chown", "os.remove")
    return writes and all(_TEMPORARY.fullmatch(path.name) for path in paths)


def test_the_audit_notices(watched: Watched) -> None:
    """The other tests depend on this: processes that are started here, and what they import, are logged."""
    watched.run(str(watched.python), "-c", "import this")
    watched.run(str(watched.python), "-Ic", "open('new', 'w'); import os; os.remove('new')")
    watched.run(str(watched.python), "-Ic", "import subprocess, sys; subprocess.run([sys.executable, '-c', ''])")
    assert watched.marker.read_text(encoding="utf-8") == "this\n"
    assert {event for event, _ in watched.events()} == {"exec", "open", "os.remove", "process"}


def test_the_language_server_runs_none_of_it(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PYTHON")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(watched.checkout)
    monkeypatch.setattr(sys, "executable", str(watched.python))
    client = Client(environment=watched.environment)
    try:
        client.initialize([watched.checkout])
        uri = (watched.checkout / "program0.py").as_uri()
        client.open(uri, BROKEN)
        assert client.pushed(uri)
        assert client.stop() == 0
    finally:
        client.close()
    watched.assert_untouched()
