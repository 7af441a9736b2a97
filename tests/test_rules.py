"""Runs all rule fixtures; CONTRIBUTING.md describes their blocks."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import types
from typing import TYPE_CHECKING, Any

import pytest

from ctxlint.diagnostic import Diagnostic
from ctxlint.rules import all_rules
from ctxlint.rules.base import FixAvailability
from ctxlint.rules.page import summary_of
from ctxlint.source.source import WHOLE_FILE
from tests.console import replay
from tests.fixture_reader import RULE_FIXTURES, Block, Fixture, fenced_blocks, rule_fixtures
from tests.linting import apply_fixes, extent_of, found_marks, lint, listing, only_rule, settings_from, with_rule

if TYPE_CHECKING:
    from collections import Counter
    from pathlib import Path

    from ctxlint.rules.base import Rule
    from tests.fixture_reader import Case, FixedCase, Proof, Session

FIXTURES = rule_fixtures()
FIXED = [fixed for fixture in FIXTURES for fixed in fixture.fixed]
RULES = {rule.code: rule for rule in all_rules()}
HEADINGS = (
    "What it does",
    "Why is this bad?",
    "Example",
    "Use instead",
    "Fix safety",
    "Known limits",
    "References",
)


def _place(item: Case | FixedCase | Proof | Session) -> str:
    return str(item.place)


# ---------------------------------------------------------------------------------------------------------------------
# The blocks


def _findings(case: Case, text: str) -> list[Diagnostic]:
    """The findings of the default rules and of the fixture's own rule; with ``only``, of the latter alone."""
    choose = only_rule if case.only else with_rule
    return lint(text, case.path, choose(settings_from(case.options), case.code))


@pytest.mark.parametrize("case", [case for fixture in FIXTURES for case in fixture.cases], ids=_place)
def test_case(case: Case) -> None:
    """Findings start exactly on the lines that the block marks, and start and end at the columns that it names."""
    diagnostics = _findings(case, case.marked.text)
    assert found_marks(diagnostics) == case.marked.marks, listing(diagnostics)
    for extent in case.marked.extents:
        assert extent in map(extent_of, diagnostics), f"{extent} is none of {list(map(extent_of, diagnostics))}"
    for message in case.marked.messages:
        assert any(message in each.message for each in diagnostics), f"{message!r} is not in\n{listing(diagnostics)}"
    notes = [(each.span.start.line, each.message) for diagnostic in diagnostics for each in diagnostic.related]
    for each in diagnostics:
        assert len(set(each.related)) == len(each.related), "a note is repeated"
        plain = [note.span.start for note in each.related if not note.path and "`" not in note.message]
        assert each.span.start not in plain, "a note only points to its finding"
    for line, text in case.marked.notes:
        assert any(line == at and text in note for at, note in notes), f"{text!r} on line {line} is not in {notes}"


if FIXED:  # pytest would count a test without cases as skipped

    @pytest.mark.parametrize("fixed", FIXED, ids=_place)
    def test_fix(fixed: FixedCase) -> None:
        """The fix gives exactly the text of the block, is idempotent, and adds no other finding."""
        case = fixed.case
        settings = only_rule(settings_from(case.options), case.code)
        result = apply_fixes(case.marked.text, case.path, settings, unsafe=not fixed.safe)
        assert result == fixed.text
        assert apply_fixes(result, case.path, settings, unsafe=not fixed.safe) == result
        assert lint(result, case.path, settings) == [] or fixed.safe
        before, after = (_count_by_code(_findings(case, text)) for text in (case.marked.text, result))
        assert not after - before, "the fix brings new findings"


def _count_by_code(diagnostics: list[Diagnostic]) -> Counter[str]:
    from collections import Counter

    return Counter(each.code for each in diagnostics)


@pytest.mark.parametrize("session", [session for fixture in FIXTURES for session in fixture.sessions], ids=_place)
def test_session(session: Session, tmp_path: Path) -> None:
    """The commands of a console block print what the block says."""
    assert replay(session.text, tmp_path) == session.text


