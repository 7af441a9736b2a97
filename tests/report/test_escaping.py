"""Text from a checkout is escaped: it cannot control terminals, logs or CI systems."""

from __future__ import annotations

import json
import os
import re
import sys
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from ctxlint.cli import main
from ctxlint.config.settings import FORMATS
from ctxlint.report.visible import visible
from tests.hostile.checkout import BROKEN, ODD_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[[list[str]], tuple[int, str]]

_ACTIVE = "\x1b]0;title\x07\x9b31m\u202e##[stop-commands]token ##vso[task.complete result=Succeeded]"
_QUOTED = "\x1b\u202e##["
_CODE = BROKEN.replace("return grad_output", f"return '{_QUOTED}' * grad_output").replace(
    "scale\n\n\n", f"scale  # {_ACTIVE}\n\n\n"
)
_COMMANDS = {"github": "::error ", "azure": "##vso[task.logissue "}
_JSON = ("json", "json-lines", "gitlab", "rdjson", "sarif")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="such names cannot be")


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """The exit code of a command in this process, and what it prints on either stream."""

    def runs(arguments: list[str]) -> tuple[int, str]:
        code = main(arguments)
        return code, "".join(capfd.readouterr())

    return runs


@pytest.fixture(autouse=True)
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "checkout"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in ("GITHUB_ACTIONS", "TF_BUILD", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name in ODD_NAMES:
        (folder / name).write_text(_CODE, encoding="utf-8")
    return folder


def _assert_harmless(output: str, command: str = "") -> None:
    """``command`` is the pattern of lines that the reader treats as commands."""
    for line in output.split("\n"):
        rest = line[len(command) :] if command and line.startswith(command) else line
        assert rest.isprintable(), ascii(rest)
        assert not re.search(r"^\s*::|##\[|##vso\[", rest), rest


@pytest.mark.parametrize("output_format", FORMATS)
def test_a_report_gives_no_commands_of_its_own(run: Run, checkout: Path, output_format: str) -> None:
    code, output = run(["--no-cache", "--output-format", output_format, "--", ".", *ODD_NAMES])
    assert code == 1
    assert "CTX203" in output
    _assert_harmless(output, _COMMANDS.get(output_format, ""))
    paths = {str(checkout / name) for name in ODD_NAMES}
    if output_format == "json":
        assert {each["filename"] for each in json.loads(output)} == paths
        assert _QUOTED in json.loads(output)[0]["message"]
    elif output_format in _JSON:
        for document in output.splitlines() if output_format == "json-lines" else [output]:
            assert json.loads(document)
    elif output_format == "junit":
        assert len(list(ET.fromstring(output).iter("failure"))) == len(ODD_NAMES)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--statistics"],
        ["--fix-only", "--show-fixes"],
        ["--fix", "--show-fixes"],
        ["--add-noqa"],
        ["--write-baseline"],
        ["-v", "--exclude", "*.py"],
        ["--show-settings"],
        ["--show-files"],
        ["explain"],
        ["explain", "--output-format", "json"],
        ["--", "no\n::such::file.py"],
        ["@no\n::such::file"],
        ["clean", "no\n::such::folder"],
    ],
    ids=" ".join,
)
def test_nor_does_anything_else_that_is_printed(run: Run, arguments: list[str]) -> None:
    _, output = run(arguments)
    assert output
    _assert_harmless(output.replace("\t", ""))


def test_nor_does_what_is_said_of_configuration_files(run: Run, checkout: Path) -> None:
    for number, text in enumerate(('"\\u001b[2J##[x\\n::y" = 1', 'ignore = ["\\u202e\\u009b"]', 'select = "\x1b[2J"')):
        (checkout / "ctxlint.toml").write_text(text, encoding="utf-8")
        code, output = run(["."])
        assert (number, code) == (number, 2)
        _assert_harmless(output)
    (checkout / "ctxlint.toml").write_text(f"extend-exclude = [{json.dumps(_ACTIVE)}]", encoding="utf-8")
    code, output = run(["--show-settings"])
    assert code == 0
    _assert_harmless(output)


def test_nor_do_the_baseline_and_comments(run: Run, checkout: Path) -> None:
    assert run(["--write-baseline"])[0] == 0
    for name in ODD_NAMES:
        (checkout / name).write_text("import torch.autograd.Function  # noqa: CTX\x1b[2J\u202e\n", encoding="utf-8")
    code, output = run(["."])
    assert code == 1
    assert "stale entry" in output
    _assert_harmless(output)


@pytest.mark.parametrize("system", ["GITHUB_ACTIONS", "TF_BUILD"])
def test_a_diff_gives_no_commands_in_the_log_of_ci(
    checkout: Path, system: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    docstring = "        '''\n::stop-commands::x\n\ty\n        '''\n"
    text = _CODE.replace("        return '", f"{docstring}        return '")
    (checkout / "a.py").write_text(text, encoding="utf-8")
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as log, os.fdopen(writer, "w", encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setenv(system, "true")
        main(["--diff", "a.py"])
        stream.close()
        shown = log.read().decode()
    assert "+++ a.py\n" in shown
    assert "\n \ty\n" in shown
    assert "\n \u2236:stop-commands::x\n" in shown
    _assert_harmless(shown.replace("\t", ""))
    for value in ("true", ""):
        monkeypatch.setenv(system, value)
        with (checkout / "patch").open("w", encoding="utf-8") as stream:
            monkeypatch.setattr(sys, "stdout", stream)
            main(["--diff", "a.py"])
        patch = (checkout / "patch").read_text(encoding="utf-8")
        assert _ACTIVE in patch
        assert "\n ::stop-commands::x\n" in patch


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain \u00e9 \u65e5 text", "plain \u00e9 \u65e5 text"),
        ("a\tb", "a    b"),
        ("a\nb\rc\x1b", "a\u240ab\u240dc\u241b"),
        ("\x7f\x9b\u202e\u200b\u2028", "\u2421\ufffd\ufffd\ufffd\ufffd"),
        ("::stop", "\u2236:stop"),
        ("  ::stop", "  \u2236:stop"),
        ("a::b ##x", "a::b ##x"),
        ("a###[b##[c##vso[d", "a#\u266f#[b\u266f#[c\u266f#vso[d"),
    ],
)
def test_visible(text: str, shown: str) -> None:
    assert visible(text) == shown
