"""Untrusted files: problems are reported, do not affect other files, and cost little."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import ctxlint
from ctxlint.cli import main
from ctxlint.config.settings import Settings
from ctxlint.run.lint_file import lint_bytes
from ctxlint.source import reading
from tests.growth import is_linear

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Run = Callable[..., tuple[int, str]]

FUNCTION = """\
import torch


class Double(torch.autograd.Function):
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2
"""
NAMES = "".join(f"a{at}," for at in range(3_000))
FOUND = "a.py:5:9: CTX101"
BASELINE = ".ctxlint-baseline.json"
DIGITS = "1" * 5000


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    Path(".git").mkdir()
    Path("a.py").write_text(FUNCTION)


@pytest.fixture(autouse=True)
def _soon() -> Iterator[None]:
    """Fail a test that waits for a pipe or does not terminate."""

    def give_up(*_: object) -> None:
        raise TimeoutError

    if sys.platform == "win32":
        yield
        return
    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(100)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """Lint the current folder in this process; return the exit code and the output."""

    def runs(*arguments: str) -> tuple[int, str]:
        try:
            code = main(["--no-cache", "--output-format", "concise", *arguments])
        except SystemExit as exit_:
            code = int(str(exit_.code))
        captured = capfd.readouterr()
        assert "bug in ctxlint" not in captured.err + captured.out
        return code, captured.err + captured.out

    return runs


def baseline(**record: Any) -> str:
    """A baseline with one finding."""
    found = {"code": "CTX203", "scope": "Double", "statement": "0", "count": 1, **record}
    return json.dumps({"version": 1, "files": {"a.py": [found]}})


def notebook(*cells: str, **more: Any) -> str:
    """A notebook with these code cells."""
    code = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": cell} for cell in cells]
    return json.dumps({"nbformat": 4, "metadata": {}, "cells": code, **more})


# ---------------------------------------------------------------------------------------------------------------------
# What is not a regular file


SPECIAL = ["pipe", "device"]


def plant(kind: str, path: str) -> None:
    if kind == "pipe":
        if sys.platform == "win32":
            pytest.skip("Windows has no named pipes in folders")
        os.mkfifo(path)
    else:
        Path(path).symlink_to("/dev/zero")


@pytest.mark.parametrize("kind", SPECIAL)
@pytest.mark.parametrize(
    "path", ["ctxlint.toml", "pyproject.toml", "setup.cfg", "requirements.txt", ".gitignore", ".git/info", "b.py"]
)
def test_what_is_no_file_is_not_read(run: Run, kind: str, path: str) -> None:
    Path("setup.py").write_text("")
    plant(kind, path)
    code, out = run(".")
    assert code == 1
    assert FOUND in out


@pytest.mark.parametrize("kind", SPECIAL)
@pytest.mark.parametrize(
    ("path", "arguments", "message"),
    [
        (BASELINE, ["."], f"{BASELINE}: cannot be read: Not a regular file"),
        ("arguments", ["@arguments"], "@arguments: Not a regular file"),
        ("c.toml", ["--config", "c.toml", "."], "--config: no such file: c.toml"),
    ],
)
def test_what_should_be_a_file_and_is_none(run: Run, kind: str, path: str, arguments: list[str], message: str) -> None:
    plant(kind, path)
    code, out = run(*arguments)
    assert code == 2
    assert message in out


@pytest.mark.skipif(sys.platform == "win32", reason="no path is that long")
def test_folders_nest_deeper_than_python_recurses(run: Run, tmp_path: Path) -> None:
    """Also where the deepest is named, so that no settings of a folder above are known yet."""
    depth = sys.getrecursionlimit() + 100
    for _ in range(depth):
        os.mkdir("d")
        os.chdir("d")
    try:
        Path("deep.py").write_text(FUNCTION)
        os.chdir(tmp_path)
        deepest = "d/" * depth
        for path in (".", deepest, f"{deepest}deep.py"):
            code, out = run(path)
            assert (code, f"{deepest}deep.py:5:9: CTX101" in out) == (1, True)
        Path("ctxlint.toml").write_text('ignore = ["CTX1"]\n')
        assert run(deepest)[0] == 0
        os.chdir(deepest)
        os.remove("deep.py")
    finally:
        while Path.cwd() != tmp_path:  # the removal of temporary folders is recursive
            os.chdir("..")
            os.rmdir("d")


def test_one_that_is_extended_is_no_file(run: Run) -> None:
    plant("device", "b.toml")
    Path("ctxlint.toml").write_text("extend = 'b.toml'")
    message = "ctxlint: error: ctxlint.toml:1: `extend`: b.toml: cannot be read: Not a regular file\n"
    assert run(".") == (2, message)


@pytest.mark.parametrize("kind", SPECIAL)
def test_what_is_named_and_no_file_is_said(run: Run, kind: str) -> None:
    plant(kind, "b.py")
    code, out = run("a.py", "b.py")
    assert code == 1
    assert FOUND in out
    assert "b.py:1:1: CTX902 Not a regular file." in out


LONG_CHAINS = {
    "of values that hold values": ("a0 = x", "a{} = a{}.t().contiguous()", "ctx.kept = a900"),
    "of names that a rule follows": ("a0 = x * 2", "a{} = a{} + a0", "return a900 * grad_output * grad_output"),
}


@pytest.mark.parametrize("name", LONG_CHAINS)
def test_a_chain_too_long_for_one_analysis_leaves_the_other_classes(run: Run, name: str) -> None:
    """Python gives up in it: only its class is not checked in full, as the finding states."""
    first, step, last = LONG_CHAINS[name]
    chain = [first, *(step.format(at + 1, at) for at in range(900)), last]
    place = "        ctx.save_for_backward(x)\n" if "grad_output" in last else "        return x * 2\n"
    saved = "        (x,) = ctx.saved_tensors\n" * ("grad_output" in last)
    lines = saved + "".join(f"        {each}\n" for each in chain)
    long = FUNCTION.replace("Double", "Long").replace("    def forward", "    @staticmethod\n    def forward")
    if saved:
        long = long.replace("        return x * 2\n", f"{place}        return x * 2\n")
        long = long.replace("        return grad_output * 2\n", lines)
    else:
        long = long.replace("        return x * 2\n", lines + place)
    Path("a.py").write_text(f"{FUNCTION}\n\n{long}")
    code, out = run(".")
    assert (code, "CTX901" in out) == (1, False)
    assert FOUND in out
    assert "a.py:16:7: CTX903 `Long` is too complex to analyse; it is not checked in full." in out


# ---------------------------------------------------------------------------------------------------------------------
# What is too large


def test_a_file_that_is_too_large_is_said(run: Run) -> None:
    with Path("b.py").open("wb") as file:
        file.truncate(reading.MOST_BYTES + 1)
    code, out = run(".")
    assert code == 1
    assert FOUND in out
    assert "b.py:1:1: CTX902 Larger than 100 MB, the most that ctxlint reads." in out


@pytest.mark.parametrize(
    ("path", "size", "arguments"),
    [
        ("ctxlint.toml", "1 MB", ["."]),
        ("pyproject.toml", "1 MB", ["."]),
        (BASELINE, "50 MB", ["."]),
        ("arguments", "100 MB", ["@arguments"]),
    ],
)
def test_a_file_for_ctxlint_that_is_too_large(run: Run, path: str, size: str, arguments: list[str]) -> None:
    with Path(path).open("wb") as file:
        file.truncate(int(size.split(maxsplit=1)[0]) * 1_000_000 + 1)
    code, out = run(*arguments)
    assert code == 2
    assert f"Larger than {size}, the most that ctxlint reads" in out


def test_a_file_that_is_too_large_to_matter(run: Run) -> None:
    Path("setup.py").write_text("")
    for name in ("requirements.txt", "setup.cfg", ".gitignore"):
        with Path(name).open("wb") as file:
            file.truncate(5_000_000)
    assert FOUND in run(".")[1]


def test_a_file_that_grows_while_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = iter([b"x" * 10, b"x" * 10, b"x" * 10, b""])
    monkeypatch.setattr(os, "read", lambda *_: next(pieces))
    with pytest.raises(reading.Unreadable, match="Larger than"):
        reading.read_bytes("a.py", most=25)


def test_standard_input_that_does_not_end(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_BYTES", 1000)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(FUNCTION.encode() * 100)))
    message = "ctxlint: error: - (standard input): Larger than 100 MB, the most that ctxlint reads\n"
    assert run("--fix", "-") == (2, message)


def test_explained_standard_input_that_does_not_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reading, "MOST_BYTES", 1000)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(FUNCTION.encode() * 100)))
    assert main(["explain", "-"]) == 2
    assert capsys.readouterr().err == "ctxlint: error: -: Larger than 100 MB, the most that ctxlint reads\n"


LONG = f"{FUNCTION}\nx = '{'x' * reading.MOST_CHARACTERS}'\n"
TOO_LONG = "The code has more than 2,000,000 characters, the most that ctxlint analyses."


def test_code_that_is_too_long_is_said(run: Run) -> None:
    Path("b.py").write_text(LONG)
    Path("c.ipynb").write_text(notebook(LONG))
    Path("long.py").write_text(f"x = '{'x' * reading.MOST_CHARACTERS}'\n")  # without a Function it does not matter
    code, out = run(".")
    assert code == 1
    assert FOUND in out
    assert f"b.py:1:1: CTX902 {TOO_LONG}\nc.ipynb:1:1: CTX902 {TOO_LONG}\nFound 3 errors." in out


@pytest.mark.parametrize("path", ["a.py", "a.ipynb"])
def test_the_api_holds_to_the_same_limits(path: str) -> None:
    text = LONG if path == "a.py" else notebook(LONG)
    assert [each.message for each in ctxlint.lint_source(text, path)] == [TOO_LONG]
    fixed = ctxlint.fix_source(text, path)
    assert (fixed.text, [each.code for each in fixed.diagnostics], fixed.fixed) == (text, ["CTX902"], {})


# ---------------------------------------------------------------------------------------------------------------------
# What is not in its format


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("ctxlint.toml", "x = " + "[" * 100_000, "ctxlint.toml: it is nested too deeply"),
        ("ctxlint.toml", "x = " + "{a = " * 100_000, "ctxlint.toml: it is nested too deeply"),
        ("ctxlint.toml", f"x = {DIGITS}", "ctxlint.toml: not valid TOML: Exceeds the limit"),
        ("ctxlint.toml", "x." * 40_000 + "y = 1", "ctxlint.toml: a key has more than 100 parts"),
        ("ctxlint.toml", "[" + "x . " * 40_000 + "y]", "ctxlint.toml: a key has more than 100 parts"),
        ("ctxlint.toml", "extend = 'a\\u0000b'".replace("'", '"'), "cannot be read: embedded null byte"),
        ("ctxlint.toml", f'required-version = ">={DIGITS}"', "`required-version`: expected at most 1000 characters"),
        ("ctxlint.toml", f'target-torch = ">={DIGITS}"', "`target-torch`: expected at most 50 comparisons"),
        ("ctxlint.toml", f"extend-exclude = {['a'] * 1001}", "expected at most 1000 globs, got 1001"),
        ("ctxlint.toml", f"exclude = ['{'a' * 1001}']", "expected globs of at most 1000 characters, got one of 1001"),
        ("ctxlint.toml", f"exclude = ['{'{a,b}' * 10}']", "expand to more than 1000 globs"),
        ("ctxlint.toml", "[per-file-ignores]\n'" + "{a,b}" * 10 + "' = ['ALL']", "expand to more than 1000 globs"),
        (BASELINE, "[" * 100_000, f"{BASELINE}: it is nested too deeply"),
        (BASELINE, '{"version": ' + DIGITS + "}", f"{BASELINE}: not a baseline of ctxlint"),
        (BASELINE, baseline(count=1.5), f"{BASELINE}: not a baseline of ctxlint: a count is a whole number"),
        (BASELINE, baseline(count=-1), f"{BASELINE}: not a baseline of ctxlint: a count is a whole number"),
        (BASELINE, baseline(count=True), f"{BASELINE}: not a baseline of ctxlint: a count is a whole number"),
        (BASELINE, baseline(count=7).replace("7", "1e999"), f"{BASELINE}: not a baseline of ctxlint"),
        (BASELINE, baseline(count=7).replace("7", DIGITS), f"{BASELINE}: not a baseline of ctxlint"),
    ],
)
def test_a_mistake_is_said_with_its_place(run: Run, path: str, text: str, message: str) -> None:
    Path(path).write_text(text)
    code, out = run(".")
    assert code == 2
    assert out.startswith("ctxlint: error: ")
    assert message in out


def test_bytes_that_are_no_text(run: Run) -> None:
    Path("arguments").write_bytes(b"a.py\n\xff\n")
    assert run("@arguments") == (2, "ctxlint: error: @arguments: not UTF-8: invalid start byte at byte 5\n")
    Path(BASELINE).write_bytes(b"\xff")
    assert run(".") == (2, f"ctxlint: error: {BASELINE}: not UTF-8: invalid start byte at byte 0\n")


def test_names_with_null_bytes(run: Run) -> None:
    Path("arguments").write_bytes(b"b\0.py\na.py\n")
    code, out = run("@arguments")
    assert code == 1
    assert FOUND in out
    assert "CTX902 No such file or directory." in out


def test_many_files_that_extend_each_other(run: Run) -> None:
    Path("ctxlint.toml").write_text("extend = '0.toml'")
    for number in range(1000):
        Path(f"{number}.toml").write_text(f"extend = '{number + 1}.toml'")
    assert run(".") == (2, "ctxlint: error: 18.toml:1: more than 20 files extend each other\n")


def test_a_project_whose_requirements_make_no_sense(run: Run) -> None:
    for text in (
        f'[tool.poetry.dependencies]\ntorch = "^{DIGITS}"',
        f'[project]\ndependencies = ["torch>={DIGITS}"]',
        f'[project]\ndependencies = ["torch>=2.0,{",".join(f"!=2.{number}" for number in range(1000))}"]',
        "[project]\ndependencies = " + "[" * 10_000,
    ):
        Path("pyproject.toml").write_text(text)
        assert FOUND in run(".")[1]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"autograd": "Function", "nbformat": ' + "[" * 100_000, "it is nested too deeply"),
        ('{"autograd": "Function", "x": [' + "1," * 5_000_000 + "1]}", "it holds more than 5,000,000 values"),
        ('{"autograd": "Function", "nbformat": true}', "its JSON has no nbformat"),
        ('{"autograd": "Function", "nbformat": ' + DIGITS + "}", "its JSON has no nbformat"),
    ],
)
def test_a_notebook_that_is_none(run: Run, text: str, reason: str) -> None:
    Path("b.ipynb").write_text(text)
    code, out = run(".")
    assert code == 1
    assert FOUND in out
    assert f"b.ipynb:1:1: CTX902 The file is not a notebook: {reason}." in out


def test_a_number_in_a_notebook_that_no_computer_counts_to(run: Run) -> None:
    Path("b.ipynb").write_text(notebook(FUNCTION, counted=0).replace('"counted": 0', f'"counted": {DIGITS}'))
    assert "b.ipynb:cell 1:5:9: CTX101" in run(".")[1]


@pytest.mark.parametrize("times", ["100_000_000", "0xffffffffffffffffff", "-100_000_000"])
def test_a_number_of_gradients_that_no_memory_holds(run: Run, times: str) -> None:
    code = FUNCTION.replace("return grad_output * 2", f"return (*(None,) * {times}, *(None,) * {times})")
    Path("b.py").write_text(code)
    assert "b.py:5:9: CTX101" in run("b.py", "--select", "ALL")[1]


@pytest.mark.parametrize("display", ["{%s}", "dict(%s)"])
def test_a_dict_of_many_keys(run: Run, display: str) -> None:
    items = ", ".join(f"k{at}=x" if "dict" in display else f'"k{at}": x' for at in range(2_500))
    code = FUNCTION.replace("return x * 2", f"z = {display % items}\n        return z['k7']")
    Path("b.py").write_text(code)
    assert "b.py:5:9: CTX101" in run("b.py", "--select", "ALL")[1]


@pytest.mark.parametrize("name", ["a.py", "gone.py"])
def test_a_count_in_a_baseline_costs_nothing(run: Run, name: str) -> None:
    Path(BASELINE).write_text(baseline(count=10_000_000_000).replace("a.py", name))
    code, out = run(".")
    assert code == 1
    assert f"{name}: stale entry: CTX203 in `Double` (10000000000 times)\n" in out
    assert "has 10000000000 stale entries" in out
    assert "Removed 10000000000 findings" in run("--prune-baseline", ".")[1]


# ---------------------------------------------------------------------------------------------------------------------
# What hides that it is a Function


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("autograd", "\uff41utograd"),
        ("Function", "\U0001d405unction"),
        ("autograd", "aut\u2092grad"),
        ("g", "\U0001d524"),
    ],
)
def test_names_that_only_look_different_to_people(run: Run, old: str, new: str) -> None:
    text = FUNCTION.replace(old, new)
    Path("b.py").write_text(text, encoding="utf-8")
    Path("c.ipynb").write_text(notebook(text), encoding="utf-8")
    code, out = run(".")
    assert code == 1
    message = "CTX902 The code spells `autograd` with lookalike characters"
    assert f"b.py:1:1: {message}" in out
    assert f"c.ipynb:1:1: {message}" in out
    assert [each.code for each in ctxlint.lint_source(text)] == ["CTX902"]


def test_escapes_in_a_notebook_hide_nothing(run: Run) -> None:
    Path("b.ipynb").write_text(notebook(FUNCTION).replace("autograd", "\\u0061utograd"))
    assert "b.ipynb:cell 1:5:9: CTX101" in run(".")[1]


@pytest.mark.parametrize(
    ("encoding", "hidden"),
    [("utf-7", "+AGE-utograd"), ("utf_7", "+AGEAdQB0AG8-grad"), ("unicode_escape", "\\x61utograd")],
)
def test_an_encoding_that_spells_letters_in_others(encoding: str, hidden: str) -> None:
    data = f"# coding: {encoding}\n{FUNCTION.replace('autograd', hidden)}".encode()
    assert "torch.autograd.Function" in data.decode(encoding)
    (found,) = lint_bytes("a.py", data, Settings()).diagnostics
    assert found.code == "CTX902"


# ---------------------------------------------------------------------------------------------------------------------
# What takes time


def test_a_notebook_of_many_cells() -> None:
    def work(size: int, cell: str) -> Callable[[], object]:
        text = notebook(FUNCTION, *[cell] * size)
        return lambda: ctxlint.lint_source(text, "a.ipynb")

    assert is_linear(lambda size: work(size, "x = 1"), 500)
    assert is_linear(lambda size: work(size, "x = ("), 500)


VIEW = """

