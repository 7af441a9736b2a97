"""The baseline: listed findings are silent even if they move; new ones and stale entries are reported."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ctxlint.cli import main
from tests import stand_ins
from tests.console import passed
from tests.stand_ins import CANDIDATE

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., tuple[int, str, str]]

NAME = ".ctxlint-baseline.json"
CODE = """\
class Exp(Function):
    def forward(ctx, x):
        return wrong(x, 'a')

    def backward(ctx, grad_output):
        return plain(grad_output)
"""


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stand_ins.install(monkeypatch)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command; gives exit code, standard output in the concise format, standard error."""

    def runs(*arguments: str) -> tuple[int, str, str]:
        try:
            code = main(["--output-format=concise", "-j1", *arguments])
        except SystemExit as exit_:
            code = int(str(exit_.code))
        out, err = capsys.readouterr()
        return code, out, err

    return runs


def _write(text: str, path: str = "a.py") -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(CANDIDATE + text, encoding="utf-8")


def _codes(output: str) -> list[str]:
    return [line.split()[1] for line in output.split("\n") if ".py:" in line]


# ---------------------------------------------------------------------------------------------------------------------
# What is listed is silent


def test_what_is_found_now_is_not_reported_any_more(run: Run) -> None:
    _write(CODE)
    assert run("--write-baseline") == (0, "", f"Wrote 2 findings to {NAME}.\n")
    assert run() == (0, passed(1, 1, 2), "")
    assert _codes(run("--no-baseline")[1]) == ["CTX211", "CTX301"]
    assert _codes(run("--isolated")[1]) == ["CTX211", "CTX301"]


@pytest.mark.parametrize(
    "text",
    [
        "\n\n\nx = 1\n" + CODE,
        CODE.replace("'a'", '"a"'),
        CODE.replace("wrong(x, 'a')", "wrong(\n            x,\n            'a',  # a comment\n        )"),
        CODE.replace("return wrong(x, 'a')", "return wrong(x, 'a')  # for now"),
        CODE.replace("return wrong(x, 'a')", "return (\n            wrong(x, 'a')\n        )"),
        CODE.replace("    ", "\t"),
        CODE.replace("\n", "\r\n"),
        "class Other(Function):\n    pass\n\n\n" + CODE,
        CODE.replace("    def backward", "    def jvp(ctx, x):\n        return x\n\n    def backward"),
        "if True:\n" + "".join(f"    {line}\n" for line in CODE.rstrip("\n").split("\n")),
    ],
)
def test_code_can_move_and_be_formatted(run: Run, text: str) -> None:
    _write(CODE)
    run("--write-baseline")
    _write(text)
    assert (run("-q"), run()[1][:18]) == ((0, "", ""), "All checks passed!")


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (CODE + "wrong\n", ["CTX211"]),
        (CODE.replace("Exp", "Log"), ["CTX211", "CTX301"]),
        (CODE.replace("def forward", "def setup_context"), ["CTX211"]),
        (CODE.replace("wrong(x, 'a')", "wrong(x, 'b')"), ["CTX211"]),
        (CODE.replace("return wrong(x, 'a')", "wrong(x, 'a')\n        return wrong(x, 'a')"), ["CTX211"]),
        (CODE.replace("    return wrong(x, 'a')\n", "    return wrong(x, 'a')\n" * 2), ["CTX211"]),
        (CODE.replace("plain", "plain + risky"), ["CTX301", "CTX212"]),
    ],
)
def test_what_is_new_is_reported(run: Run, text: str, codes: list[str]) -> None:
    _write(CODE)
    run("--write-baseline")
    _write(text)
    assert _codes(run()[1]) == codes


def test_the_file_is_sorted_and_relative_and_has_no_line_numbers(run: Run) -> None:
    _write(CODE, "pkg/b.py")
    _write("wrong\nwrong\n")
    run("--write-baseline")
    document = json.loads(Path(NAME).read_text(encoding="utf-8"))
    assert document["version"] == 1
    assert list(document["files"]) == ["a.py", "pkg/b.py"]
    [record] = document["files"]["a.py"]
    assert (record["code"], record["scope"], record["count"]) == ("CTX211", "", 2)
    assert [each["scope"] for each in document["files"]["pkg/b.py"]] == ["Exp.forward", "Exp.backward"]
    before = Path(NAME).read_bytes()
    assert run("--write-baseline")[0] == 0
    assert Path(NAME).read_bytes() == before


