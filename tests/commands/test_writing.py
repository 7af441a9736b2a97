"""What a run writes: complete files, in place, without overwriting concurrent edits, also in an untrusted checkout."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ctxlint.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., tuple[int, str, str]]

BROKEN = """\
from torch.autograd import Function


class Scale(Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x * scale

    @staticmethod
    def backward(ctx, g):
        return g * ctx.scale


def double(x):
    return Scale.apply(x, 2)
"""
FIXED = BROKEN.replace("g * ctx.scale", "g * ctx.scale, None")
SECRET = b'{"version": 1, "files": {}}\n'
"""What nobody is to touch; ctxlint can read it as a baseline."""


@pytest.fixture(autouse=True)
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one finding, as the current folder; files next to it must not change."""
    folder = tmp_path / "checkout"
    (folder / ".git").mkdir(parents=True)
    (folder / "a.py").write_bytes(BROKEN.encode())
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(SECRET)
    monkeypatch.chdir(folder)
    for name in ("CTXLINT_OUTPUT_FILE", "CTXLINT_CACHE_DIR", "CTXLINT_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    def runs(*arguments: str) -> tuple[int, str, str]:
        code = main(["check", "--no-cache", "--output-format", "concise", *arguments])
        return (code, *capfd.readouterr())

    return runs


def names() -> list[str]:
    return sorted(each for each in os.listdir() if each != ".git")


# Reports and baselines


@pytest.mark.parametrize("options", [["--output-file"], ["--write-baseline"]], ids=["report", "baseline"])
@pytest.mark.parametrize("way", ["link", "folder", "into git"])
def test_a_report_does_not_go_through_a_committed_link(run: Run, options: list[str], way: str) -> None:
    secret = Path("../outside/secret")
    if way == "folder":
        os.symlink("../outside", "out")
        name = "out/secret"
    else:
        name = "report"
        if way == "into git":
            secret = Path(".git/config")
            secret.write_bytes(SECRET)
        os.symlink(secret, name)
    code, out, err = run(f"{options[0]}={name}")
    assert secret.read_bytes() == SECRET
    assert (code, out) == (2, "")
    assert err.startswith("ctxlint: error: ")
    assert name in err
    assert " link" in err


def test_the_name_of_a_temporary_file_cannot_be_guessed(run: Run) -> None:
    for name in ("baseline.json", "report"):
        os.symlink("../outside/secret", f"{name}.{os.getpid()}.new")
    assert run("--write-baseline=baseline.json")[0] == 0
    assert run("--output-file=report")[0] == 1
    assert Path("../outside/secret").read_bytes() == SECRET


def test_an_old_report_survives_a_write_that_fails(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("report").write_text("old\n", encoding="utf-8")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    code, _, err = run("--output-file=report")
    assert (code, err) == (2, "ctxlint: error: --output-file: cannot write report: No space left on device\n")
    assert Path("report").read_text(encoding="utf-8") == "old\n"
    assert names() == ["a.py", "report"]


def test_a_report_keeps_the_mode_of_the_old_one(run: Run) -> None:
    Path("report").write_text("old\n", encoding="utf-8")
    Path("report").chmod(0o640)
    assert run("--output-file=report") == (1, "", "")
    assert "CTX203" in Path("report").read_text(encoding="utf-8")
    assert Path("report").stat().st_mode & 0o777 == (0o640 if os.name == "posix" else 0o666)


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such devices")
def test_a_report_goes_to_devices_pipes_and_descriptors(run: Run, tmp_path: Path) -> None:
    assert run("--output-file=/dev/null") == (1, "", "")
    command = [sys.executable, "-m", "ctxlint", "--no-cache", "--output-format=concise", "--output-file"]
    piped = subprocess.run([*command, "/dev/stdout", "a.py"], check=False, capture_output=True, text=True)
    assert (piped.returncode, "CTX203" in piped.stdout, piped.stderr) == (1, True, "")
    with (tmp_path / "log").open("wb") as log:
        log.write(b"before\n")
        log.flush()
        subprocess.run([*command, "/dev/stdout", "a.py"], check=False, stdout=log)
        subprocess.run(["echo", "after"], check=True, stdout=log)
    lines = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    assert (lines[0], lines[-1], len(lines)) == ("before", "after", 5)
    if os.path.isdir("/dev/shm"):  # a folder like any other
        memory = Path(f"/dev/shm/ctxlint-test-{os.getpid()}")
        memory.write_text("old\n", encoding="utf-8")
        assert run(f"--output-file={memory}") == (1, "", "")
        assert memory.read_text(encoding="utf-8") == piped.stdout
        memory.unlink()
    os.mkfifo("pipe")
    reader = subprocess.Popen(["cat", "pipe"], stdout=subprocess.PIPE, text=True)
    assert run("--output-file=pipe") == (1, "", "")
    assert reader.communicate()[0] == piped.stdout


# Fixes and comments


@pytest.mark.parametrize("option", ["--fix", "--add-noqa"])
def test_a_link_that_leaves_the_project_is_not_written_through(run: Run, option: str) -> None:
    other = Path("../outside/b.py")
    other.write_bytes(BROKEN.encode())
    os.symlink(other, "b.py")
    code, out, err = run(option)
    assert other.read_bytes() == BROKEN.encode()
    assert code == 1
    assert "b.py" in out + err
    assert "The path leads out of the project through a link; the file was not changed" in out + err
    assert Path("a.py").read_bytes() != BROKEN.encode()  # the others are written


def test_a_link_inside_the_project_is(run: Run) -> None:
    os.mkdir("pkg")
    os.rename("a.py", "pkg/a.txt")
    os.symlink("pkg/a.txt", "a.py")
    assert run("--fix")[0] == 0
    assert Path("pkg/a.txt").read_text(encoding="utf-8") == FIXED
    assert Path("a.py").is_symlink()


def test_a_link_above_the_project_does_not_matter(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.symlink(tmp_path / "checkout", tmp_path / "short")
    monkeypatch.chdir(tmp_path)
    assert run("--fix", str(tmp_path / "short"))[0] == 0
    assert Path("checkout/a.py").read_text(encoding="utf-8") == FIXED


@pytest.mark.parametrize("output_format", ["full", "sarif", "json", "rdjson", "github"])
def test_lines_of_files_outside_are_not_quoted(run: Run, output_format: str) -> None:
    other = Path("../outside/b.py")
    other.write_bytes((BROKEN + "\nsecret_word = 'hunter2' +\n").encode())
    os.symlink(other, "b.py")
    code, out, _ = run("--output-format", output_format, "--select=ALL", "b.py")
    assert code == 1
    assert "CTX203" in out
    assert "CTX901" in out
    assert "hunter2" not in out
    assert "snippet" not in out


@pytest.mark.parametrize("target", [".", "b.py"])
def test_files_outside_are_not_explained(target: str, checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (checkout / "../outside/b.py").write_text(BROKEN)
    os.symlink("../outside/b.py", "b.py")
    code = main(["explain", target])
    out, err = capsys.readouterr()
    assert code == 2
    assert "b.py" not in out
    assert "a link to this file leads out of the project; it is skipped" in err


def test_a_file_with_two_names_is_not_fixed(run: Run) -> None:
    os.link("a.py", "../outside/a.py")
    code, out, _ = run("--fix")
    assert code == 1
    assert "a.py:1:1: CTX902 The file has 2 hard links, and a fix would break them; it was not changed." in out
    assert os.path.samefile("a.py", "../outside/a.py")
    assert Path("a.py").read_bytes() == BROKEN.encode()


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="there are no extended attributes")
def test_extended_attributes_survive(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    if sys.platform != "linux":
        return
    try:
        os.setxattr("a.py", "user.origin", b"here\0there")
    except OSError:
        pytest.skip("the file system has no extended attributes")
    shutil.copyfile("a.py", "b.py")
    assert run("--fix", "a.py")[0] == 0
    assert os.getxattr("a.py", "user.origin") == b"here\0there"

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    os.setxattr("b.py", "user.origin", b"here\0there")
    monkeypatch.setattr(os, "setxattr", refuse)
    code, out, _ = run("--fix", "b.py")
    assert code == 1
    assert "CTX902 The extended attribute user.origin cannot be preserved; the file was not changed." in out
    assert Path("b.py").read_bytes() == BROKEN.encode()


# Edits that others make meanwhile


@pytest.mark.parametrize("option", ["--fix", "--add-noqa"])
def test_an_edit_made_meanwhile_is_not_lost(run: Run, option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from ctxlint.source.reading import read_bytes

    edited = "# edited meanwhile\n" + BROKEN

    def read_and_edit(path: str) -> bytes:
        data = read_bytes(path)
        Path("a.py").write_bytes(edited.encode())
        return data

    monkeypatch.setattr("ctxlint.run.lint_file.content_of", read_and_edit)
    code, out, err = run(option)
    assert Path("a.py").read_text(encoding="utf-8") == edited
    assert code == 1
    assert "The file was modified while ctxlint was running; it was not changed" in out + err


def test_every_kind_of_file_is_known_again(run: Run) -> None:
    """The file is compared with the bytes that were read, whatever its encoding."""
    os.remove("a.py")
    cookie = "# coding: latin-1\n# é\n"
    Path("bom.py").write_bytes(b"\xef\xbb\xbf" + BROKEN.encode())
    Path("crlf.py").write_bytes(BROKEN.replace("\n", "\r\n").encode())
    Path("latin.py").write_bytes((cookie + BROKEN).encode("latin-1"))
    Path("no_end.py").write_bytes(BROKEN.rstrip().encode())
    assert run("--fix")[0] == 0
    assert Path("bom.py").read_bytes() == b"\xef\xbb\xbf" + FIXED.encode()
    assert Path("crlf.py").read_bytes() == FIXED.replace("\n", "\r\n").encode()
    assert Path("latin.py").read_bytes() == (cookie + FIXED).encode("latin-1")
    assert Path("no_end.py").read_bytes() == FIXED.rstrip().encode()


_INTERRUPTED = """
import os, signal, sys
import ctxlint.cli

replace = os.replace

def replace_and_be_interrupted(source, target):
    os.kill(os.getpid(), signal.SIGINT) if sys.argv[1] == "before" else None
    replace(source, target)
    os.kill(os.getpid(), signal.SIGINT)

os.replace = replace_and_be_interrupted
sys.exit(ctxlint.cli.main(["check", "--no-cache", "--fix"]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no signals to speak of")
@pytest.mark.parametrize("moment", ["before", "after"])
def test_whoever_presses_ctrl_c_gets_whole_files(moment: str) -> None:
    for name in ("b.py", "c.py"):
        shutil.copyfile("a.py", name)
    process = subprocess.run([sys.executable, "-c", _INTERRUPTED, moment], check=False, capture_output=True)
    assert (process.returncode, process.stdout, process.stderr) == (130, b"", b"")
    assert names() == ["a.py", "b.py", "c.py"]
    fixed = [each for each in names() if Path(each).read_text(encoding="utf-8") == FIXED]
    assert fixed == ([] if moment == "before" else ["a.py"])
    assert all(Path(each).read_text(encoding="utf-8") == BROKEN for each in names() if each not in fixed)


# What a killed run leaves behind


_STUCK = """
import os, sys, time
import ctxlint.cli

def stuck(*_):
    print("stuck", flush=True)
    time.sleep(60)

os.replace = stuck
ctxlint.cli.main(["check", "--no-cache", "--fix"])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_killed_run_leaves_nothing_for_long(run: Run) -> None:
    if sys.platform == "win32":
        return
    process = subprocess.Popen([sys.executable, "-c", _STUCK], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"stuck\n"
    [left] = [each for each in names() if each != "a.py"]
    foreign = [".ctxlint-notes.tmp", ".ctxlint-1-0123456789abcdef.tmp.py", left.replace("-", "_")]
    for each in foreign:
        Path(each).write_text("", encoding="utf-8")
    long_ago = time.time() - 3600
    os.utime(left, (long_ago, long_ago))
    assert run("--add-noqa")[0] == 0
    assert left in names()  # its process is alive
    process.send_signal(signal.SIGKILL)
    process.communicate()
    Path("a.py").write_text(BROKEN, encoding="utf-8")
    assert run("--fix")[0] == 0
    assert names() == sorted(["a.py", *foreign])