class View{0}(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view(-1)

    @staticmethod
    def backward(ctx, grad):
        return grad.view(2, 3)


class Layer{0}(torch.nn.Module):
    def __init__(self):
        self.base = Layer{1}()

    def forward(self, x):
        return View{0}.apply(x)
"""


def test_many_modules_that_return_views() -> None:
    def work(size: int) -> Callable[[], object]:
        text = "import torch\n" + "".join(VIEW.format(at, at * 7 % size) for at in range(size))
        return lambda: ctxlint.lint_source(text)

    assert is_linear(work, 20)


LENDING = """import torch
from kernels import fill


class Filled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, out):
        fill(x, out)
        return out

    @staticmethod
    def backward(ctx, grad):
        return grad, None


class Lending(torch.nn.Module):
    def __init__(self):
        self.out = torch.empty(2)

    def forward(self, x):
        return Filled.apply(x, self.out)
"""


@pytest.mark.parametrize("more", ["\n    def run{0}(self, x):\n", ""], ids=["methods", "calls"])
def test_many_calls_that_lend_memory(more: str) -> None:
    def work(size: int) -> Callable[[], object]:
        call = "        y{0} = Filled.apply(x, self.out)\n"
        head = LENDING if more else LENDING.replace("        return Filled.apply(x, self.out)\n", "        x = x\n")
        text = head + "".join((more + call).format(at) for at in range(size))
        return lambda: ctxlint.lint_source(text)

    assert is_linear(work, 20)


@pytest.mark.parametrize(
    "line",
    [
        "x = 1 1\n",
        "x = (\n",
        "# ctxlint: ignore[CTX101]\n",
        "x = 1  # ctxlint: ignore[CTX101]\n",
        "x = 1  # noqa: CTX101\n",
        "# ctxlint: ignore[CTX101]\n@x\n",
        "'\\\n",
        "'''\n''' # noqa\n",
        "f'''{\n",
        "x = '''\n",
    ],
)
def test_a_file_of_many_lines(line: str) -> None:
    settings = Settings(extend_select=("CTX910",))

    def work(size: int) -> Callable[[], object]:
        text = FUNCTION + line * size
        return lambda: ctxlint.lint_source(text, "a.py", settings)

    assert is_linear(work, 300)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.py", FUNCTION + "# noqa" * 100_000),
        ("b.py", "ctx\n" + "def f(\n" * 200_000),
        ("b.py", "# coding: punycode\nautograd Function" + "a" * 100_000 + "-" + "abcz" * 100_000),
        ("b.py", "# \uff41utograd Function" + "\u0315\u0316" * 200_000),
        ("b.py", FUNCTION + "a" + "\u0315\u0316" * 200_000 + " = 1"),
        ("a.py", FUNCTION + "A0 = Double\n" + "".join(f"A{at + 1} = A{at}\n" for at in range(10_000)) + "A9.apply(1)"),
        ("a.py", f"{FUNCTION.replace('x)', NAMES + ')')}\nDouble.apply({NAMES.replace(',', '=1,')})\n"),
        ("setup.cfg", "# torch\n[a]\na" + "\n b" * 100_000),
        ("setup.cfg", "# torch\n[a]\n" + "=x\n" * 100_000),
        ("environment.yml", ("- pytorch=" + "1," * 480 + "\n") * 900),
        ("ctxlint.toml", "extend-select = [" + '"CTX2",' * 90_000 + "]"),
        ("ctxlint.toml", "extend-selec" + "t" * 900_000 + " = 1"),
        (BASELINE, '{"version": 1, "files": {' + ",".join(f'"{at}": []' for at in range(100_000)) + "}}"),
    ],
)
def test_a_file_whose_parts_are_not_compared_with_each_other(run: Run, path: str, text: str) -> None:
    Path(path).write_text(text, encoding="utf-8", newline="")
    start = time.process_time()
    out = run(".")[1]
    assert FOUND in out or "unknown key" in out
    assert time.process_time() - start < 4


@pytest.mark.parametrize("code", ["import torch\nx = {}\nclass A(torch.autograd.Function): pass", "x = '{}'"])
def test_more_combining_characters_than_any_text_has(code: str) -> None:
    marks = "\u0315\u0316" * 500
    few, many = (
        ctxlint.lint_source(f"{FUNCTION}\n{code.format('a' + each)}\n") for each in (marks[1:], marks + marks[:1])
    )
    assert "CTX902" not in {each.code for each in few}
    assert len(ctxlint.lint_source(FUNCTION + "x = '" + "\u4e2d" * 2000 + "'\n")) == 1
    assert [each.message for each in many] == [
        "The code has more than 1,000 combining characters in sequence; ctxlint does not analyse it."
    ]


def test_an_encoding_for_the_names_of_hosts() -> None:
    (found,) = lint_bytes("a.py", f"# coding: punycode\n{FUNCTION}".encode("punycode"), Settings()).diagnostics
    assert found.message == "The file declares punycode, which is not an encoding for source code."


def test_a_long_string_with_many_comments_at_its_end() -> None:
    def work(size: int) -> Callable[[], object]:
        text = f"{FUNCTION}x = '''{chr(10) * size}''' {'# noqa: CTX101 ' * size}\n"
        return lambda: ctxlint.lint_source(text)

    assert is_linear(work, 300)
