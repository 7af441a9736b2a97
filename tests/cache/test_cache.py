"""The cache can neither hide nor invent a finding, whatever happens to the files, to it, and to those who write it."""

from __future__ import annotations

import os
import pickle
import random
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BASE = """\
import torch


class Base(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        return x * k

    @staticmethod
    def backward(ctx, grad_output):
        return {gradient}
"""
SCALE = """\
from torch.autograd import Function
from pkg.base import Base


class Scale(Base):
    @staticmethod
    def forward(ctx, x, k{default}):
        ctx.k = k
        return x * k


class Double(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2{more}
"""
CALLER = """\
from pkg.scale import Scale as S


def call(x):
    return S.apply(x{arguments})
"""
PLAIN = "import os\n\n\ndef f():\n    return {number}\n"


def texts(choose: random.Random) -> dict[str, str]:
    """A project in one of many states, some of which have findings that hang on other files."""
    found = {
        "pkg/__init__.py": choose.choice(["", "from pkg.scale import Scale\n"]),
        "pkg/base.py": BASE.format(gradient=choose.choice(["grad_output, None", "grad_output", "grad_output, 1, 2"])),
        "pkg/scale.py": SCALE.format(default=choose.choice(["", "=1"]), more=choose.choice(["", ", None", ", 1"])),
        "pkg/plain.py": PLAIN.format(number=choose.choice([1, 2, 3])),
        "use.py": CALLER.format(arguments=choose.choice(["", ", 2", ", 2, 3", ", k=2"])),
    }
    if choose.random() < 0.2:
        found["pkg/plain.py"] = found["pkg/scale.py"]
    if choose.random() < 0.2:
        del found[choose.choice(["pkg/base.py", "use.py", "pkg/__init__.py"])]
    return found


def write(folder: Path, files: dict[str, str]) -> None:
    for path in folder.rglob("*.py"):
        if str(path.relative_to(folder)).replace(os.sep, "/") not in files:
            path.unlink()
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def run(folder: Path, *options: str) -> tuple[int, str]:
    command = [
        sys.executable,
        "-m",
        "ctxlint",
        "--isolated",
        "--select",
        "ALL",
        "--output-format",
        "json",
        *options,
        ".",
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, done.stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path, texts(random.Random(0)))
    (tmp_path / ".git").mkdir()
    settle(tmp_path)
    return tmp_path


def settle(folder: Path) -> None:
    """Make the files look as old as those that people run a linter on twice."""
    old = time.time() - 60
    for path in folder.rglob("*.py"):
        os.utime(path, (old, old))


