"""The same program gets the same findings and fixes, however many files it is split into."""

from __future__ import annotations

import ast
import re

import pytest

from ctxlint.config.settings import Settings
from tests.fixture_reader import Fixture, Program, programs, rule_fixtures
from tests.splitting import differences, findings, splits

PROGRAMS = [program for folder in ("broken", "clean") for program in programs(folder)]


@pytest.mark.parametrize("files", [2, 3])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: f"{program.path.parent.name}-{program.path.stem}")
def test_programs_in_several_files(program: Program, files: int) -> None:
    if program.path.stem == "half_typed":
        return
    assert list(differences(program.marked.text, files)) == []


def test_most_programs_can_be_split() -> None:
    split = [each for each in PROGRAMS if each.path.stem != "half_typed" and any(splits(each.marked.text, 2))]
    assert len(split) > len(PROGRAMS) // 2


@pytest.mark.parametrize("fixture", rule_fixtures(), ids=lambda each: each.code)
def test_fixtures_in_two_files(fixture: Fixture) -> None:
    for case in fixture.cases:
        text = case.marked.text
        if case.suffix == ".py" and _parses(text):
            assert list(differences(text, 2)) == [], case.place


@pytest.mark.parametrize("fixture", rule_fixtures(), ids=lambda each: each.code)
def test_a_rule_alone_in_two_files(fixture: Fixture) -> None:
    """Findings of other rules ask for facts about a Function: this one must ask for its own. A split of each case.

    Functions that a function creates have facts of their own only once there is a finding about them.
    """
    only = Settings(select=(fixture.code,), ignore=("CTX910",))
    for case in fixture.cases:
        text = case.marked.text
        every = list(splits(text, 2)) if case.suffix == ".py" and _parses(text) else []
        if every and not _IN_FUNCTION(text):
            split = every[len(every) // 2]
            assert findings({"whole.py": text}, only) == findings(split, only), (case.place, split)


@pytest.mark.parametrize("fixture", rule_fixtures(), ids=lambda each: each.code)
def test_a_case_of_each_fixture_in_three_files(fixture: Fixture) -> None:
    """A sample: for the longest case, the split in the middle of all."""
    cases = [case for case in fixture.cases if case.suffix == ".py" and _parses(case.marked.text)]
    text = max((case.marked.text for case in cases), key=len, default="")
    every = list(splits(text, 3))
    if every:
        split, whole = every[len(every) // 2], findings({"whole.py": text})
        parts = findings(split)
        assert whole == parts, split


_IN_FUNCTION = re.compile(r"^def .*\n    class \w+\([\w.]*Function\)", re.MULTILINE).search


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True