def test_it_is_found_from_elsewhere_when_it_lies_beside_the_configuration(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(CODE, "pkg/b.py")
    Path("ctxlint.toml").write_text("", encoding="utf-8")
    run("--write-baseline")
    monkeypatch.chdir("pkg")
    assert run() == run("b.py") == (0, passed(1, 1, 2), "")


def test_it_is_found_from_subfolders_at_the_root(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(".git").mkdir()
    Path(".git/HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    _write(CODE, "pkg/sub/b.py")
    run("--write-baseline")
    monkeypatch.chdir("pkg/sub")
    assert run() == run("b.py") == (0, passed(1, 1, 2), "")
    Path("ctxlint.toml").write_text("", encoding="utf-8")
    assert run() == (0, passed(1, 1, 2), ""), "the nearest one counts, whoever is configured"
    _write("x = 1\n", "b.py")
    assert run("--prune-baseline")[2].startswith("Removed 2 findings from ")
    assert not Path(NAME).exists()
    _write(CODE, "b.py")
    assert run("--write-baseline=" + NAME)[0] == 0
    assert run()[0] == 0


def test_a_baseline_above_the_project_is_none_of_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("project/.git").mkdir(parents=True)
    Path("project/.git/HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    _write(CODE, "project/b.py")
    run("--write-baseline")
    monkeypatch.chdir("project")
    assert run()[0] == 1


def test_the_configuration_and_the_command_line_name_another_file(run: Run) -> None:
    _write(CODE)
    assert run("--write-baseline=known.json") == (0, "", "Wrote 2 findings to known.json.\n")
    assert run()[0] == 1
    assert run("--baseline", "known.json") == (0, passed(1, 1, 2), "")
    Path("ctxlint.toml").write_text('baseline = "known.json"\n', encoding="utf-8")
    assert run() == (0, passed(1, 1, 2), "")


def test_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(CODE)
    run("--write-baseline")
    for name, code in (("a.py", 0), ("b.py", 1)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((CANDIDATE + CODE).encode())))
        assert run("-", "--stdin-filename", name)[0] == code


# ---------------------------------------------------------------------------------------------------------------------
# Fixes, noqa


def test_fixes_leave_known_findings_alone(run: Run) -> None:
    _write(CODE)
    run("--write-baseline")
    _write(CODE + "wrong\n")
    code, out, err = run("--fix")
    assert (code, err) == (0, "")
    assert out == "Found 1 error (1 fixed, 0 remaining).\n"
    assert Path("a.py").read_text(encoding="utf-8") == CANDIDATE + CODE + "right\n"
    assert run("--diff") == (0, "", "")


def test_add_noqa_leaves_known_findings_alone(run: Run) -> None:
    _write(CODE)
    run("--write-baseline")
    _write(CODE + "wrong\n")
    assert run("--add-noqa")[0] == 0
    assert Path("a.py").read_text(encoding="utf-8") == CANDIDATE + CODE + "wrong  # noqa: CTX211\n"


def test_what_a_comment_hides_is_not_listed(run: Run) -> None:
    _write("wrong  # noqa: CTX211\nplain\n")
    assert run("--write-baseline")[2] == f"Wrote 1 finding to {NAME}.\n"


# ---------------------------------------------------------------------------------------------------------------------
# What is gone


def test_what_is_gone_is_said_and_can_be_removed(run: Run) -> None:
    _write(CODE)
    _write("wrong\n", "b.py")
    run("--write-baseline")
    _write(CODE.replace("wrong", "right"))
    code, out, err = run()
    assert (code, out) == (1, ""), "else a finding that comes back would be let in"
    assert err == (
        f"a.py: stale entry: CTX211 in `Exp.forward`\n{NAME} has 1 stale entry; --prune-baseline removes it.\n"
    )
    assert run("-q") == (1, "", err)
    assert run("-s") == (1, "", "")
    assert run("--pass-on-unpruned-baseline") == run("--exit-zero") == (0, "", err)
    assert run("-q", "b.py") == run("-q", "--no-baseline", "--ignore=CTX211,CTX301") == (0, "", "")
    assert run("--prune-baseline") == (0, passed(1, 2, 2), f"Removed 1 finding from {NAME}.\n")
    assert run() == (0, passed(1, 2, 2), "")
    _write(CODE)
    assert _codes(run()[1]) == ["CTX211"]


def test_files_that_are_gone_or_hold_nothing_any_more(run: Run) -> None:
    _write("wrong\n")
    _write("wrong\n", "b.py")
    run("--write-baseline")
    Path("a.py").unlink()
    Path("b.py").write_text("x = 1\n", encoding="utf-8")
    assert run()[2].split("\n")[:2] == ["a.py: stale entry: CTX211", "b.py: stale entry: CTX211"]
    assert run("--prune-baseline")[2] == f"Removed 2 findings from {NAME}.\n"
    assert json.loads(Path(NAME).read_text(encoding="utf-8")) == {"version": 1, "files": {}}


@pytest.mark.parametrize(
    "arguments", [["--select=CTX3"], ["--ignore=CTX211"], ["--per-file-ignores=a.py:CTX2"], ["b.py"]]
)
def test_what_was_not_looked_at_is_not_gone(run: Run, arguments: list[str]) -> None:
    _write("wrong\n")
    _write("x = 1\n", "b.py")
    run("--write-baseline")
    _write("right\n")
    assert run("-q", *arguments) == (0, "", "")
    before = Path(NAME).read_bytes()
    run("--prune-baseline", *arguments)
    assert Path(NAME).read_bytes() == before


def test_nothing_is_gone_from_a_file_that_cannot_be_read(run: Run) -> None:
    _write("wrong\n")
    run("--write-baseline")
    _write("right\ndef f(:\n")
    assert run()[2] == ""
    Path("a.py").write_bytes(f"{CANDIDATE}\xff".encode("latin-1"))
    assert run()[2] == ""


def test_writing_keeps_what_was_not_looked_at(run: Run) -> None:
    _write(CODE)
    _write("wrong\n", "b.py")
    run("--write-baseline")
    assert run("--write-baseline", "b.py")[2] == f"Wrote 3 findings to {NAME}.\n"
    assert run() == (0, passed(1, 2, 3), "")


# ---------------------------------------------------------------------------------------------------------------------
# What goes wrong


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not valid JSON"),
        ("[]", "not a baseline of ctxlint"),
        ('{"version": 1}', "not a baseline of ctxlint"),
        ('{"version": 2, "files": {}}', "version 2 of the format is not supported"),
        ('{"version": 1, "files": {"a.py": [{"code": "CTX211"}]}}', "not a baseline of ctxlint"),
        ('{"version": 1, "files": {"a.py": 3}}', "not a baseline of ctxlint"),
    ],
)
def test_a_file_that_is_no_baseline(run: Run, content: str, message: str) -> None:
    Path(NAME).write_text(content, encoding="utf-8")
    code, out, err = run()
    assert (code, out) == (2, "")
    assert err.startswith(f"ctxlint: error: {NAME}: ")
    assert message in err


@pytest.mark.parametrize("arguments", [["--baseline", "gone.json"], ["--prune-baseline"]])
def test_a_baseline_that_is_not_there(run: Run, arguments: list[str]) -> None:
    code, _, err = run(*arguments)
    assert code == 2
    assert "no such baseline; create it with --write-baseline" in err


@pytest.mark.parametrize(
    "arguments", [["--write-baseline", "-"], ["--prune-baseline", "--diff"], ["--write-baseline", "--no-baseline"]]
)
def test_options_that_exclude_each_other(run: Run, arguments: list[str]) -> None:
    assert run(*arguments)[0] == 2


def test_what_cannot_be_read_is_said_and_not_listed(run: Run) -> None:
    Path("a.py").write_bytes(f"{CANDIDATE}\xff".encode("latin-1"))
    code, _, err = run("--write-baseline")
    assert code == 1
    assert "CTX902" in err
    assert "Wrote 0 findings" in err


if sys.platform == "linux":

    @pytest.mark.parametrize("option", ["--write-baseline", "--prune-baseline"])
    def test_a_full_disk_leaves_the_old_one(run: Run, option: str) -> None:
        import resource

        _write(CODE)
        assert run("--write-baseline")[0] == 0
        Path(NAME).chmod(0o640)
        before = Path(NAME).read_bytes()
        _write(f"{CODE}x = wrong\n" if option == "--write-baseline" else CODE.replace("plain", "right"))
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20, limits[1]))
        try:
            code, _, err = run(option, "--no-cache")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert (code, err) == (2, f"ctxlint: error: {NAME}: cannot be written: File too large\n")
        assert Path(NAME).read_bytes() == before
        assert run(option)[0] in (0, 1)
        assert Path(NAME).read_bytes() != before
        assert Path(NAME).stat().st_mode & 0o777 == 0o640
        assert sorted(each.name for each in Path().iterdir() if "baseline" in each.name) == [NAME]
