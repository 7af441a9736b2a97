"""The style of messages: what CONTRIBUTING.md requires under "Write a message", as far as it can be checked."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from ctxlint.model.function import FunctionClass
from ctxlint.rules import all_rules
from ctxlint.rules.wording import if_it_gets_there, length_of
from tests.fixture_reader import rule_fixtures
from tests.linting import findings_in, shared_out

if TYPE_CHECKING:
    from ctxlint.diagnostic import Diagnostic

CODES = [rule.code for rule in all_rules()]
SAY_WHAT_TO_WRITE = [code for code in CODES if code not in ("CTX901", "CTX902")]
"""All but those about a file that could not be read."""
LONGEST = 235
"""CTX801 with a keyword-only argument is the longest message of the fixtures, with 231 characters."""
LONGEST_TITLE = 60
IMPERATIVES = frozenset(
    [
        "Add",
        "Ask",
        "Bind",
        "Call",
        "Collect",
        "Compute",
        "Copy",
        "Correct",
        "Count",
        "Define",
        "Derive",
        "Drop",
        "Exchange",
        "Give",
        "Handle",
        "Import",
        "Keep",
        "Leave",
        "Make",
        "Mark",
        "Move",
        "Multiply",
        "Name",
        "Pass",
        "Put",
        "Remove",
        "Rename",
        "Return",
        "Save",
        "Set",
        "Take",
        "Test",
        "Unpack",
        "Use",
        "Work",
        "Write",
    ]
)
TITLES = IMPERATIVES | {"Merge", "Read", "Split", "Store"}
NOT_OUR_WORDS = re.compile(
    r"\b(may|might|should|please|simply|just|maybe|throws?|fails|crashes)\b|!",
    re.IGNORECASE,
)
ERRORS = re.compile(r"\b(?:[A-Z][a-z]+)+Error\b")


def _findings(code: str = "") -> dict[str, list[Diagnostic]]:
    """What all rules find in all blocks of the fixtures, or of one rule's fixture, by code."""
    found: dict[str, list[Diagnostic]] = {}
    for fixture in shared_out(rule_fixtures()):
        if not fixture.code.startswith(code.upper()):
            continue
        for case in fixture.cases:
            for each in findings_in(case):
                found.setdefault(each.code, []).append(each)
    return found


@pytest.fixture(scope="module")
def findings(pytestconfig: pytest.Config) -> dict[str, list[Diagnostic]]:
    return _findings(pytestconfig.getoption("rule") or "")


def _without_code(text: str) -> str:
    """``text`` with ```_``` for everything in backticks: names and code are the user's."""
    return re.sub(r"`[^`]*`", "`_`", text)


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=\.) (?=[A-Z])", _without_code(text))


def _messages(findings: dict[str, list[Diagnostic]], code: str) -> list[str]:
    return sorted({each.message for each in findings.get(code, [])})


@pytest.mark.parametrize("code", CODES)
def test_a_message_is_one_line_in_plain_type(findings: dict[str, list[Diagnostic]], code: str) -> None:
    for message in _messages(findings, code):
        assert message == message.strip(), message
        assert "  " not in message, message
        assert "\n" not in message, message
        assert message.count("`") % 2 == 0, message
        assert message.isprintable(), message
        assert re.match(r"`|[A-Z]", message), message
        assert message.endswith("."), message


@pytest.mark.parametrize("code", CODES)
def test_a_message_is_short(findings: dict[str, list[Diagnostic]], code: str) -> None:
    for message in _messages(findings, code):
        assert len(message) <= LONGEST, (len(message), message)


CONDITIONAL = [rule.code for rule in all_rules() if rule.subject is FunctionClass and not rule.says_if_it_runs]
"""The rules to whose messages ``run.check_file`` adds the condition that nothing raises before."""


@pytest.mark.parametrize("code", CONDITIONAL)
def test_a_message_is_short_under_a_condition_more(findings: dict[str, list[Diagnostic]], code: str) -> None:
    for message in _messages(findings, code):
        longer = if_it_gets_there("backward", message)
        assert length_of(longer) <= LONGEST, (len(longer), longer)


@pytest.mark.parametrize("code", SAY_WHAT_TO_WRITE)
def test_a_message_says_what_is_wrong_and_then_what_to_write(findings: dict[str, list[Diagnostic]], code: str) -> None:
    """Two sentences; the second is an imperative."""
    for message in _messages(findings, code):
        fact, *advice = _sentences(message)
        assert len(advice) == 1, message
        assert advice[0].split()[0].rstrip(".") in IMPERATIVES, message
        assert fact.count(";") <= 1, message


@pytest.mark.parametrize("code", SAY_WHAT_TO_WRITE)
def test_what_torch_does_follows_a_semicolon(findings: dict[str, list[Diagnostic]], code: str) -> None:
    """The fact comes first, then the exception."""
    for message in _messages(findings, code):
        text = _without_code(message)
        if ERRORS.search(text):
            fact, semicolon, effect = text.partition(";")
            assert semicolon, message
            assert not ERRORS.search(fact), message
            assert re.search(r"\brais(?:es|e|ing)\b", effect), message


@pytest.mark.parametrize("code", SAY_WHAT_TO_WRITE)
def test_a_message_keeps_to_our_words(findings: dict[str, list[Diagnostic]], code: str) -> None:
    for message in _messages(findings, code):
        text = _without_code(message)
        assert not NOT_OUR_WORDS.search(text), message
        assert ":" not in text.replace(": `_`", "").replace("(`_`: ", "("), message
        assert not re.search(r"\b(?:None|True|False)\b|\w_\w|\bctx\.\w", text), f"code without backticks in {message}"


NAMES_OF_THE_MODEL = re.compile(r"\blocal:|\bbuiltins\.|<locals>|\w@\d|\bTri\.|\b(?:Fresh|Opaque|Parameter)\(")
"""How the model tells apart what has the same name, and what its values look like."""


def test_names_of_the_model_reach_nobody(findings: dict[str, list[Diagnostic]]) -> None:
    """Messages, notes and titles of fixes use the user's own names."""
    every = [each for found in findings.values() for each in found]
    assert len(every) > 1_000
    for each in every:
        texts = [each.message, *(note.message for note in each.related), each.fix.message if each.fix else ""]
        for text in texts:
            assert not NAMES_OF_THE_MODEL.search(text), text


@pytest.mark.parametrize("code", CODES)
def test_a_fix_says_what_it_does(findings: dict[str, list[Diagnostic]], code: str) -> None:
    """Its title is an imperative without a full stop."""
    for title in {each.fix.message for each in findings.get(code, []) if each.fix is not None}:
        assert title == title.strip(), title
        assert title.split()[0] in TITLES, title
        assert not title.endswith("."), title
        assert title.count("`") % 2 == 0, title
        assert len(_without_code(title)) <= LONGEST_TITLE, title


def test_each_rule_speaks_in_the_fixtures(findings: dict[str, list[Diagnostic]]) -> None:
    assert set(CODES) - set(findings) <= {"CTX902", "CTX910"}
