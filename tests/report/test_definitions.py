"""Formats whose published definition is in no package, checked against a copy: JUnit's XML and reviewdog's JSON.

JUnit: what Jenkins' schema (junit-10.xsd of the xUnit plugin) allows, and what all readers want: totals that are right.
rdjson: the messages of reviewdog's ``proto/rdf/reviewdog.proto``, as JSON writes them. Nothing else may be in either.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import xml.etree.ElementTree as ET
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import jsonschema
import pytest

from tests.console import run_ctxlint
from tests.fixture_reader import ROOT

if TYPE_CHECKING:
    from pathlib import Path

_NOTEBOOK = {
    "cells": [
        {
            "cell_type": "code",
            "execution_count": None,
            "metadata": {},
            "outputs": [],
            "source": "import torch\nclass Cube(torch.autograd.Function):\n    def forward(ctx, x): return x\n",
        }
    ],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All broken programs, a notebook, a file that is not text, one that does not parse, and one without findings."""
    made = tmp_path_factory.mktemp("every <kind> & 'sort'")
    shutil.copytree(ROOT / "fixtures" / "programs" / "broken", made / "broken")
    (made / "book.ipynb").write_text(json.dumps(_NOTEBOOK), encoding="utf-8")
    (made / "latin.py").write_bytes(b"from torch.autograd import Function  # \xe9\n")
    (made / 'br"öken<>&.py').write_text("from torch.autograd import Function\nclass Ä(Function:\n", encoding="utf-8")
    (made / "clean").mkdir()
    (made / "clean" / "clean.py").write_text("x = 1\n", encoding="utf-8")
    return made


@cache
def _reports(folder: Path, output_format: str) -> list[str]:
    """A report with findings of every kind, also those of rules that are off by default, and one without."""
    options = ["--isolated", "--no-cache", "--output-format", output_format]
    code, full = run_ctxlint([*options, "--select", "ALL", ".", "gone.py"], folder)
    clean_code, clean = run_ctxlint(["check", "-q", *options, "clean"], folder)
    assert (code, clean_code) == (1, 0)
    return [full, clean]


# ---------------------------------------------------------------------------------------------------------------------
# JUnit


class Element(NamedTuple):
    """The required and the optional attributes, the allowed children, and whether text is allowed."""

    required: set[str]
    optional: set[str]
    children: set[str]
    text: bool = False


_TOTALS = {"tests", "failures", "errors"}
_JUNIT = {
    "testsuites": Element(set(), {"name", "time", "disabled", *_TOTALS}, {"testsuite"}),
    "testsuite": Element(
        {"name", "tests"},
        {"failures", "errors", "time", "disabled", "skipped", "timestamp", "hostname", "id", "package"},
        {"properties", "testcase", "system-out", "system-err"},
    ),
    "testcase": Element(
        {"name"}, {"classname", "time", "status", "assertions"}, {"skipped", "error", "failure", "system-out"}
    ),
    "failure": Element(set(), {"message", "type"}, set(), text=True),
}


def _check_element(element: ET.Element) -> None:
    allowed = _JUNIT[element.tag]
    given = set(element.attrib)
    assert allowed.required <= given <= allowed.required | allowed.optional, element.tag
    assert {child.tag for child in element} <= allowed.children, element.tag
    assert allowed.text or not (element.text or "").strip(), element.tag
    assert not (element.tail or "").strip(), element.tag
    for child in element:
        _check_element(child)


def test_junit_has_nothing_that_its_schema_does_not_know(folder: Path) -> None:
    for text in _reports(folder, "junit"):
        assert text.startswith('<?xml version="1.0" encoding="UTF-8"?>\n<testsuites ')
        _check_element(ET.fromstring(text.encode()))


