"""The real flake8 with the plugin: the findings of the command, and flake8's options that select among them."""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from flake8.main.cli import main

from ctxlint.flake8 import Plugin
from ctxlint.rule_names import opt_in_codes
from ctxlint.rules import all_rules
from tests import whole_tree

STASH = """\
import torch


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.y = y
        return y

    @staticmethod
    def backward(context, grad_output):
        return grad_output * context.y
"""
"""A CTX301 on line 8, and a CTX109, which is off by default, on line 12."""

Place = tuple[str, int, int, str]


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Plugin, "settings", Plugin.settings)  # flake8 sets it from its options


def flake8(*arguments: str, stdin: str | None = None, select: str = "--select=CTX,E9") -> list[Place]:
    """What flake8 reports in a process of its own, sorted; it must not fail."""
    command = [sys.executable, "-m", "flake8", *_options(arguments, select)]
    done = subprocess.run(command, input=stdin, capture_output=True, check=False, encoding="utf-8")
    assert done.stderr == ""
    assert done.returncode == (1 if done.stdout else 0)
    return _places(done.stdout)


def flake8_here(*arguments: str, select: str = "") -> list[Place]:
    """What flake8 reports in this process, which takes a tenth of the time."""
    output = io.BytesIO()
    with contextlib.redirect_stdout(io.TextIOWrapper(output, encoding="utf-8", write_through=True)):
        assert main(_options(arguments, select)) == (1 if output.getvalue() else 0)
        return _places(output.getvalue().decode())


def _options(arguments: tuple[str, ...], select: str) -> list[str]:
    own = any(each.startswith("--config") for each in arguments)
    return [*([] if own else ["--isolated"]), *([select] if select else []), *arguments]


def _places(output: str) -> list[Place]:
    places = []
    for line in output.rstrip("\n").split("\n") if output else []:
        found = re.fullmatch(r"(.*?):(\d+):(\d+): (\w+ .*)", line)
        assert found, line
        places.append((found[1].removeprefix("./"), int(found[2]), int(found[3]), found[4]))
    return sorted(places)


def ctxlint(*arguments: str) -> list[Place]:
    """What the command reports, sorted."""
    command = [sys.executable, "-m", "ctxlint", "--isolated", "--output-format=json", *arguments]
    return _of_command(subprocess.run(command, capture_output=True, check=False).stdout)


def _of_command(output: bytes) -> list[Place]:
    here = Path.cwd()
    return sorted(
        (
            Path(each["filename"]).relative_to(here).as_posix(),
            each["location"]["row"],
            each["location"]["column"],
            f"{each['code']} {each['message']}",
        )
        for each in json.loads(output)
    )


def _without(path: Path) -> bool:
    """Whether flake8 leaves a file out: it wants what this Python can parse, and reads CTX910's comments in its way."""
    try:
        compile(path.read_bytes(), path, "exec", dont_inherit=True, flags=0x400)
    except SyntaxError:
        return True
    return path.parent.name.startswith("CTX910")


# ---------------------------------------------------------------------------------------------------------------------
# The same findings


def test_all_fixtures_one_process_and_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(whole_tree.tree())
    without = [path.as_posix() for path in Path().glob("*/*.py*") if _without(path)]
    wanted = [each for each in _of_command(whole_tree.found()[0]) if each[0] not in without]
    assert len({code for _, _, _, code in wanted}) > 50
    named = ",".join(["--select=CTX,E9", *opt_in_codes()])
    options = ("--max-line-length=999", "--filename=*.py,*.pyi", f"--exclude={','.join(without)}")
    assert flake8("-j2", *options, ".", select=named) == wanted
    assert flake8("-j1", *options, "broken", select=named) == [each for each in wanted if each[0].startswith("broken/")]


def test_default_rules_are_the_same() -> None:
    Path("a.py").write_text(STASH, encoding="utf-8")
    wanted = ctxlint("a.py")
    assert [(line, code[:6]) for _, line, _, code in wanted] == [(8, "CTX301")]
    assert flake8("a.py", select="") == wanted


def test_standard_input() -> None:
    Path("a.py").write_text(STASH, encoding="utf-8")
    wanted = [("stdin", *rest) for _, *rest in ctxlint("a.py")]
    assert flake8("-", stdin=STASH, select="") == wanted
    assert flake8("--stdin-display-name=a.py", "-", stdin=STASH, select="") == ctxlint("a.py")


