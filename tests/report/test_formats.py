"""The machine-readable formats. The formats for people are tested in test_cli.py."""

from __future__ import annotations

import json
import ntpath
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from ctxlint import __version__
from ctxlint.config.settings import FORMATS, Settings
from ctxlint.report import Report, render
from ctxlint.report.sarif import _described
from ctxlint.result import FileResult, io_error
from ctxlint.rules import all_rules
from ctxlint.rules.page import section_of
from ctxlint.run.lint_file import check_source
from ctxlint.source.source import Source
from tests import stand_ins
from tests.stand_ins import CANDIDATE

if TYPE_CHECKING:
    from ctxlint.rules.base import Rule


@pytest.fixture(autouse=True)
def _rules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stand_ins.install(monkeypatch)
    monkeypatch.chdir(tmp_path)


def _result(path: str, text: str) -> FileResult:
    return check_source(Source(path, CANDIDATE + text), Settings())


def _report(*results: FileResult) -> Report:
    return Report(results or (_result("a.py", "é = wrong\n"), _result("b.py", "plain = 1\nrisky = 2\n")))


def _render(output_format: str, *results: FileResult) -> str:
    return "".join(render(_report(*results), output_format))


@pytest.mark.parametrize("output_format", FORMATS)
def test_every_format_writes_something_for_every_kind_of_result(output_format: str) -> None:
    missing = FileResult("gone.py", diagnostics=(io_error("gone.py", "No such file or directory"),))
    text = _render(output_format, _result("a.py", "wrong = vague\n"), missing)
    for word in ("CTX211", "CTX213", "CTX902", "`wrong` is found", "No such file or directory"):
        assert word in text
    assert text.endswith("\n")


@pytest.mark.parametrize("output_format", FORMATS)
def test_every_format_knows_a_clean_run(output_format: str) -> None:
    text = "".join(render(Report(()), output_format))
    assert "CTX" not in text
    assert bool(text) == (output_format in ("json", "gitlab", "junit", "sarif", "rdjson"))


def test_json_lines_are_the_records_of_json() -> None:
    lines = _render("json-lines").splitlines()
    assert [json.loads(line) for line in lines] == json.loads(_render("json"))
    assert lines[0].startswith('{"cell":null,"code":"CTX211","end_location":{"column":10,"row":2},"filename":')


def test_grouped() -> None:
    text = _render("grouped", _result("a.py", "\n" * 8 + "é = wrong = plain\n"), _result("b.py", "plain = 1\n"))
    assert text == (
        "a.py:\n  10:5  CTX211 [*] `wrong` is found\n  10:13 CTX301 `plain` is found\n\n"
        "b.py:\n  2:1 CTX301 `plain` is found\n\n"
        "Found 3 errors.\n[*] 1 fixable with `--fix`.\n"
    )


def test_pylint() -> None:
    assert _render("pylint").splitlines()[0] == "a.py:2: [CTX211] `wrong` is found"


def test_github() -> None:
    lines = _render("github", _result("a,b:50%.py", "wrong = 1\n"), _result("b.py", "risky = 2\n")).splitlines()
    file = os.path.abspath("a,b:50%.py").replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
    assert lines[0] == (
        f"::error title=ctxlint (CTX211),file={file},line=2,col=1,endLine=2,endColumn=6"
        "::a,b:50%25.py:2:1: CTX211 `wrong` is found%0A  help: Write `right`"
    )
    assert lines[1].startswith("::warning title=ctxlint (CTX212),")


def test_azure() -> None:
    assert _render("azure").splitlines()[0] == (
        f"##vso[task.logissue type=error;sourcepath={os.path.abspath('a.py')};linenumber=2;columnnumber=5;"
        "code=CTX211;]`wrong` is found"
    )


def test_rdjson() -> None:
    document = json.loads(_render("rdjson"))
    assert document["source"] == {"name": "ctxlint", "url": "https://github.com/ctxlint/ctxlint"}
    place = {"end": {"column": 11, "line": 2}, "start": {"column": 6, "line": 2}}  # in bytes
    assert document["diagnostics"][0] == {
        "code": {
            "url": "https://ctxlint.github.io/ctxlint/rules/CTX211/",
            "value": "CTX211",
        },
        "location": {"path": os.path.abspath("a.py"), "range": place},
        "message": "`wrong` is found",
        "severity": "ERROR",
        "suggestions": [{"range": place, "text": "right"}],
    }


def test_gitlab() -> None:
    first, *_ = json.loads(_render("gitlab"))
    assert re.fullmatch("[0-9a-f]{16}", first.pop("fingerprint"))
    assert first == {
        "check_name": "CTX211",
        "description": "CTX211: `wrong` is found",
        "severity": "major",
        "location": {
            "path": "a.py",
            "positions": {"begin": {"line": 2, "column": 5}, "end": {"line": 2, "column": 10}},
        },
    }


def test_fingerprints_do_not_depend_on_line_numbers_and_differ() -> None:
    def fingerprints(text: str) -> list[str]:
        return [each["fingerprint"] for each in json.loads(_render("gitlab", _result("a.py", text)))]

    before = fingerprints("wrong = wrong\nx = wrong\n")
    assert len(set(before)) == 3
    assert fingerprints("\n\n# more\nwrong  =  wrong\n    \nx = wrong\n") == before


