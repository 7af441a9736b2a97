"""The documents are true: commands work, sessions and programs are real, tables are complete.

``python -m tests.test_readme`` writes what sessions and programs print, the tables of rules, and the JSON Schema of the
configuration.
"""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path

import pytest

from ctxlint.addresses import rule_page
from ctxlint.config.json_schema import json_schema
from ctxlint.config.settings import INTERNAL_ERROR, Settings
from ctxlint.rules import all_rules
from tests.console import run_ctxlint
from tests.documents import as_it_is
from tests.fixture_reader import ROOT, fenced_blocks, programs
from tests.linting import settings_from
from website.rule_pages import finds

README = ROOT / "README.md"
CHINESE = ROOT / "README.zh-CN.md"
DOCS = ROOT / "docs"
REAL = (README, CHINESE, DOCS / "explain.md", DOCS / "tutorial.md", ROOT / "website" / "kinds.md")
"""The documents whose sessions and programs are real."""

SCHEMA = DOCS / "ctxlint.schema.json"
SETUP = "python3 -m venv .venv && . .venv/bin/activate && "
FIRST = "fixtures/programs/broken/tensor_times_constant.py"
SCREEN = 50
"""The lines that fit on a screen."""

SHOWN = ("CTX203", "CTX205", "CTX209", "CTX212", "CTX301", "CTX303", "CTX307", "CTX313", "CTX401", "CTX404")
_TABLE = re.compile(r"(?<=<!-- rules -->\n).*?(?=<!-- /rules -->)", re.DOTALL)


def rules_table() -> str:
    """The table of the README: ten rules, as Markdown."""
    rows = ["| code | name | what it finds |", "|---|---|---|"]
    for rule in all_rules():
        if rule.code in SHOWN:
            text = finds(rule).replace("|", "\\|")
            rows.append(f"| [{rule.code}]({rule_page(rule.code)}) | {rule.name} | {text} |")
    return "\n".join(rows) + "\n"


def _blocks(text: str, language: str) -> list[str]:
    return [block.text for block in fenced_blocks(text) if block.language == language]


def test_the_two_commands_are_as_promised() -> None:
    commands = _blocks(README.read_text(encoding="utf-8"), "sh")
    assert commands[0] == f"{SETUP}pip install . && ctxlint --exit-zero {FIRST}\n"
    assert commands[1] == f'{SETUP}pip install -e ".[test]" && pytest\n'


def test_the_first_command_shows_findings_on_one_screen_and_succeeds() -> None:
    code, output = run_ctxlint(["--exit-zero", FIRST], ROOT)
    assert (code, output.count("\n") <= SCREEN) == (0, True)
    assert "CTX203" in output


def test_all_findings_in_the_programs_are_marked() -> None:
    code, output = run_ctxlint(["--exit-zero", "fixtures/programs"], ROOT)
    assert code == 0
    places = re.findall(r"^CTX.*\n *--> fixtures/programs/(.*?):(\d+):\d+$", output, re.MULTILINE)
    wanted = [(str(program), str(mark.line)) for program in programs("broken") for mark in program.marked.marks]
    assert sorted(places) == sorted(wanted)


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_sessions_and_programs_print_what_is_shown(path: Path, tmp_path: Path) -> None:
    document = path.read_text(encoding="utf-8")
    assert as_it_is(document, tmp_path) == document, "`python -m tests.test_readme` writes it again"


def test_the_table_of_rules_is_up_to_date() -> None:
    found = _TABLE.search(README.read_text(encoding="utf-8"))
    assert found
    assert found[0] == rules_table(), "`python -m tests.test_readme` writes the table again"


def test_it_is_short_and_shows_whole_on_pypi() -> None:
    text = README.read_text(encoding="utf-8")
    assert text.count("\n") <= 200
    assert all(target.startswith("https://") for target in re.findall(r"\]\(([^)\s]+)\)", text))


def test_the_configuration_is_valid() -> None:
    blocks = _blocks(README.read_text(encoding="utf-8"), "toml")
    ours = [text.replace("[tool.ctxlint]\n", "") for text in blocks if "[tool.ctxlint]" in text]
    assert ours
    for text in ours:
        assert settings_from(text) != Settings()


def test_the_chinese_readme_has_the_same_structure() -> None:
    english, chinese = (path.read_text(encoding="utf-8") for path in (README, CHINESE))
    assert _structure(chinese) == _structure(english)


def _structure(text: str) -> list[str]:
    """What a translation keeps: the levels of headings, code without its comments, rows of tables, addresses."""
    plain = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return [
        *(line.partition(" ")[0] for line in plain.splitlines() if line.startswith("#")),
        *(f"{block.language}\n{re.sub(r' *# .*', '', block.text)}" for block in fenced_blocks(text)),
        *(line.count("|") * "|" for line in plain.splitlines() if line.startswith("|")),
        *sorted(set(re.findall(r"\]\((https://[^)\s]+)\)", text)) - {_OTHER[0], _OTHER[1]}),
    ]


_OTHER = tuple(f"https://github.com/ctxlint/ctxlint/blob/main/{path.name}" for path in (README, CHINESE))


def schema_text() -> str:
    """The content of ``docs/ctxlint.schema.json``."""
    return json.dumps(json_schema(), indent=2) + "\n"


def test_the_schema_is_up_to_date() -> None:
    message = "`python -m tests.test_readme` writes the schema again"
    assert SCHEMA.read_text(encoding="utf-8") == schema_text(), message


if __name__ == "__main__":
    SCHEMA.write_text(schema_text(), encoding="utf-8")
    for path in REAL:
        document = path.read_text(encoding="utf-8")
        if path == README:
            document = _TABLE.sub(lambda _: rules_table(), document)
        with tempfile.TemporaryDirectory() as scratch:
            shown = as_it_is(document, Path(scratch))
        if INTERNAL_ERROR in shown:
            raise SystemExit(shown)
        path.write_text(shown, encoding="utf-8")
