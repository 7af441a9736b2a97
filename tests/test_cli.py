"""The command line: arguments in, text and exit code out."""

from __future__ import annotations

import array
import errno
import io
import json
import os
import shlex
import shutil
import signal
import site
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ctxlint import __version__
from ctxlint.cli import main, split_command
from ctxlint.commands import COMMANDS
from ctxlint.rule_names import opt_in_codes
from ctxlint.rules import all_rules
from tests import stand_ins
from tests.console import NOTHING_FOUND, passed
from tests.fixture_reader import ROOT
from tests.stand_ins import CANDIDATE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stand_ins.install(monkeypatch)
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR", "CTXLINT_OUTPUT_FORMAT", "CTXLINT_OUTPUT_FILE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command in this process; gives exit code, standard output and standard error."""

    def runs(*arguments: str, stdin: bytes | None = None) -> tuple[int, str, str]:
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        try:
            code = main(arguments)
        except SystemExit as exit_:
            code = int(str(exit_.code))
        out, err = capfd.readouterr()
        return code, out, err

    return runs


def _write(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes((CANDIDATE + text).encode())


def _read(path: str) -> str:
    text = Path(path).read_bytes().decode()
    assert text.startswith(CANDIDATE)
    return text[len(CANDIDATE) :]


# ---------------------------------------------------------------------------------------------------------------------
# Commands and exit codes


@pytest.mark.parametrize(
    ("given", "command", "rest"),
    [
        ([], "check", []),
        (["a.py"], "check", ["a.py"]),
        (["check", "a.py"], "check", ["a.py"]),
        (["check", "check"], "check", ["check"]),
        (["--isolated", "check", "a.py"], "check", ["--isolated", "a.py"]),
        (["--config", "rule", "check"], "check", ["--config", "rule"]),
        (["--select", "CTX2", "check", "a.py"], "check", ["--select", "CTX2", "a.py"]),
        (["-q", "--config", "x", "--color=never", "rule", "CTX101"], "rule", ["CTX101"]),
        (["-q", "--isolated", "--color", "never", "explain"], "explain", ["--isolated", "--color", "never"]),
        (["--fix", "rule"], "rule", ["--fix"]),
        (["help", "rule"], "help", ["rule"]),
        (["-"], "check", ["-"]),
        (["rule", "CTX101"], "rule", ["CTX101"]),
        (["./rule"], "check", ["./rule"]),
        (["config"], "config", []),
        (["--", "rule"], "check", ["--", "rule"]),
    ],
)
def test_the_first_word_chooses_the_command(given: list[str], command: str, rest: list[str]) -> None:
    assert split_command(given) == (command, rest)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["chek", "."], "check"),
        (["rules", "CTX201"], "rule"),
        (["explian", "a.py"], "explain"),
        (["helpp"], "help"),
        (["version"], "--version"),
    ],
)
def test_a_word_that_is_nearly_a_command(run: Run, given: list[str], meant: str) -> None:
    said = f"ctxlint: error: `{given[0]}` is neither a command nor a file; did you mean `ctxlint {meant}`?\n"
    assert run(*given) == (2, "", said)


def test_what_may_be_a_path_is_no_command(run: Run) -> None:
    Path("rules").mkdir()
    assert run("rules") == (0, "", NOTHING_FOUND)
    for given in (["./chek"], ["chek.py"], ["check", "chek"], ["tests"], ["--", "chek"]):
        assert "No such file or directory" in run(*given)[1]


def test_help_of_a_command(run: Run) -> None:
    assert run("help") == run("--help")
    for command in COMMANDS:
        assert run("help", command) == run(command, "--help")
    assert run("help", "explian")[2].endswith("unknown command `explian`; did you mean `explain`?\n")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--sellect=CTX2"], "--sellect=CTX2; did you mean `--select`?\n"),
        (["--output_fromat=json", "a.py"], "--output_fromat=json; did you mean `--output-format`?\n"),
        (["rule", "--al"], "--al; did you mean `--all`?\n"),
        (["explain", "--isolatd"], "--isolatd; did you mean `--isolated`?\n"),
        (["--nonsense"], "--nonsense\n"),
    ],
)
def test_a_misspelt_option(run: Run, given: list[str], said: str) -> None:
    code, out, err = run(*given)
    assert (code, out) == (2, "")
    assert err.endswith(f"unrecognized arguments: {said}")


def test_options_stand_between_paths(run: Run) -> None:
    for name in ("a.py", "b.py", "--fix", "--add-noqa"):
        _write(name, "plain = 1\n")
    code, out, _ = run("a.py", "--output-format", "concise", "b.py", "--", "--fix", "--add-noqa")
    assert (code, out.count("CTX301")) == (1, 4)


def test_options_that_extend_others(run: Run) -> None:
    _write("a.py", "wrong = plain\n")
    Path("ctxlint.toml").write_text(
        "extend-ignore = ['CTX2']\nfixable = ['CTX3']\nper-file-ignores = { 'b.py' = ['ALL'] }\n", encoding="utf-8"
    )

    def codes(*options: str) -> list[str]:
        return [line.split()[1] for line in run("-q", "--output-format=concise", *options)[1].splitlines()]

    assert codes() == ["CTX301"]
    assert codes("--extend-ignore", "CTX3") == codes("--ignore=CTX4", "--extend-ignore=plain-word") == []
    assert codes("--select=ALL", "--extend-per-file-ignores", "a.py:CTX3") == ["CTX211"]
    _write("b.py", "plain\n")
    assert codes("--extend-per-file-ignores=a.py:CTX3") == []
    assert run("--diff", "-q", "--select=CTX2") == (0, "", "")
    assert "+right" in run("--diff", "-q", "--select=CTX2", "--extend-fixable=wrong-word")[1]
    for option in ("--extend-ignore=CTX999", "--extend-fixable=CTX999", "--extend-per-file-ignores=a.py:CTX999"):
        assert run(option)[2].endswith(f"error: {option.partition('=')[0]}: unknown rule selector `CTX999`\n")


def test_suggestions_are_near(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    for word in ("CTX999", "CTX220", "ABC123", "no-print", "gradients"):
        assert "did you mean" not in run("rule", word)[2]
    assert run("rule", "cxt201")[2].endswith("unknown rule `cxt201`; did you mean `CTX201`?\n")
    assert run("rule", "missing_nones")[2].endswith("; did you mean `missing-none`?\n")
    for word in ("format", "line-length", "lint"):
        assert "did you mean" not in run("config", word)[2]


def test_version(run: Run) -> None:
    assert run("--version") == run("-V") == run("check", "--version") == (0, f"ctxlint {__version__}\n", "")


FUNCTION = "class Exp(Function):\n    pass\n"


def test_a_clean_run_ends_with_what_was_checked(run: Run) -> None:
    _write("a.py", FUNCTION + FUNCTION.replace("Exp", "Log"))
    Path("b.py").write_text("x = 1\n", encoding="utf-8")
    for flags in ([], ["--output-format", "concise"], ["--output-format", "grouped"], ["--statistics"], ["--fix"]):
        assert run("check", *flags) == (0, passed(2, 2), "")
        assert run("check", *flags, "-q") == run("check", *flags, "-s") == (0, "", "")
    assert run("b.py") == (0, passed(0, 1), "")
    assert run("a.py") == run("a.py") == (0, passed(2, 1), ""), "also from the cache"
    assert run("-", stdin=(CANDIDATE + FUNCTION).encode()) == (0, passed(1, 1), "")
    _write("a.py", "def make():\n    class Exp(Function):\n        pass\n")
    assert run("a.py") == run("a.py") == (0, passed(1, 1), ""), "classes in functions count"


def test_programs_are_not_told_that_a_run_is_clean(run: Run) -> None:
    _write("a.py", FUNCTION)
    assert run("--output-format", "json") == (0, "[]\n", passed(1, 1))
    assert run("--output-format", "github") == (0, "", passed(1, 1))
    assert run("--statistics", "--output-format", "json") == (0, "[]\n", passed(1, 1))
    assert run("--output-format", "json", "-q") == (0, "[]\n", "")
    assert run("--output-format", "json", "-o", "out.json") == (0, "", passed(1, 1))
    assert run("-o", "out.txt") == (0, "", "")
    assert Path("out.txt").read_text(encoding="utf-8") == passed(1, 1)
    code, out, err = run("--fix", "-", stdin=(CANDIDATE + FUNCTION).encode())
    assert (code, out, err) == (0, CANDIDATE + FUNCTION, passed(1, 1))


def test_nothing_to_check_is_a_warning(run: Run) -> None:
    Path("empty").mkdir()
    Path("README.md").write_text("", encoding="utf-8")
    for flags in ([], ["empty"], ["--output-format", "sarif", "-o", "x.sarif"], ["--add-noqa"], ["--write-baseline"]):
        code, out, err = run(*flags)
        assert (code, out) == (0, "")
        assert err.startswith(NOTHING_FOUND)
    assert run("-q") == run("-s") == (0, "", "")
    _write("vendored/a.py", "wrong = 1\n")
    _write("a.py", FUNCTION)
    for flags in (["--exclude=vendored", "vendored", "--force-exclude"], ["--exclude=*.py", "vendored"]):
        assert run(*flags) == (0, "", NOTHING_FOUND)
    Path(".gitignore").write_text("vendored\n", encoding="utf-8")
    said = "warning: No Python files found under {}\n"
    assert run("--exclude=a.py", "vendored", ".") == (0, "", NOTHING_FOUND)
    assert run(".", "empty") == (0, passed(1, 1), said.format("empty"))
    Path("again").symlink_to(".")
    assert run(".", "again") == (0, passed(1, 1), "")
    assert run("--ignore=CTX902", "gone.py") == (0, "", NOTHING_FOUND)
    code, out, err = run("gone", "empty")
    assert (code, err) == (1, said.format("empty"))
    assert "No such file or directory" in out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["a.py"], 1),
        (["."], 1),
        ([], 1),
        (["clean.py"], 0),
        (["a.py", "--exit-zero"], 0),
        (["a.py", "-e"], 0),
        (["gone.py"], 1),
        (["clean.py", "gone.py"], 1),
        (["gone.py", "--exit-zero"], 0),
        (["--select", "CTX3", "a.py"], 0),
        (["--ignore", "wrong-word", "a.py"], 0),
        (["--nonsense"], 2),
        (["--select", "CTX999"], 2),
        (["--select", "CTX999", "--exit-zero"], 2),
        (["--ignore", "E501"], 2),
        (["--per-file-ignores", "tests"], 2),
        (["--per-file-ignores", "tests:E501"], 2),
        (["--output-format", "pretty"], 2),
        (["--target-torch", "new"], 2),
        (["--jobs", "0"], 2),
        (["--config", "gone.toml"], 2),
        (["--config", "selct = []"], 2),
        (["--config", "ok.toml", "--isolated"], 2),
        (["-q", "-v"], 2),
        (["crash.py"], 2),
        (["crash.py", "--exit-zero"], 2),
        (["crash.py", "--fix-only"], 2),
        (["a.py", "--diff"], 1),
        (["a.py", "--diff", "--exit-zero"], 0),
        (["clean.py", "--diff"], 0),
        (["plain.py", "--diff"], 0),
        (["a.py", "--fix"], 0),
        (["a.py", "--fix", "--exit-non-zero-on-fix"], 1),
        (["clean.py", "--fix", "--exit-non-zero-on-fix"], 0),
        (["plain.py", "--fix"], 1),
        (["plain.py", "--fix-only"], 0),
        (["a.py", "--fix-only"], 0),
        (["a.py", "--fix-only", "--exit-non-zero-on-fix"], 1),
        (["gone.py", "--fix-only"], 1),
        (["gone.py", "--diff"], 1),
    ],
)
def test_exit_codes(run: Run, arguments: list[str], code: int) -> None:
    _write("a.py", "wrong = 1\n")
    _write("clean.py", "x = 1\n")
    _write("plain.py", "plain = 1\n")
    Path("ok.toml").write_text("", encoding="utf-8")
    if "crash.py" in arguments:
        _write("crash.py", "crash = 1\n")
    assert run(*arguments)[0] == code


def test_a_wrong_option_is_explained(run: Run) -> None:
    code, out, err = run("--select", "wrong-wrd")
    assert (code, out) == (2, "")
    assert err.endswith("error: --select: unknown rule selector `wrong-wrd`; did you mean `wrong-word`?\n")
    _, _, err = run("--per-file-ignores", "a.py:wrong-wrd")
    assert err.endswith("error: --per-file-ignores: unknown rule selector `wrong-wrd`; did you mean `wrong-word`?\n")


@pytest.mark.parametrize("option", ["--select", "--fixable"])
def test_an_empty_choice_is_a_mistake(run: Run, option: str) -> None:
    _write("a.py", "wrong = 1\n")
    for nothing in ("", " ", ","):
        code, out, err = run(option, nothing)
        assert (code, out) == (2, "")
        assert err.endswith(f"error: {option}: no rule given\n")
    assert run(option, "", option, "CTX2")[0] == 1
    assert run("--ignore", "")[0] == run("--extend-select", "")[0] == 1


def test_extend_per_file_ignores_needs_no_per_file_ignores(run: Run) -> None:
    _write("a.py", "plain = wrong\n")
    _write("tests/a.py", "plain = wrong\n")
    code, out, _ = run("--extend-per-file-ignores", "tests/*:CTX", "--output-format", "concise", "-q")
    assert code == 1
    assert {line.split(":")[0] for line in out.splitlines()} == {"a.py"}
    Path("ctxlint.toml").write_text('extend-per-file-ignores = { "a.py" = ["CTX"] }\n', encoding="utf-8")
    assert run("-q") == (0, "", "")


def test_a_wrong_configuration_is_explained(run: Run) -> None:
    Path("pyproject.toml").write_text("[tool.ctxlint]\nselct = []\n", encoding="utf-8")
    error = "ctxlint: error: pyproject.toml:2: unknown key `selct`; did you mean `select`?\n"
    assert run() == (2, "", error)
    assert run("--isolated") == (0, "", NOTHING_FOUND)


def test_a_table_of_pyproject_in_ctxlint_toml_is_explained(run: Run) -> None:
    Path("ctxlint.toml").write_text("[tool.ctxlint]\nselect = []\n", encoding="utf-8")
    advice = "this file takes the options themselves, without `[tool.ctxlint]`"
    assert run() == (2, "", f"ctxlint: error: ctxlint.toml:1: unknown key `tool`; {advice}\n")


def test_one_crash_ends_nothing_else(run: Run) -> None:
    _write("a.py", "crash = wrong\nplain = 2\n")
    _write("b.py", "wrong = 1\n")
    code, out, err = run("--output-format", "concise")
    lines = out.split("\n")
    assert (code, err) == (2, "")
    assert lines[0].startswith("a.py:1:1: CTX900 CTX501 (crashing-rule) failed with KeyError in stand_ins.py:")
    assert lines[0].endswith(": 'lost'. This is a bug in ctxlint; report it.")
    assert [line.partition(" ")[0] for line in lines[1:5]] == ["a.py:2:1:", "a.py:2:9:", "a.py:3:1:", "b.py:2:1:"]


def test_a_crash_is_not_hidden_by_a_comment(run: Run) -> None:
    for comment in ("# noqa", "# ctxlint: noqa"):
        Path("a.py").write_text(f"{comment}\nx = 1  # noqa\n{CANDIDATE}crash = 1  # noqa\n", encoding="utf-8")
        assert run("-q", "--output-format", "concise")[0] == 2


def test_a_crash_of_the_fix_engine_is_a_finding(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from ctxlint.fixes import apply

    def fail(*_: object) -> None:
        raise ValueError("odd")

    monkeypatch.setattr(apply, "plan", fail)
    _write("a.py", "wrong = 1\n")
    code, out, _ = run("--fix", "--output-format", "concise")
    assert code == 2
    assert out.startswith("a.py:1:1: CTX900 The fix engine failed with ValueError in test_cli.py:")
    assert _read("a.py") == "wrong = 1\n"


def test_recursion_is_a_finding(run: Run) -> None:
    _write("a.py", "deep = 1\nwrong = 1\n")
    code, out, _ = run("--output-format", "concise")
    assert code == 1
    assert out.startswith("a.py:1:1: CTX903 `a.py` is too complex to analyse; it is not checked in full.")
    assert "CTX211" in out


def test_an_error_in_the_model_is_a_finding(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from ctxlint.model import reader

    def fail(*_: object) -> None:
        raise ValueError("odd")

    for name in ("read", "read_if_concerned"):
        monkeypatch.setattr(reader, name, fail)
    _write("a.py", "wrong = 1\n")
    code, out, _ = run("--output-format", "concise")
    assert code == 2
    assert "a.py:1:1: CTX900 The model failed with ValueError in test_cli.py:" in out


def test_an_error_outside_of_files_is_one_message(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from ctxlint import report

    def fail(*_: object) -> None:
        raise ValueError("odd")

    monkeypatch.setattr(report, "render", fail)
    _write("a.py", "wrong = 1\n")
    code, out, err = run()
    assert (code, out) == (2, "")
    assert err.startswith("ctxlint failed with ValueError in test_cli.py:")
    assert "Traceback" not in err


@pytest.mark.parametrize("jobs", ["0", "-1", "\u00b2", "9" * 5000])
def test_a_number_of_processes_is_understood_or_refused(jobs: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([f"--jobs={jobs}", "."])
    assert f"expected a positive integer or `auto`, got {jobs}" in capsys.readouterr().err


def test_interruption(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from ctxlint.run import pipeline

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pipeline, "lint_paths", interrupt)
    assert run() == (130, "", "")


# ---------------------------------------------------------------------------------------------------------------------
# What is printed


def test_concise(run: Run) -> None:
    _write("b.py", "wrong = 1\n")
    _write("a.py", "é = wrong = risky = vague = plain\n")
    assert run("--output-format", "concise") == (
        1,
        (
            "a.py:2:5: CTX211 [*] `wrong` is found\n"
            "a.py:2:13: CTX212 `risky` is found\n"
            "a.py:2:21: CTX213 `vague` is found\n"
            "a.py:2:29: CTX301 `plain` is found\n"
            "b.py:2:1: CTX211 [*] `wrong` is found\n"
            "Found 5 errors.\n"
            "[*] 2 fixable with `--fix` (1 unsafe fix available with `--fix --unsafe-fixes`).\n"
        ),
        "",
    )


def test_the_star_marks_what_the_options_would_fix(run: Run) -> None:
    _write("a.py", "risky = 1\n")
    assert run("--output-format", "concise")[1] == (
        "a.py:2:1: CTX212 `risky` is found\nFound 1 error.\n1 unsafe fix available with `--fix --unsafe-fixes`.\n"
    )
    assert run("--output-format", "concise", "--unsafe-fixes")[1] == (
        "a.py:2:1: CTX212 [*] `risky` is found\nFound 1 error.\n[*] 1 fixable with `--fix`.\n"
    )
    assert run("--output-format", "concise", "--unsafe-fixes", "--unfixable", "CTX2")[1] == (
        "a.py:2:1: CTX212 `risky` is found\nFound 1 error.\n"
    )


def test_full(run: Run) -> None:
    _write("a.py", "\n\n\ndef f():\n\treturn plain\n")
    assert run() == (
        1,
        (
            "CTX301 `plain` is found\n"
            " --> a.py:6:9\n"
            "  |\n"
            "5 | def f():\n"
            "6 |     return plain\n"
            "  |            ^^^^^\n"
            "  |\n"
            "note: the line starts here\n"
            " --> a.py:6:1\n"
            "  |\n"
            "5 | def f():\n"
            "6 |     return plain\n"
            "  | ----\n"
            "  |\n"
            "\n"
            "Found 1 error.\n"
        ),
        "",
    )


def test_full_shows_the_fix(run: Run) -> None:
    _write("a.py", "x = 1\ny = risky\nz = 3\n")
    assert run()[1] == (
        "CTX212 `risky` is found\n"
        " --> a.py:3:5\n"
        "  |\n"
        "2 | x = 1\n"
        "3 | y = risky\n"
        "  |     ^^^^^\n"
        "4 | z = 3\n"
        "  |\n"
        "help: Write `tame`\n"
        "  |\n"
        "2 | x = 1\n"
        "  - y = risky\n"
        "3 + y = tame\n"
        "4 | z = 3\n"
        "  |\n"
        "note: This is an unsafe fix and may change behaviour; see `ctxlint rule CTX212`\n"
        "\n"
        "Found 1 error.\n"
        "1 unsafe fix available with `--fix --unsafe-fixes`.\n"
    )


def test_json_has_the_keys_of_ruff(run: Run) -> None:
    _write("a.py", "x = '''\n''' + wrong + '''\n'''\n")
    code, out, err = run("--output-format", "json")
    assert (code, err) == (1, "")
    assert out.startswith(
        '[\n  {\n    "cell": null,\n    "code": "CTX211",\n    "end_location": {\n      "column": 12,'
    )
    assert json.loads(out) == [
        {
            "cell": None,
            "code": "CTX211",
            "end_location": {"column": 12, "row": 3},
            "filename": str(Path("a.py").resolve()),
            "fix": {
                "applicability": "safe",
                "edits": [
                    {
                        "content": "right",
                        "end_location": {"column": 12, "row": 3},
                        "location": {"column": 7, "row": 3},
                    }
                ],
                "message": "Write `right`",
            },
            "location": {"column": 7, "row": 3},
            "message": "`wrong` is found",
            "name": "wrong-word",
            "noqa_row": 4,
            "related": [],
            "severity": "error",
            "url": "https://ctxlint.github.io/ctxlint/rules/CTX211/",
        }
    ]


def test_json_without_findings_is_an_empty_list(run: Run) -> None:
    assert run("--output-format", "json") == (0, "[]\n", NOTHING_FOUND)


def test_quiet_and_silent(run: Run) -> None:
    _write("a.py", "wrong = 1  # noqa:\n")
    line = "a.py:2:1: CTX211 [*] `wrong` is found\n"
    assert run("-q", "--output-format", "concise") == (1, line, "")
    assert run("-s") == (1, "", "")


def test_warnings_go_to_standard_error(run: Run) -> None:
    _write("a.py", "wrong = 1  # noqa:\n")
    code, out, err = run("--output-format", "json")
    assert (code, len(json.loads(out))) == (1, 1)
    assert err == "warning: a.py:2: `# noqa:` needs codes after the colon, such as `# noqa: CTX301`\n"


def test_verbose_says_what_is_skipped(run: Run) -> None:
    _write("a.py", "x = 1\n")
    Path("b.py").write_text("x = 1\n", encoding="utf-8")
    code, out, err = run("-v")
    assert (code, out) == (0, passed(0, 2))
    assert err == "Read 2 files, 1 of which may define Functions\n"


def test_statistics_and_count(run: Run) -> None:
    _write("a.py", "wrong = risky = wrong = wrong\nplain = 1\n")
    table = "3\tCTX211\t[*] wrong-word\n1\tCTX212\t[ ] risky-word\n1\tCTX301\t[ ] plain-word\n"
    assert run("--statistics", "-q") == (1, table, "")
    assert run("--statistics")[1].startswith(table + "Found 5 errors.\n")
    assert run("--statistics", "-q", "--select", "CTX3")[1] == "1\tCTX301\tplain-word\n"
    assert json.loads(run("--statistics", "--output-format", "json")[1])[0] == {
        "code": "CTX211",
        "name": "wrong-word",
        "count": 3,
        "fixable": True,
        "fixable_count": 3,
    }
    assert run("--count", "-q", "--output-format", "concise", "--select", "CTX3")[1] == (
        "a.py:3:1: CTX301 `plain` is found\n1\n"
    )


def test_statistics_are_a_table_or_json(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    _write("a.py", "plain = 1\n")
    for name in ("full", "concise", "grouped"):
        assert run("--statistics", "-q", "--output-format", name) == (1, "1\tCTX301\tplain-word\n", "")
    for name in ("github", "sarif", "junit", "json-lines"):
        code, out, err = run("--statistics", "--output-format", name)
        assert (code, out) == (2, "")
        assert err.endswith(f"error: --statistics supports the formats full and json, not {name}\n")
    assert run("--statistics", "--diff")[0] == 2
    monkeypatch.setenv("CTXLINT_OUTPUT_FORMAT", "github")  # meant for the findings
    assert run("--statistics", "-q") == (1, "1\tCTX301\tplain-word\n", "")


def test_the_count_spoils_nothing(run: Run) -> None:
    _write("a.py", "plain = 1\n")
    for flags in ([], ["--statistics"]):
        code, out, err = run(*flags, "--count", "--output-format", "json")
        assert (code, len(json.loads(out)), err) == (1, 1, "1\n")
    assert run("--count", "-q", "-o", "out.json", "--output-format", "json") == (1, "1\n", "")
    assert len(json.loads(Path("out.json").read_text(encoding="utf-8"))) == 1
    assert run("--count", "--ignore", "CTX3") == (0, passed(0, 1) + "0\n", "")
    assert run("--count", "--silent") == (1, "", "")


@pytest.mark.parametrize(
    "where", ["--cache-dir=.", "--cache-dir=src", "--config=cache-dir = ''", "--config=cache-dir = '.'"]
)
def test_a_folder_with_code_in_it_is_no_place_for_the_cache(run: Run, where: str) -> None:
    Path("src").mkdir()
    _write("src/a.py", "plain = 1\n")
    before = sorted(Path().rglob("*"))
    code, out, err = run(where)
    assert (code, out) == (2, "")
    assert err.startswith("ctxlint: error: cache-dir: ")
    assert err.endswith(" contains other files; set a folder for the cache only\n")
    assert sorted(Path().rglob("*")) == before
    Path("cache").mkdir()
    for _ in range(2):
        assert run("-q", "--cache-dir=cache")[0] == 1


def test_output_file(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    _write("a.py", "plain = 'ü'\n")
    assert run("-o", "out.txt", "--output-format", "concise", "--color", "always") == (1, "", "")
    expected = b"a.py:2:1: CTX301 `plain` is found\nFound 1 error.\n"
    assert Path("out.txt").read_bytes() == expected
    monkeypatch.setenv("CTXLINT_OUTPUT_FILE", "other.txt")
    monkeypatch.setenv("CTXLINT_OUTPUT_FORMAT", "concise")
    assert run() == (1, "", "")
    assert Path("other.txt").read_bytes() == expected
    assert run("-o", "no/such/folder.txt") == (
        2,
        "",
        "ctxlint: error: --output-file: cannot write no/such/folder.txt: No such file or directory\n",
    )


def test_output_format_from_the_environment_and_the_file(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    _write("a.py", "plain = 1\n")
    Path("pyproject.toml").write_text("[tool.ctxlint]\noutput-format = 'pylint'\n", encoding="utf-8")
    assert run()[1] == "a.py:2: [CTX301] `plain` is found\n"
    monkeypatch.setenv("CTXLINT_OUTPUT_FORMAT", "json")
    assert json.loads(run()[1])
    assert run("--output-format", "concise")[1].startswith("a.py:2:1: CTX301")
    monkeypatch.setenv("CTXLINT_OUTPUT_FORMAT", "jsn")
    code, _, err = run()
    assert code == 2
    assert "CTXLINT_OUTPUT_FORMAT: unknown output format `jsn`; did you mean `json`?" in err


def test_colours(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    _write("a.py", "plain = 1\n")
    assert "\x1b[" not in run()[1]
    assert "\x1b[1;31mCTX301\x1b[0m" in run("--color", "always")[1]
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in run()[1]
    assert "\x1b[" not in run("--color", "never")[1]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in run()[1]
    assert "\x1b[" in run("--color", "always")[1]


def test_a_folder_that_cannot_be_listed_is_told_of(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.py", "closed/b.py", "open/c.py"):
        Path(name).parent.mkdir(exist_ok=True)
        _write(name, "plain = 1\n")
    scandir = os.scandir

    def refusing(path: str) -> Iterator[os.DirEntry[str]]:
        if os.path.basename(path) == "closed":
            raise PermissionError(errno.EACCES, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    code, out, err = run("--output-format", "concise", "-n")
    assert (code, err) == (1, "warning: closed: Permission denied; nothing in it was linted\n")
    assert [line.partition(":")[0] for line in out.splitlines()] == ["a.py", "open/c.py", "Found 2 errors."]
    assert run("-q", "open", "closed", "--select", "CTX9") == (1, "CTX902 Permission denied.\n --> closed:1:1\n\n", "")


def test_names_that_the_terminal_cannot_show(run: Run) -> None:
    if sys.platform != "linux":
        return
    name = os.fsdecode(b"caf\xe9.py")
    _write(name, "plain = 1\n")
    assert run(".", "--output-format", "json")[0] == 1
    assert run(".", "--output-format", "concise")[0] == 1
    assert run("--write-baseline")[0] == run()[0] == 0
    assert run("--prune-baseline")[0] == 0


def test_arguments_from_a_file(run: Run) -> None:
    _write("a.py", "plain = 1\n")
    _write("b.py", "plain = 1\n")
    Path("args.txt").write_text("a.py\n--output-format=concise\n", encoding="utf-8")
    assert run("@args.txt", "-q")[1] == "a.py:2:1: CTX301 `plain` is found\n"


# ---------------------------------------------------------------------------------------------------------------------
# Rules and files


def test_select_takes_codes_prefixes_and_names(run: Run) -> None:
    _write("a.py", "wrong = risky = plain = optional\n")

    def codes(*arguments: str) -> list[str]:
        return [each["code"] for each in json.loads(run("--output-format", "json", *arguments)[1])]

    assert codes() == ["CTX211", "CTX212", "CTX301"]
    assert codes("--select", "CTX2") == ["CTX211", "CTX212"]
    assert codes("--select", "CTX2,plain-word") == ["CTX211", "CTX212", "CTX301"]
    assert codes("--select", "CTX2", "--select", "CTX301") == ["CTX211", "CTX212", "CTX301"]
    assert codes("--select", "ALL") == ["CTX211", "CTX212", "CTX301", "CTX302"]
    assert codes("--select", "ALL", "--ignore", "CTX2") == ["CTX301", "CTX302"]
    assert codes("--select", "CTX211", "--ignore", "CTX2") == ["CTX211"]
    assert codes("--extend-select", "opt-in-word") == ["CTX211", "CTX212", "CTX301", "CTX302"]


def test_per_file_ignores(run: Run) -> None:
    _write("tests/a.py", "wrong = plain\n")
    _write("b.py", "wrong = plain\n")

    def places(*arguments: str) -> list[str]:
        out = run("-q", "--output-format", "concise", *arguments)[1]
        return [" ".join(line.split(" ")[:2]) for line in out.splitlines()]

    everything = ["b.py:2:1: CTX211", "b.py:2:9: CTX301", "tests/a.py:2:1: CTX211", "tests/a.py:2:9: CTX301"]
    assert places() == everything
    assert places("--per-file-ignores", "tests/*:CTX2") == [*everything[:2], everything[3]]
    assert places("--per-file-ignores", "tests/*:CTX2,b.py:plain-word") == [everything[0], everything[3]]


def test_exclude(run: Run) -> None:
    _write("old/a.py", "plain = 1\n")
    _write("new/a.py", "plain = 1\n")

    def files(*arguments: str) -> list[str]:
        return [os.path.relpath(line) for line in run("--show-files", *arguments)[1].splitlines()]

    new, old = os.path.join("new", "a.py"), os.path.join("old", "a.py")
    assert files() == [new, old]
    assert files("--exclude", "old") == [new]
    assert files("--extend-exclude", "new/*") == [old]
    assert files("old/a.py", "--exclude", "old") == [old]
    assert files("old/a.py", "--exclude", "old", "--force-exclude") == []


def test_a_nearer_configuration_counts(run: Run) -> None:
    _write("a.py", "wrong = plain\n")
    _write("sub/a.py", "wrong = plain\n")
    _write("sub/skipped/a.py", "wrong = plain\n")
    Path("pyproject.toml").write_text("[tool.ctxlint]\nselect = ['CTX2']\n", encoding="utf-8")
    Path("sub/pyproject.toml").write_text(
        "[tool.ctxlint]\nselect = ['CTX3']\nextend-exclude = ['skipped']\n", encoding="utf-8"
    )
    expected = ["a.py:2:1: CTX211", "sub/a.py:2:9: CTX301"]
    for paths in (["."], ["a.py", "sub"], ["sub", ".", "a.py"]):
        out = run("-q", "--output-format", "concise", *paths)[1]
        assert [" ".join(line.split(" ")[:2]) for line in out.splitlines()] == expected
    assert "CTX211" in run("--isolated", "sub")[1]
    assert run("--config", "select = ['CTX401']", ".") == (0, passed(0, 2), "")


def test_show_settings(run: Run) -> None:
    Path("ctxlint.toml").write_text("select = ['CTX3']\ntarget-torch = '2.4'\n", encoding="utf-8")
    code, out, _ = run("--show-settings")
    assert code == 0
    assert f"Configuration file: {Path('ctxlint.toml').resolve()}\n" in out
    assert 'target-torch = ">=2.4"\n' in out
    assert out.endswith(
        "Rules that are on:\n  CTX301 plain-word\n  CTX302 opt-in-word\n  CTX901 invalid-syntax\n  CTX902 io-error\n"
    )


def test_the_same_file_twice_is_linted_once(run: Run) -> None:
    _write("a.py", "plain = 1\n")
    assert run("-q", "--output-format", "concise", "a.py", ".", "a.py")[1] == "a.py:2:1: CTX301 `plain` is found\n"


def test_noqa(run: Run) -> None:
    _write("a.py", "plain = 1  # noqa: CTX301\nplain = 2  # ctxlint: ignore[plain-word] as it must be\n")
    assert run() == (0, passed(0, 1), "")
    assert run("--ignore-noqa")[0] == run("--disable-noqa")[0] == 1


def test_a_misspelt_suppression_is_told_of_where_nothing_is_found(run: Run) -> None:
    _write("a.py", "x = 1  # ctxlint: ignore[no-such]\n")
    said = "warning: a.py:2: `ctxlint: ignore`: unknown rule `no-such`\n"
    assert run() == (0, passed(0, 1), said)
    assert run() == (0, passed(0, 1), said)  # also from the cache
    assert run("-q") == (0, "", "")
    assert run("--ignore-noqa") == (0, passed(0, 1), "")


# ---------------------------------------------------------------------------------------------------------------------
# Standard input


def test_standard_input(run: Run) -> None:
    text = (CANDIDATE + "plain = 1\n").encode()
    assert run("-", "-q", "--output-format", "concise", stdin=text)[1] == "-:2:1: CTX301 `plain` is found\n"
    for name in ("--stdin-filename", "--stdin-display-name"):
        out = run("-", name, "x/y.py", "-q", "--output-format", "concise", stdin=text)[1]
        assert out == "x/y.py:2:1: CTX301 `plain` is found\n"
    assert run("--stdin-filename", "z.py", "-q", "--output-format", "concise", stdin=text)[1].startswith("z.py:2:1")


def test_standard_input_and_files_exclude_each_other(run: Run) -> None:
    _write("a.py", "plain = 1\n")
    code, out, err = run("-", "a.py", stdin=b"")
    assert (code, out) == (2, "")
    assert err.endswith("ctxlint: error: `-` (standard input) cannot be combined with other paths\n")


def test_standard_input_is_fixed(run: Run) -> None:
    text = (CANDIDATE + "wrong = plain\r\n").encode()
    assert run("-", "--fix", "--output-format", "concise", stdin=text) == (
        1,
        CANDIDATE + "right = plain\r\n",
        "-:2:9: CTX301 `plain` is found\nFound 2 errors (1 fixed, 1 remaining).\n",
    )
    code, out, err = run("-", "--fix", "--output-format", "json", stdin=text)
    assert (code, out) == (1, CANDIDATE + "right = plain\r\n")
    assert [each["code"] for each in json.loads(err)] == ["CTX301"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x = 1",
        CANDIDATE.encode() + b"x = 1  # no newline",
        b"\xef\xbb\xbf" + CANDIDATE.encode() + b"x = 1\r\n",
        b"# coding: latin-1\n" + CANDIDATE.encode() + b"x = '\xe9'\n",
        CANDIDATE.encode() + b"x = '\xe9'  # not UTF-8\n",
        CANDIDATE.encode() + b"def broken(:\n",
        CANDIDATE.encode() + b"crash = wrong\n",
        CANDIDATE.encode() + b"harmless = wrong\n",
    ],
)
def test_standard_input_comes_back_when_nothing_is_fixed(
    data: bytes, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    main(["-", "--fix"])
    assert capfdbinary.readouterr().out == data


def test_the_configuration_beside_the_name_of_standard_input(run: Run) -> None:
    Path("sub").mkdir()
    Path("sub/ctxlint.toml").write_text("fix = true\noutput-format = 'concise'\n", encoding="utf-8")
    text = (CANDIDATE + "wrong = plain\n").encode()
    assert run("-", "--stdin-filename", "sub/a.py", "-q", stdin=text) == (
        1,
        CANDIDATE + "right = plain\n",
        "sub/a.py:2:9: CTX301 `plain` is found\n",
    )


def test_a_diff_of_standard_input(run: Run) -> None:
    text = (CANDIDATE + "wrong = 1\n").encode()
    assert run("-", "--diff", stdin=text) == (
        1,
        f"@@ -1,2 +1,2 @@\n {CANDIDATE}-wrong = 1\n+right = 1\n",
        "Would fix 1 error.\n",
    )


def test_a_diff_of_standard_input_names_the_file_if_it_has_a_name(run: Run) -> None:
    code, out, _ = run("-", "--diff", "--stdin-filename", "sub/a.py", stdin=(CANDIDATE + "wrong = 1\n").encode())
    assert (code, out.splitlines()[:3]) == (1, ["--- sub/a.py", "+++ sub/a.py", "@@ -1,2 +1,2 @@"])


def test_standard_input_that_is_excluded(run: Run) -> None:
    text = (CANDIDATE + "wrong = 1\n").encode()
    arguments = ("-", "--stdin-filename", "old/a.py", "--exclude", "old")
    assert run(*arguments, stdin=text)[0] == 1
    assert run(*arguments, "--force-exclude", stdin=text) == (0, "", "")
    assert run(*arguments, "--force-exclude", "--fix", stdin=text) == (0, text.decode(), "")


# ---------------------------------------------------------------------------------------------------------------------
# Fixes


def test_fix(run: Run) -> None:
    _write("a.py", "wrong = wrong = plain = risky\n")
    _write("b.py", "wrong = 1\n")
    assert run("--fix", "--show-fixes", "--output-format", "concise") == (
        1,
        (
            "a.py:2:17: CTX301 `plain` is found\n"
            "a.py:2:25: CTX212 `risky` is found\n"
            "\nFixed 3 errors:\n- a.py:\n    2 \u00d7 CTX211 (wrong-word)\n"
            "- b.py:\n    1 \u00d7 CTX211 (wrong-word)\n\n"
            "Found 5 errors (3 fixed, 2 remaining).\n"
            "1 unsafe fix available with `--fix --unsafe-fixes`.\n"
        ),
        "",
    )
    assert _read("a.py") == "right = right = plain = risky\n"
    assert _read("b.py") == "right = 1\n"
    assert run("--fix", "--unsafe-fixes", "-q", "--ignore", "CTX3") == (0, "", "")
    assert _read("a.py") == "right = right = plain = tame\n"


def test_fix_in_the_configuration(run: Run) -> None:
    _write("a.py", "wrong = risky\n")
    Path("ctxlint.toml").write_text("fix = true\nunsafe-fixes = true\n", encoding="utf-8")
    assert run("--no-fix")[0] == 1
    assert _read("a.py") == "wrong = risky\n"
    assert run("--no-unsafe-fixes")[0] == 1
    assert _read("a.py") == "right = risky\n"
    assert run()[0] == 0
    assert _read("a.py") == "right = tame\n"


def test_fix_only(run: Run) -> None:
    _write("a.py", "wrong = plain = risky\n")
    assert run("--fix-only") == (0, "Fixed 1 error (1 additional fix available with `--unsafe-fixes`).\n", "")
    assert _read("a.py") == "right = plain = risky\n"
    assert run("--fix-only") == (0, "No errors fixed (1 fix available with `--unsafe-fixes`).\n", "")
    assert run("--fix-only", "--unsafe-fixes", "--show-fixes") == (
        0,
        "\nFixed 1 error:\n- a.py:\n    1 \u00d7 CTX212 (risky-word)\n\nFixed 1 error.\n",
        "",
    )
    assert run("--fix-only") == (0, "", "")


def test_a_diff_is_no_report(run: Run) -> None:
    code, out, err = run("--diff", "-o", "report.txt", ".")
    assert (code, out) == (2, "")
    assert "--output-file is for the report, and cannot be combined with --diff" in err


def test_diff(run: Run) -> None:
    _write("a.py", "wrong = 1\nplain = risky\n")
    _write("b.py", "plain = 1\n")
    _write("c.py", "wrong = 1")
    before = _read("a.py")
    assert run("--diff") == (
        1,
        (
            f"--- a.py\n+++ a.py\n@@ -1,3 +1,3 @@\n {CANDIDATE}-wrong = 1\n+right = 1\n plain = risky\n"
            f"--- c.py\n+++ c.py\n@@ -1,2 +1,2 @@\n {CANDIDATE}-wrong = 1\n\\ No newline at end of file\n"
            "+right = 1\n\\ No newline at end of file\n"
        ),
        "Would fix 2 errors (1 additional fix available with `--unsafe-fixes`).\n",
    )
    assert _read("a.py") == before
    assert run("--diff", "b.py") == (0, "", "")


def test_what_a_fix_does_not_touch_keeps_its_bytes(run: Run) -> None:
    data = b"\xef\xbb\xbf" + CANDIDATE.encode() + b"\tx = 1 ; \r\n\x0c\n# \xe2\x80\xa8\rwrong = '\xc3\xa9'\n\n  "
    data = data.replace(b"\tx", b"x\t")
    Path("a.py").write_bytes(data)
    assert run("--fix")[0] == 0
    assert Path("a.py").read_bytes() == data.replace(b"wrong", b"right")
    latin = b"# -*- coding: latin-1 -*-\n" + CANDIDATE.encode() + b"wrong = '\xe9'\n"
    Path("b.py").write_bytes(latin)
    assert run("--fix", "b.py")[0] == 0
    assert Path("b.py").read_bytes() == latin.replace(b"wrong", b"right")


def test_a_read_only_file_is_an_error_and_the_rest_goes_on(run: Run) -> None:
    _write("a.py", "wrong = 1\n")
    _write("b.py", "wrong = 1\n")
    Path("a.py").chmod(stat.S_IRUSR | stat.S_IRGRP)
    assert run("--fix", "--output-format", "concise") == (
        1,
        (
            "a.py:1:1: CTX902 The file is read-only; it was not fixed.\n"
            "a.py:2:1: CTX211 [*] `wrong` is found\n"
            "Found 3 errors (1 fixed, 2 remaining).\n"
            "[*] 1 fixable with `--fix`.\n"
        ),
        "",
    )
    assert (_read("a.py"), _read("b.py")) == ("wrong = 1\n", "right = 1\n")
    assert run("--fix-only", "a.py") == (1, "", "a.py: CTX902 The file is read-only; it was not fixed.\n")


def test_a_bad_fix_is_undone_reported_and_the_rest_goes_on(run: Run) -> None:
    _write("a.py", "harmless = 1\n")
    _write("b.py", "wrong = 1\n")
    code, out, err = run("--fix", "--output-format", "concise")
    assert (code, err) == (2, "")
    assert out.startswith("a.py:1:1: CTX900 The fixes of CTX401 (breaking-fix) introduce a syntax error; ")
    assert (_read("a.py"), _read("b.py")) == ("harmless = 1\n", "right = 1\n")
    assert run("--fix-only", "a.py")[2].startswith("a.py: CTX900 The fixes of CTX401")


def test_fixed_findings_in_json(run: Run) -> None:
    _write("a.py", "wrong = plain\n")
    document = json.loads(run("--fix", "--show-fixes", "--output-format", "json")[1])
    assert [each["code"] for each in document["diagnostics"]] == ["CTX301"]
    assert document["fixed"] == [
        {"code": "CTX211", "count": 1, "filename": str(Path("a.py").resolve()), "name": "wrong-word"}
    ]


# ---------------------------------------------------------------------------------------------------------------------
# The other commands


def test_rule(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert run("rule", "901") == run("rule", "ctx901") == run("rule", "CTX901")
    code, out, _ = run("rule", "CTX901")
    assert code == 0
    assert out.startswith("# invalid-syntax (CTX901)\n\nCategory: correctness, on by default. Since 0.1.0.\n\n## What ")
    assert run("rule", "invalid-syntax")[1] == out
    assert out in run("rule", "--all")[1]
    record = json.loads(run("rule", "ctx901", "--output-format", "json")[1])
    assert (record["code"], record["name"], record["default"]) == ("CTX901", "invalid-syntax", True)
    assert record in json.loads(run("rule", "--all", "--output-format", "json")[1])
    code, _, err = run("rule", "invalid-sintax")
    assert code == 2
    assert err.endswith("error: unknown rule `invalid-sintax`; did you mean `invalid-syntax`?\n")
    code, out, _ = run("rule")
    lines = out.splitlines()
    assert (code, len(lines)) == (0, len(all_rules()))
    assert lines[0].startswith("CTX101  missing-staticmethod  ")
    assert [line for line in lines if line.endswith(" (off by default)")] == [
        line for line in lines if line[:6] in opt_in_codes()
    ]
    assert json.loads(run("rule", "--output-format=json")[1]) == json.loads(
        run("rule", "--all", "--output-format=json")[1]
    )
    assert run("rule", "CTX101", "--all")[0] == 2


def test_config(run: Run) -> None:
    code, out, _ = run("config")
    assert code == 0
    assert "per-file-ignores\n" in out
    assert "Type: list[selector]\n" in run("config", "select")[1]
    assert json.loads(run("config", "fix", "--output-format", "json")[1])["fix"]["default"] == "false"
    assert "did you mean `select`?" in run("config", "selct")[2]


def test_help_names_every_option_of_the_configuration(run: Run) -> None:
    code, out, _ = run("--help")
    assert code == 0
    from ctxlint.config.options import OPTIONS

    only_in_files = {"extend", "extra-bases", "required-version", "extend-safe-fixes", "extend-unsafe-fixes"}
    for option in OPTIONS:
        assert f"--{option.key}" in out or option.key in only_in_files


# ---------------------------------------------------------------------------------------------------------------------
# The process


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def _imported(*arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "ctxlint", *arguments],
        capture_output=True,
        text=True,
        check=True,
        env=_environment(),
    )
    return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}


def test_a_file_without_functions_costs_no_imports() -> None:
    Path("a.py").write_text("x = 1\n", encoding="utf-8")
    Path("pyproject.toml").write_text("[project]\nname = 'x'\n", encoding="utf-8")
    imported = _imported("a.py")
    heavy = {
        "libcst",
        "ast",
        "json",
        "tomllib",
        "tomli",
        "pathspec",
        "difflib",
        "subprocess",
        "ctxlint.config.options",
    }
    assert "ctxlint.run.pipeline" in imported
    assert heavy & imported <= _standard_baggage()
    assert not any(name.startswith(("ctxlint.model", "ctxlint.rules")) for name in imported)


def _standard_baggage() -> set[str]:
    """What ``dataclasses`` imports on this Python (``ast``, through ``inspect``)."""
    code = "import sys, dataclasses, argparse, pathlib; print(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_version_imports_next_to_nothing() -> None:
    imported = {name for name in _imported("--version") if name.startswith(("ctxlint", "argparse", "dataclasses"))}
    assert imported <= {"ctxlint", "ctxlint.cli", "ctxlint.commands", "ctxlint.search_path", "ctxlint.version"}


def test_what_is_installed_is_found_from_its_own_folder() -> None:
    broken = str(ROOT / "fixtures/programs/broken/tensor_times_constant.py")
    command = [sys.executable, "-m", "ctxlint", "check", "--isolated", "--no-cache", broken]
    done = subprocess.run(command, check=False, cwd=site.getsitepackages()[0], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "")
    assert "Found 3 errors." in done.stdout


def test_a_reader_that_leaves_is_no_error() -> None:
    bad = "def forward(:\n    pass\n\n\n"
    for number in range(10):
        _write(f"a{number}.py", bad * 50)
    process = subprocess.Popen(
        [sys.executable, "-m", "ctxlint", "--output-format", "json", "--isolated"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_environment(),
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.read(1) == b"["
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(60) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["rule", "--all"],
        ["rule", "--all", "--output-format=json"],
        ["config", "select"],
        ["config", "--output-format=json"],
        ["--help"],
        ["größe.py"],
    ],
)
def test_a_terminal_that_knows_ascii_only(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ctxlint", *arguments],
        capture_output=True,
        check=False,
        env={**_environment(), "PYTHONIOENCODING": "ascii"},
    )
    assert (done.returncode, done.stderr) == (1 if arguments == ["größe.py"] else 0, b"")
    assert done.stdout


if sys.platform == "linux":

    @pytest.mark.parametrize(
        "arguments", [["a.py"], ["a.py", "--output-format=json"], ["--version"], ["explain", "b.py"], ["rule", "--all"]]
    )
    def test_a_full_disk_is_an_error_not_a_bug(arguments: list[str]) -> None:
        _write("a.py", "def forward(:\n")
        shutil.copy(ROOT / "fixtures" / "programs" / "broken" / "checkpoint.py", "b.py")
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                [sys.executable, "-m", "ctxlint", *arguments],
                stdout=full,
                stderr=subprocess.PIPE,
                check=False,
                env=_environment(),
            )
        assert (done.returncode, done.stderr) == (2, b"ctxlint: error: No space left on device\n")


if sys.platform != "win32":

    @pytest.mark.parametrize(
        ("command", "code"),
        [
            ("a.py >&-", 1),
            ("a.py 2>&-", 1),
            ("a.py --output-format=json -v >&- 2>&-", 1),
            ("--version >&-", 0),
            ("config >&-", 0),
            ("explain b.py >&-", 0),
            ("- <&-", 0),
        ],
    )
    def test_a_closed_stream_is_an_empty_one(command: str, code: int) -> None:
        _write("a.py", "def forward(:\n")
        shutil.copy(ROOT / "fixtures" / "programs" / "broken" / "checkpoint.py", "b.py")
        done = subprocess.run(
            f"exec {shlex.quote(sys.executable)} -m ctxlint {command}",
            shell=True,
            capture_output=True,
            check=False,
            env=_environment(),
        )
        assert (done.returncode, done.stderr) == (code, b"")

    def test_ctrl_c_ends_quietly() -> None:
        process = subprocess.Popen(
            [sys.executable, "-m", "ctxlint", "-"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(),
        )
        import fcntl
        import termios

        assert process.stdin is not None
        process.stdin.write(b"import torch\n")
        process.stdin.flush()
        unread = array.array("i", [1])
        while unread[0] and process.poll() is None:  # then it waits for more
            time.sleep(0.02)
            fcntl.ioctl(process.stdin, termios.FIONREAD, unread)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out, err) == (130, b"", b"")
