"""The same program gets the same findings and fixes, however many files it is split into."""

from __future__ import annotations

import ast
import re

import pytest

from ctxlint.config.settings import Settings
from tests.fixture_reader import Case, Fixture, Program, programs, rule_fixtures
from tests.linting import findings_in
from tests.splitting import EVERY_RULE, WITH_LAYOUT_ON_DEMAND, Found, differences, findings, found_in, splits

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
    """The parts are read as with the rules that are on by default; the other tests here run CTX110 on all fixtures."""
    for case in fixture.cases:
        text = case.marked.text
        if case.suffix == ".py" and _parses(text):
            settings = EVERY_RULE if fixture.code == "CTX110" or _IN_FUNCTION(text) else WITH_LAYOUT_ON_DEMAND
            whole = {each for each in _whole(case) if each.code not in settings.ignore}
            assert list(differences(text, 2, whole, settings)) == [], case.place


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
            whole = {each for each in _whole(case) if each.code == fixture.code}
            assert whole == findings(split, only), (case.place, split)


@pytest.mark.parametrize("fixture", rule_fixtures(), ids=lambda each: each.code)
def test_a_case_of_each_fixture_in_three_files(fixture: Fixture) -> None:
    """A sample: for the longest case, the split in the middle of all."""
    cases = [case for case in fixture.cases if case.suffix == ".py" and _parses(case.marked.text)]
    longest = max(cases, key=lambda case: len(case.marked.text), default=None)
    every = list(splits(longest.marked.text, 3)) if longest is not None else []
    if longest is not None and every:
        split = every[len(every) // 2]
        assert _whole(longest) == findings(split), split


def _whole(case: Case) -> set[Found]:
    """What all rules find in a case that is one file, without options: other tests want to know that, too."""
    text = case.marked.text
    return findings({"whole.py": text}) if case.options else found_in(text, findings_in(case))


_IN_FUNCTION = re.compile(r"^def .*\n    class \w+\([\w.]*Function\)", re.MULTILINE).search


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True