@pytest.fixture
def in_process(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Runs the command here, which is faster; what it remembers of other files is forgotten each time."""
    from ctxlint.cli import main
    from ctxlint.files import modules
    from ctxlint.one_file import forget_other_files

    # The clock of the file system ticks slowly; here, each change is meant to be seen at once.
    monkeypatch.setattr("ctxlint.cache.stamp._SETTLED", 0)
    monkeypatch.chdir(project)

    def call(*options: str) -> str:
        forget_other_files()
        modules.forget()
        code = main(["check", "--isolated", "--select", "ALL", "--output-format", "json", *options, "."])
        assert code in (0, 1)
        return capsys.readouterr().out

    return call


@pytest.mark.parametrize("seed", range(4))
def test_random_changes(project: Path, in_process: Callable[..., str], seed: int) -> None:
    choose = random.Random(seed)
    outputs = set()
    for _ in range(12):
        write(project, texts(choose))
        if choose.random() < 0.5:
            for path in project.rglob("*.py"):  # times that go back, or stay, say nothing
                moment = time.time() - choose.choice([0, 60, 3600])
                os.utime(path, (moment, moment))
        options = choose.choice([(), ("--ignore", "CTX2"), ("--target-torch", "2.1")])
        expected = in_process("--no-cache", *options)
        assert in_process(*options) == expected
        assert in_process(*options) == expected
        outputs.add(expected)
    assert len(outputs) > 5


def test_the_second_run_reads_no_code(project: Path) -> None:
    first = run(project)
    code = "import sys\nfrom ctxlint.cli import main\n"
    code += "main(['check', '--isolated', '--select', 'ALL', '--output-format', 'json', '.'])\n"
    code += "assert 'libcst' not in sys.modules, 'it was linted again'\n"
    second = subprocess.run([sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=False)
    assert (second.returncode, second.stdout) == (0, first[1]), second.stderr


def test_it_is_a_tagged_folder_that_git_leaves_out(project: Path) -> None:
    run(project)
    cache = project / ".ctxlint_cache"
    assert (cache / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")
    assert "*" in (cache / ".gitignore").read_text().split("\n")
    assert {path.name for path in cache.iterdir()} == {".gitignore", "CACHEDIR.TAG", "results.bin"}


@pytest.mark.parametrize("options", [("--no-cache",), ("--fix",), ("--diff",)])
def test_who_goes_without(project: Path, options: tuple[str, ...]) -> None:
    subprocess.run([sys.executable, "-m", "ctxlint", "--isolated", *options, "."], cwd=project, check=False)
    assert not (project / ".ctxlint_cache").exists()


class Boom:
    """What a foreign cache may try."""

    def __reduce__(self) -> tuple[object, ...]:
        return os.system, ("touch boom",)


@pytest.mark.parametrize(
    "damage", ["empty", "half", "flipped", "foreign", "folder", "text", "evil table", "evil result"]
)
def test_a_damaged_or_foreign_cache_counts_as_empty(project: Path, in_process: Callable[..., str], damage: str) -> None:
    from ctxlint.cache.stamp import digest
    from ctxlint.cache.store import _HEAD, _own

    expected = in_process()
    path = project / ".ctxlint_cache" / "results.bin"
    data = path.read_bytes()
    start = len(_HEAD) + len(_own())
    if damage == "folder":
        path.unlink()
        path.mkdir()
    elif damage.startswith("evil"):
        table = pickle.loads(data[start + 16 :])
        if damage == "evil table":
            table["seen"]["x"] = Boom()
        else:
            evil = pickle.dumps(Boom())
            table["found"] = {
                name: [(*each[:3], evil, each[4]) for each in every] for name, every in table["found"].items()
            }
        body = pickle.dumps(table)
        path.write_bytes(data[:start] + digest(body) + body)
    else:
        middle = len(data) // 2
        path.write_bytes(
            {
                "empty": b"",
                "half": data[:middle],
                "flipped": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :],
                "foreign": data.replace(_own(), b"0" * (len(_own()) - 1) + b"\n"),
                "text": b"hello\n",
            }[damage]
        )
    assert in_process() == expected
    assert in_process() == expected
    assert not (project / "boom").exists()


def test_several_at_once_and_some_killed(project: Path) -> None:
    expected = run(project, "--no-cache")
    command = [sys.executable, "-m", "ctxlint", "--isolated", "--select", "ALL", "--output-format", "json", "."]
    for round_ in range(2):
        shutil.rmtree(project / ".ctxlint_cache", ignore_errors=True)
        running = [subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, text=True) for _ in range(4)]
        time.sleep(0.3 + 0.4 * round_)
        running[0].kill()
        outputs = [each.communicate()[0] for each in running[1:]]
        running[0].communicate()
        assert outputs == [expected[1]] * 3
    assert run(project) == expected
    assert run(project) == expected


def test_a_folder_that_cannot_be_written_to(project: Path) -> None:
    (project / ".ctxlint_cache").write_text("in the way")
    assert run(project) == run(project, "--no-cache")
    assert (project / ".ctxlint_cache").read_text() == "in the way"


def test_old_entries_go(project: Path, in_process: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    in_process()
    (project / "use.py").unlink()
    now = time.time()
    monkeypatch.setattr("ctxlint.cache.store.time.time", lambda: now + 31 * 86_400)
    in_process()
    assert b"use.py" not in (project / ".ctxlint_cache" / "results.bin").read_bytes()


def test_what_is_shown_of_findings_is_the_same(in_process: Callable[..., str]) -> None:
    for options in (("--output-format", "full"), ("--output-format", "sarif"), ("--statistics",)):
        expected = in_process("--no-cache", *options)
        in_process(*options)
        assert in_process(*options) == expected