@pytest.mark.parametrize(
    ("start", "ending"),
    [("\ufeff", "\r\n"), ("", "\r"), ("# -*- coding: latin-1 -*-\n", "\n"), ("x = '\x0c\u2028'\n\x0c\n", "\r\n")],
)
def test_any_encoding_and_line_ending(start: str, ending: str) -> None:
    encoding = "latin-1" if "latin-1" in start else "utf-8"
    text = (start + STASH.replace("y = x.exp()", "y = x.exp() + len('\u00e9')")).replace("\n", ending)
    Path("a.py").write_bytes(text.encode(encoding))
    assert flake8_here("a.py", select="--select=CTX3") == ctxlint("a.py") != []


# ---------------------------------------------------------------------------------------------------------------------
# flake8's ways


def _codes(*arguments: str, select: str = "") -> list[str]:
    return [code[:6] for _, _, _, code in flake8_here("a.py", *arguments, select=select)]


@pytest.mark.parametrize(
    ("arguments", "codes"),
    [
        ([], ["CTX301"]),
        (["--extend-select=CTX109"], ["CTX301", "CTX109"]),
        (["--extend-select=CTX1"], ["CTX301"]),
        (["--select=CTX"], ["CTX301"]),
        (["--select=CTX,CTX109"], ["CTX301", "CTX109"]),
        (["--select=CTX109"], ["CTX109"]),
        (["--select=E9"], []),
        (["--ignore=CTX301"], []),
        (["--ignore=E501"], ["CTX301"]),
        (["--extend-ignore=CTX3"], []),
        (["--per-file-ignores=a.py:CTX301"], []),
    ],
)
def test_flake8_chooses_the_rules(arguments: list[str], codes: list[str]) -> None:
    Path("a.py").write_text(STASH, encoding="utf-8")
    assert _codes(*arguments) == codes


def test_rules_off_by_default_are_known_without_importing_them() -> None:
    assert opt_in_codes() == tuple(rule.code for rule in all_rules() if not rule.default)


@pytest.mark.parametrize("comment", ["# noqa", "# noqa: CTX301", "# noqa:CTX3 for a reason"])
def test_noqa_is_left_to_flake8(comment: str) -> None:
    Path("a.py").write_text(STASH.replace("ctx.y = y", f"ctx.y = y  {comment}"), encoding="utf-8")
    assert _codes() == []
    assert _codes("--disable-noqa") == ["CTX301"]


def test_the_plugin_itself_honours_no_noqa() -> None:
    text = STASH.replace("ctx.y = y", "ctx.y = y  # noqa")
    plugin = Plugin(compile("", "", "exec", flags=0x400), text.splitlines(keepends=True), "a.py")
    assert (8, 8, "CTX301") in [(line, column, text[:6]) for line, column, text, _ in plugin.run()]


def test_comments_that_flake8_does_not_know_are_honoured() -> None:
    for text in (STASH.replace("ctx.y = y", "ctx.y = y  # ctxlint: ignore[CTX301]"), f"# ctxlint: noqa\n{STASH}"):
        Path("a.py").write_text(text, encoding="utf-8")
        assert _codes() == []
        assert _codes("--disable-noqa") == ["CTX301"]


def test_options_in_a_configuration_file_of_flake8() -> None:
    text = "from mylib import Base\n\nimport torch.autograd  # Function\n\n\n" + STASH.split("\n\n\n")[1].replace(
        "torch.autograd.Function", "Base"
    )
    Path("a.py").write_text(text, encoding="utf-8")
    Path(".flake8").write_text("[flake8]\nctxlint-extra-bases =\n    mylib.Base,\n    other.Base\n", encoding="utf-8")
    assert _codes(select="--select=CTX") == []
    assert _codes("--config=.flake8", select="--select=CTX") == ["CTX301"]


def test_a_wrong_version_is_refused() -> None:
    command = [sys.executable, "-m", "flake8", "--isolated", "--ctxlint-target-torch=new", "a.py"]
    done = subprocess.run(command, capture_output=True, check=False, encoding="utf-8")
    assert done.returncode == 2
    assert 'expected a version such as "2.4" or a range such as ">=2.1,<2.7", got "new"' in done.stderr


def test_flake8_speaks_of_code_that_does_not_parse() -> None:
    Path("a.py").write_text(STASH + "\ndef f(:\n", encoding="utf-8")
    assert [code[:4] for _, _, _, code in flake8_here("a.py", select="--select=CTX,E999")] == ["E999"]


def test_nothing_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr("ctxlint.run.lint_file.check_source", fails)
    plugin = Plugin(compile("", "", "exec", flags=0x400), [STASH], "a.py")
    [(line, column, text, _)] = plugin.run()
    assert (line, column) == (1, 0)
    assert "ZeroDivisionError" in text
    assert text.startswith("CTX900 ")