def test_the_totals_of_junit_are_right(folder: Path) -> None:
    for text in _reports(folder, "junit"):
        root = ET.fromstring(text.encode())
        suites = list(root)
        assert suites, "a report without any test is a broken one to those who read it"
        for each in (root, *suites):
            cases = list(each.iter("testcase"))
            assert int(each.attrib["tests"]) == len(cases) > 0
            assert int(each.attrib["failures"]) == sum(case.find("failure") is not None for case in cases)
            assert each.attrib["errors"] == "0"
            assert each.get("skipped", "0") == "0"
        names = [suite.attrib["name"] for suite in suites]
        assert len(set(names)) == len(names)


def test_each_failure_of_junit_says_what_and_where(folder: Path) -> None:
    full, _ = _reports(folder, "junit")
    for suite in ET.fromstring(full.encode()):
        path = suite.attrib["name"]
        assert os.path.isabs(path)
        assert os.path.exists(path) or path.endswith("gone.py")
        for case in suite:
            (failure,) = case
            assert re.fullmatch(r"CTX\d{3}", case.attrib["name"])
            assert case.attrib["classname"] == path
            where = r"cell 1, " if path.endswith(".ipynb") else ""
            place = rf"{where}line \d+, col \d+, {re.escape(failure.attrib['message'])}"
            assert re.fullmatch(place, failure.text or "")
            assert re.fullmatch(r"[a-z][a-z-]+", failure.attrib["type"])


# ---------------------------------------------------------------------------------------------------------------------
# rdjson

_TEXT = {"type": "string", "minLength": 1}
_URL = {"type": "string", "pattern": "^https://"}
_POSITION = {
    "type": "object",
    "properties": {"line": {"type": "integer", "minimum": 1}, "column": {"type": "integer", "minimum": 1}},
    "required": ["line"],
    "additionalProperties": False,
}
_RANGE = {
    "type": "object",
    "properties": {"start": _POSITION, "end": _POSITION},
    "required": ["start"],
    "additionalProperties": False,
}
_LOCATION = {
    "type": "object",
    "properties": {"path": _TEXT, "range": _RANGE},
    "required": ["path"],
    "additionalProperties": False,
}
_SEVERITY = {"enum": ["UNKNOWN_SEVERITY", "ERROR", "WARNING", "INFO"]}
_SOURCE = {
    "type": "object",
    "properties": {"name": _TEXT, "url": _URL},
    "additionalProperties": False,
}
_DIAGNOSTIC = {
    "type": "object",
    "properties": {
        "message": _TEXT,
        "location": _LOCATION,
        "severity": _SEVERITY,
        "source": _SOURCE,
        "code": {
            "type": "object",
            "properties": {
                "value": {"type": "string", "pattern": "^CTX[0-9]{3}$"},
                "url": _URL,
            },
            "additionalProperties": False,
        },
        "suggestions": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"range": _RANGE, "text": {"type": "string"}},
                "required": ["range", "text"],
                "additionalProperties": False,
            },
        },
        "original_output": {"type": "string"},
        "related_locations": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"message": _TEXT, "location": _LOCATION},
                "required": ["location"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["message", "location"],
    "additionalProperties": False,
}
_RESULT = {
    "type": "object",
    "properties": {
        "diagnostics": {"type": "array", "items": _DIAGNOSTIC},
        "source": _SOURCE,
        "severity": _SEVERITY,
    },
    "required": ["diagnostics"],
    "additionalProperties": False,
}


def test_rdjson_has_nothing_that_its_definition_does_not_know(folder: Path) -> None:
    full, clean = (json.loads(text) for text in _reports(folder, "rdjson"))
    for document in (full, clean):
        jsonschema.Draft202012Validator(_RESULT).validate(document)
    assert clean["diagnostics"] == []
    assert {"ERROR", "WARNING"} == {each["severity"] for each in full["diagnostics"]}
    assert any("suggestions" in each for each in full["diagnostics"])


def test_ranges_of_rdjson_go_forward(folder: Path) -> None:
    full, _ = (json.loads(text) for text in _reports(folder, "rdjson"))
    for each in full["diagnostics"]:
        for part in (each["location"], *each.get("suggestions", ())):
            start, end = part["range"]["start"], part["range"]["end"]
            assert (start["line"], start["column"]) <= (end["line"], end["column"])