@pytest.mark.parametrize("proof", [proof for fixture in FIXTURES for proof in fixture.proofs], ids=_place)
@pytest.mark.usefixtures("torch_as_new")
def test_proof(proof: Proof, monkeypatch: pytest.MonkeyPatch) -> None:
    """The claims of the fixture about torch, of which there is at least one, hold on the installed torch."""
    # Empty lines in front, so that a traceback names the fixture's own lines.
    program = ast.parse("\n" * proof.place.line + proof.text)
    assert any(map(_claims, ast.walk(program)))
    module = types.ModuleType("proof")
    monkeypatch.setitem(sys.modules, "proof", module)
    module.__dict__.update(source=proof.source, fixed=proof.fixed)
    exec(compile(program, str(proof.place.fixture), "exec", dont_inherit=True), module.__dict__)


def _claims(node: ast.AST) -> bool:
    return isinstance(node, (ast.Assert, ast.Raise)) or (isinstance(node, ast.Attribute) and node.attr == "raises")


# ---------------------------------------------------------------------------------------------------------------------
# A rule and its fixture belong together


def test_each_rule_has_its_fixture_and_each_fixture_its_rule() -> None:
    wanted = {f"{rule.code}-{rule.name}.md" for rule in RULES.values()}
    assert {path.name for path in RULE_FIXTURES.iterdir()} == wanted


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.path.stem)
def test_a_fixture_demands_findings_and_silence(fixture: Fixture) -> None:
    assert fixture.expectations > 0, "no block demands a finding of this rule"
    if fixture.cases:
        assert any(not case.marked.marks for case in fixture.cases), "no block says what is legal"


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.path.stem)
def test_a_claim_about_torch_is_proved(fixture: Fixture) -> None:
    rule = RULES[fixture.code]
    if rule.default and "CTX101" <= rule.code <= "CTX899":
        assert fixture.proofs, "a rule that is on by default shows on torch why"


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.path.stem)
def test_a_rule_with_a_fix_shows_it(fixture: Fixture) -> None:
    assert bool(fixture.fixed) == (RULES[fixture.code].fix is not FixAvailability.NEVER)


# ---------------------------------------------------------------------------------------------------------------------
# A rule's page


def _page(rule: Rule[Any]) -> str:
    return inspect.cleandoc(type(rule).__doc__ or "")


def _section(page: str, heading: str) -> str:
    """The text under ``## heading``."""
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    assert found, f"the page has no heading `## {heading}`"
    return found[1]


def _python(section: str) -> list[Block]:
    return [block for block in fenced_blocks(section) if block.language in ("py", "python")]


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.code)
def test_a_page_has_all_headings(rule: Rule[Any]) -> None:
    page = _page(rule)
    assert tuple(re.findall(r"^## (.*)$", page, re.MULTILINE)) == HEADINGS
    for heading in HEADINGS:
        assert _section(page, heading).strip(), f"nothing stands under `{heading}`"


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.code)
def test_a_page_shows_what_triggers_the_rule_and_what_does_not(rule: Rule[Any]) -> None:
    page = _page(rule)
    bad, good = _python(_section(page, "Example")), _python(_section(page, "Use instead"))
    if rule.code in ("CTX902", "CTX903"):  # no code shows a file that cannot be read, no short one takes too much work
        return
    assert bad, "Example holds no block of Python"
    assert good, "Use instead holds no block of Python"
    for block in bad:
        diagnostics = lint(block.text, settings=only_rule(settings_from(""), rule.code))
        assert {each.code for each in diagnostics} == {rule.code}, f"not found in:\n{block.text}"
    for block in good:
        diagnostics = lint(block.text, settings=with_rule(settings_from(""), rule.code))
        assert diagnostics == [], listing(diagnostics)


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.code)
def test_the_link_of_a_finding_is_the_page_of_its_rule(rule: Rule[Any]) -> None:
    finding = Diagnostic("a.py", WHOLE_FILE, rule.code, rule.name, "")
    assert finding.url == f"https://ctxlint.github.io/ctxlint/rules/{rule.code}/"


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.code)
def test_the_summary_of_a_rule_is_a_whole_sentence(rule: Rule[Any]) -> None:
    assert re.fullmatch(r"Reports .+\.", summary_of(rule))