def test_junit() -> None:
    text = _render("junit", _result("a & <b>.py", 'x = "wrong"\n'), _result("c.py", "plain = 1\nrisky = 2\n"))
    root = ET.fromstring(text)
    assert root.attrib == {"name": "ctxlint", "tests": "3", "failures": "3", "errors": "0"}
    assert [suite.attrib["name"] for suite in root] == [os.path.abspath("a & <b>.py"), os.path.abspath("c.py")]
    case = root[0][0]
    assert case.attrib == {"name": "CTX211", "classname": os.path.abspath("a & <b>.py")}
    assert case[0].attrib == {"message": "`wrong` is found", "type": "wrong-word"}
    assert case[0].text == "line 2, col 6, `wrong` is found"
    clean = ET.fromstring("".join(render(Report(()), "junit")))
    assert (clean.attrib["tests"], clean.attrib["failures"]) == ("1", "0")


def test_junit_holds_no_character_that_xml_forbids() -> None:
    bad = FileResult("a.py", diagnostics=(io_error("a.py", "odd \x00 \x1b \ud800 text"),))
    assert "odd \ufffd \ufffd \ufffd text" in _render("junit", bad)


def test_sarif() -> None:
    document = json.loads(_render("sarif", _result("sub folder/ä.py", "x = '''\n''' + plain + risky\n")))
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    driver = run["tool"]["driver"]
    assert (driver["name"], driver["version"]) == ("ctxlint", __version__)
    assert [rule["id"] for rule in driver["rules"]] == ["CTX212", "CTX301"]
    assert set(driver["rules"][0]) == {
        "id", "name", "shortDescription", "fullDescription", "help", "helpUri", "defaultConfiguration", "properties",
    }  # fmt: skip
    assert driver["rules"][0]["defaultConfiguration"] == {"level": "warning", "enabled": True}
    assert run["columnKind"] == "unicodeCodePoints"
    assert list(run["originalUriBaseIds"]) == ["%SRCROOT%"]
    assert run["invocations"] == [{"executionSuccessful": True}]
    plain, risky = run["results"]
    assert (plain["ruleId"], plain["ruleIndex"], plain["level"]) == ("CTX301", 1, "error")
    assert (risky["ruleId"], risky["ruleIndex"], risky["level"]) == ("CTX212", 0, "warning")
    region = {"startLine": 3, "startColumn": 7, "endLine": 3, "endColumn": 12}
    assert plain["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "sub%20folder/%C3%A4.py", "uriBaseId": "%SRCROOT%"},
                "region": {**region, "snippet": {"text": "plain"}},
                "contextRegion": {"startLine": 3, "endLine": 3, "snippet": {"text": "''' + plain + risky\n"}},
            }
        }
    ]
    assert plain["relatedLocations"][0]["message"] == {"text": "the line starts here"}
    assert re.fullmatch("[0-9a-f]{16}", plain["partialFingerprints"]["ctxlint/v1"])
    assert "fixes" not in plain
    assert risky["fixes"][0]["artifactChanges"][0]["replacements"] == [
        {
            "deletedRegion": {"startLine": 3, "startColumn": 15, "endLine": 3, "endColumn": 20},
            "insertedContent": {"text": "tame"},
        }
    ]


def test_sarif_says_when_ctxlint_failed() -> None:
    def run(text: str) -> Any:
        return json.loads(_render("sarif", _result("a.py", text)))["runs"][0]

    assert run("crash = 1\n")["invocations"] == [{"executionSuccessful": False}]
    assert {"id": "CTX900", "name": "InternalError"}.items() <= run("crash = 1\n")["tool"]["driver"]["rules"][
        -1
    ].items()


def test_files_outside_the_current_folder_are_named_in_full() -> None:
    outside = str(Path("..", "a.py"))
    uri = json.loads(_render("sarif", _result(outside, "plain = 1\n")))["runs"][0]["results"][0]["locations"][0]
    assert uri["physicalLocation"]["artifactLocation"] == {"uri": f"file://{Path(outside).resolve().as_posix()}"}


def test_sarif_names_files_on_another_drive(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows: there is no relative path to it, and the absolute one starts with a drive letter."""
    result = _result(r"D:\checkout\a b.py", "plain = 1\n")

    def no_relative_path(*_: object) -> str:
        raise ValueError("path is on mount 'D:', start on mount 'C:'")

    monkeypatch.setattr(os.path, "relpath", no_relative_path)
    monkeypatch.setattr(os.path, "isabs", ntpath.isabs)
    monkeypatch.setattr(os, "sep", ntpath.sep)
    [run] = json.loads(_render("sarif", result))["runs"]
    [location] = run["results"][0]["locations"]
    assert location["physicalLocation"]["artifactLocation"] == {"uri": "file:///D:/checkout/a%20b.py"}


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_sarif_describes_a_rule(rule: Rule[Any]) -> None:
    described = _described(rule)
    short, full = described["shortDescription"]["text"], described["fullDescription"]["text"]
    assert re.fullmatch(r"Reports .+\.", short)
    assert full
    assert "\n" not in full.replace("\n\n", "").replace("\n- ", "")
    assert full.count("\n- ") == section_of(rule, "Why is this bad?").count("\n- ")
    assert described["help"]["markdown"].startswith(f"# {rule.name} ({rule.code})\n")
