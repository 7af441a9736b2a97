"""Which files a run discovers: ``--show-files`` compared with git, on random trees and .gitignore files."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ctxlint.cli import main
from ctxlint.source.discover import DEFAULT_EXCLUDE
from tests import stand_ins
from tests.stand_ins import CANDIDATE

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def shown(capfdbinary: pytest.CaptureFixture[bytes]) -> Shown:
    return Shown(capfdbinary)


class Shown:
    """Asks ``--show-files``; gives names relative to the current folder."""

    def __init__(self, captured: pytest.CaptureFixture[bytes]) -> None:
        self.captured = captured

    def __call__(self, *arguments: str) -> list[str]:
        assert main(["--show-files", *arguments]) == 0
        out, _ = self.captured.readouterr()
        here = os.fsencode(os.getcwd()) + b"/"
        return [os.fsdecode(name) for name in out.removesuffix(b"\n").replace(here, b"").split(b"\n") if name]


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _write(*paths: str, text: str = CANDIDATE) -> None:
    for path in paths:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text)


def _git(*arguments: str, stdin: bytes = b"") -> bytes:
    done = subprocess.run(["git", *arguments], input=stdin, stdout=subprocess.PIPE, check=False)
    assert done.returncode in (0, 1), done
    return done.stdout


def _untracked() -> list[str]:
    """The Python files that git sees and does not ignore."""
    names = _git("ls-files", "--others", "--exclude-standard", "-z").split(b"\0")
    return sorted(os.fsdecode(name) for name in names if name.endswith((b".py", b".pyi", b".pyw", b".ipynb")))


# .gitignore, compared with git

NAMES = ("a", "b", "ab", "build", "x.py", "test_a", "lib-1", "[a]", "é", "a b")
FILES = (*(f"{name}.py" for name in NAMES), "a.pyi", "a.pyw", "a.ipynb", "x.txt", "#a.py", "!b.py", "a.py ", "b.pyi.py")
ATOMS = (
    *NAMES,
    "*",
    "**",
    "a*",
    "*.py",
    "?b*",
    "[ab]*",
    "[!a]*",
    "*a",
    "*.py[i]",
    "[z-a]*",
    "[!b-c]*",
    "a?",
    "*.p[xy]*",
    "a.py",
    "b.py",
    "x.*",
    "\\[a\\]",
    "*b.*",
)


def _pattern(choose: random.Random) -> str:
    """A line of a .gitignore file, usually a sensible one."""
    parts = [choose.choice(ATOMS) for _ in range(choose.choice((1, 1, 1, 2, 2, 3)))]
    pattern = choose.choice(("", "", "", "/")) + "/".join(parts) + choose.choice(("", "", "", "/", "/**", " ", "\\ "))
    return choose.choice(("", "", "", "!")) + choose.choice(
        (pattern,) * 30 + ("# a.py", "", "\\#a.py", "\\!b.py", "  ")
    )


def _plant(choose: random.Random, folder: Path, depth: int) -> None:
    """Fill a folder with files, folders and patterns."""
    folder.mkdir(exist_ok=True)
    for name in choose.sample(FILES, 5):
        (folder / name).write_text("")
    if choose.random() < (1.0 if depth == 0 else 0.4):
        end = choose.choice(("\n", "\n", "\r\n"))
        (folder / ".gitignore").write_bytes(
            (end.join(_pattern(choose) for _ in range(choose.randint(1, 5))) + choose.choice(("", end))).encode()
        )
    if depth < 3:
        for name in choose.sample([*NAMES, "c.py"], 3):
            if not (folder / name).exists():
                _plant(choose, folder / name, depth + 1)


@pytest.mark.parametrize("seed", range(6))
def test_git_leaves_out_the_same_files(shown: Shown, seed: int) -> None:
    choose = random.Random(seed)
    for number in range(2):
        top = Path(f"tree{number}")
        _plant(choose, top, 0)
        with _inside(top):
            _git("init", "-q")
            Path(".git/info/exclude").write_text(_pattern(choose) + "\n")
            assert shown("--isolated", "--exclude", "nothing") == _untracked(), f"tree {number} of seed {seed}"


@pytest.mark.parametrize("seed", range(2))
def test_a_folder_that_is_named_is_walked_by_the_rules_above_it(shown: Shown, seed: int) -> None:
    choose = random.Random(1000 + seed)
    _plant(choose, Path("tree"), 0)
    with _inside(Path("tree")):
        folders = sorted(str(path) for path in Path().rglob("*") if path.is_dir())
        _git("init", "-q")
        untracked = _untracked()
        ignored = _git("check-ignore", "-z", "--stdin", stdin=os.fsencode("\0".join(folders))).split(b"\0")
        walked = [folder for folder in folders if os.fsencode(folder) not in ignored]
        assert walked
        for folder in walked:
            expected = [name for name in untracked if name.startswith(f"{folder}/")]
            assert shown("--isolated", "--exclude", "nothing", f"./{folder}") == expected


@pytest.mark.parametrize(
    "pattern",
    [
        "a/**/",
        "a/**/**/",
        "/**/",
        "**/",
        "**/*/",
        "/**/*/",
        "a/**",
        "a/*/",
        "/*/",
        "*/",
        "*",
        "a/",
        "/a",
        "**/c",
        "a/**/c",
    ],
)
@pytest.mark.parametrize("sign", ["", "*.py\n!"])
def test_patterns_for_folders(shown: Shown, pattern: str, sign: str) -> None:
    _write("f.py", "a/f.py", "a/b/g.py", "a/b/c/h.py", "c/a/b/i.py", ".gitignore")
    _git("init", "-q")
    Path(".gitignore").write_text(f"{sign}{pattern}\n")
    assert shown("--isolated") == _untracked()


def test_what_git_ignores_is_taken_when_it_is_named_or_asked_for(shown: Shown) -> None:
    _git("init", "-q")
    _write("build/a.py", "b.py")
    Path(".gitignore").write_text("build/\n")
    assert shown() == ["b.py"]
    assert shown("build") == ["build/a.py"]
    assert shown("build/a.py") == ["build/a.py"]
    assert shown("--no-respect-gitignore") == ["b.py", "build/a.py"]


def test_gitignore_means_nothing_outside_of_a_repository(shown: Shown) -> None:
    _write("below/a.py", "b.py")
    Path(".gitignore").write_text("*.py\n")
    assert shown("below") == ["below/a.py"]


def test_a_package_of_distributed_code_is_found(shown: Shown) -> None:
    _write("model/dist/__init__.py", "model/dist/all_to_all.py", "venv/a.py")
    assert shown() == ["model/dist/__init__.py", "model/dist/all_to_all.py"]


def test_ruff_excludes_the_same_folders() -> None:
    """Neither ruff nor flake8 excludes ``build``. ``dist`` often is a package here; ``.gitignore`` usually names both."""
    Path("a.py").write_text("")
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--show-settings", "."]
    shown = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    listed = shown.partition("file_resolver.exclude = [")[2].partition("]")[0]
    names = {name.strip().strip('"') for name in listed.split(",")} - {""}
    assert set(DEFAULT_EXCLUDE) == names - {"dist"} | {".ctxlint_cache"}


# Links


def test_a_file_is_read_once_whatever_links_lead_to_it(shown: Shown) -> None:
    _write("m/scaling.py", "outside/other.py")
    for number in range(5):
        Path(f"a{number}").mkdir()
        Path(f"a{number}/scaling.py").symlink_to("../m/scaling.py")
        Path(f"m/link{number}.py").symlink_to(f"../a{number}/scaling.py")
    assert shown("a0", "a1", "a2", "m") == ["m/scaling.py"]
    assert shown("a1/scaling.py", "m") == ["m/scaling.py"]
    assert shown("m/scaling.py", "a1/scaling.py") == ["m/scaling.py"]
    assert shown("a1", "a2", "m/link3.py") == ["a1/scaling.py"]
    assert shown("a3/scaling.py", "./a3/scaling.py") == ["a3/scaling.py"]


def test_a_finding_behind_links_is_said_and_fixed_once(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    stand_ins.install(monkeypatch)
    _write("m/a.py", text=CANDIDATE + "wrong\n")
    _write("ctxlint.toml", "n/ctxlint.toml", text="")
    for name in ("b.py", "n/a.py"):
        Path(name).symlink_to(Path("m/a.py").absolute())
    assert main(["--output-format", "concise", "--quiet", "."]) == 1
    assert capfd.readouterr().out == "m/a.py:2:1: CTX211 [*] `wrong` is found\n"
    assert main(["--output-format", "concise", "--quiet", "n", "m"]) == 1
    assert capfd.readouterr().out.count("CTX211") == 1
    assert main(["--verbose", "--fix", "b.py", "m"]) == 0
    out, err = capfd.readouterr()
    assert out == "Found 1 error (1 fixed, 0 remaining).\n"
    assert "b.py: skipped: a link to a file that is checked under another name\n" in err
    assert Path("b.py").is_symlink()
    assert Path("b.py").read_text() == CANDIDATE + "right\n"


def test_links_to_folders_are_not_followed_and_cycles_do_no_harm(shown: Shown) -> None:
    _write("real/a.py")
    Path("real/up").symlink_to("..")
    Path("real/self.py").symlink_to("self.py")
    Path("again").symlink_to("real")
    Path("folder.py").symlink_to("real")
    Path("nowhere.py").symlink_to("gone.py")
    assert shown() == ["real/a.py"]
    assert shown("again") == ["again/a.py"]
    assert shown("real", "again") == ["real/a.py"]
    assert shown("real/up/real/up/real/a.py", "real/a.py") == ["real/up/real/up/real/a.py"]


def test_a_link_whose_file_is_excluded_is_read(shown: Shown) -> None:
    _write("old/a.py")
    Path("b.py").symlink_to("old/a.py")
    assert shown("--exclude", "old") == ["b.py"]
    assert shown("--exclude", "b.py") == ["old/a.py"]
    assert shown("b.py", "old", "--exclude", "b.py", "--force-exclude") == ["old/a.py"]


# Names and folders that are unusual


def test_odd_names(shown: Shown) -> None:
    odd = [
        os.fsdecode(b"caf\xe9.py"),
        "a\tb.py",
        "a b.py",
        "-q.py",
        "--fix.py",
        "é.py",
        "a\\b.py",
        "'\".py",
        "*.py",
        ".py",
        "[a].py",
    ]
    _write(*odd, "-d/x.py")
    assert shown() == sorted([*odd, "-d/x.py"])
    assert shown("--", *odd) == sorted(odd)
    assert shown("./-d", "./-q.py") == ["-d/x.py", "-q.py"]
    gone = {"[a].py", "a b.py", "a\tb.py", "a\\b.py"}
    assert shown("--exclude", "[[]a].py,a?b.py") == sorted({*odd, "-d/x.py"} - gone)


def test_odd_names_in_a_repository_are_ignored_as_git_does_it(shown: Shown) -> None:
    names = [os.fsdecode(b"caf\xe9.py"), os.fsdecode(b"\xff.py"), "a b.py", "-q.py", "é.py", "new\nline.py", "tab\t.py"]
    _git("init", "-q")
    _write(*names, "kept.py")
    Path(".gitignore").write_bytes(b"caf\xe9.py\n-*\na\\ b.py\n\xc3\xa9.py\nnew*\ntab\t.py\n")
    assert _untracked() == ["kept.py", os.fsdecode(b"\xff.py")]
    assert shown("--isolated") == ["kept.py", os.fsdecode(b"\xff.py")]


def test_a_name_with_a_line_break_is_linted(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    stand_ins.install(monkeypatch)
    _write("a\nb.py", text=CANDIDATE + "wrong\n")
    assert main(["--fix", "--quiet", "."]) == 0
    assert Path("a\nb.py").read_text() == CANDIDATE + "right\n"
    assert capfd.readouterr().out == ""


def test_a_folder_that_cannot_be_listed_is_named_and_the_rest_is_read(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    stand_ins.install(monkeypatch)
    _write("deep/a.py", "z.py", text=CANDIDATE + "plain\n")
    # Too long a path: not even root can list that.
    here = os.getcwd()
    os.chdir("deep")
    for _ in range(20):
        os.mkdir("n" * 250)
        os.chdir("n" * 250)
    os.chdir(here)
    try:
        assert main(["--output-format", "concise", "--verbose", "."]) == 1
    finally:
        shutil.rmtree("deep")
    out, err = capfd.readouterr()
    assert [line.partition(":")[0] for line in out.splitlines()[:2]] == ["deep/a.py", "z.py"]
    assert "skipped: File name too long" in err


# Excludes


def test_force_exclude_leaves_out_what_is_named(shown: Shown) -> None:
    _write("old/a.py", "old/deep/b.py", "new/old.py")
    assert shown("old/deep/b.py", "new", "--exclude", "old") == ["new/old.py", "old/deep/b.py"]
    assert shown("old/deep/b.py", "new", "--exclude", "old", "--force-exclude") == ["new/old.py"]
    assert shown("old", "--exclude", "old") == ["old/a.py", "old/deep/b.py"]
    assert shown("old", "--exclude", "old", "--force-exclude") == []
    assert shown("old", "--exclude", "deep") == ["old/a.py"]


def test_nested_configurations_exclude_below_themselves(shown: Shown) -> None:
    _write("a/x.py", "a/y.py", "a/b/x.py", "a/b/y.py", "x.py")
    _write("ctxlint.toml", text="")
    _write("a/ctxlint.toml", text='exclude = ["y.py"]\n')
    _write("a/b/ctxlint.toml", text='extend-exclude = ["./x.py"]\n')
    assert shown() == ["a/b/y.py", "a/x.py", "x.py"]
    assert shown("a/b/x.py") == ["a/b/x.py"]


def test_one_that_is_missing_does_not_hide_the_others(capfd: pytest.CaptureFixture[str]) -> None:
    _write("a.py")
    assert main(["--output-format", "concise", "gone.py", "a.py", "gone"]) == 1
    out = capfd.readouterr().out
    assert out.splitlines()[:2] == [
        "gone:1:1: CTX902 No such file or directory.",
        "gone.py:1:1: CTX902 No such file or directory.",
    ]


SHEBANGS = {
    "env": "#!/usr/bin/env python3\n",
    "exact": "#! /opt/python/bin/python3.11 -u\n",
    "option": "#!/usr/bin/env -S python -X dev\r\n",
    "pypy": "#!/usr/bin/pypy3\n",
    "uv": "#!/usr/bin/env -S uv run --script\n",
}


def test_scripts_are_found_by_their_first_line(shown: Shown) -> None:
    for name, line in SHEBANGS.items():
        _write(f"bin/{name}", text=line)
    for name, line in {
        "shell": "#!/bin/sh\n# python\n",
        "ruby": "#!/opt/python/bin/ruby\n",
        "text": "python\n",
    }.items():
        _write(f"bin/{name}", text=line)
    _write("bin/env.sh", "bin/.env", "bin/a.py", text="#!/usr/bin/env python3\n")
    Path("bin/empty").touch()
    os.mkfifo("bin/pipe")
    Path("bin/link").symlink_to("env")
    _write("bin/long", text="#!" + "x" * 100_000 + " python")
    found = ["bin/a.py", *(f"bin/{name}" for name in sorted(SHEBANGS))]
    assert shown() == found
    assert shown("--exclude", "env,option") == [each for each in found if each not in ("bin/env", "bin/option")]
    _write(".gitignore", text="uv\n")
    assert "bin/uv" not in shown()


def test_scripts_are_linted(capfd: pytest.CaptureFixture[str]) -> None:
    stand_in = "#!/usr/bin/env python3\nfrom torch.autograd import Function\nclass Exp(Function):\n    pass\n"
    _write("bin/train", text=stand_in)
    assert main(["--isolated", "."]) == 0
    assert capfd.readouterr().out == "All checks passed! (1 Function in 1 file)\n"
