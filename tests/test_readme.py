"""The README keeps its word: its commands are there as promised, its sessions are real, its table is complete.

``python -m tests.test_readme`` writes the table of rules, and what its sessions print, into the README, and the JSON
Schema of the configuration beside the other documents.
"""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path

import pytest

from ctxlint.json_schema import json_schema
from ctxlint.result import INTERNAL_ERROR
from ctxlint.rules import all_rules
from ctxlint.rules.base import FixAvailability
from ctxlint.settings import Settings
from tests.console import replay, run_ctxlint
from tests.fixture_reader import ROOT, fenced_blocks, programs
from tests.linting import settings_from

README = ROOT / "README.md"
WITH_SESSIONS = (README, ROOT / "docs" / "explain.md")
SCHEMA = ROOT / "docs" / "ctxlint.schema.json"
SETUP = "python3 -m venv .venv && . .venv/bin/activate && "
_TABLE = re.compile(r"(?<=<!-- rules -->\n).*?(?=<!-- /rules -->)", re.DOTALL)


def rules_table() -> str:
    """The table of all rules, as Markdown."""
    mends = {FixAvailability.ALWAYS: "yes", FixAvailability.SOMETIMES: "sometimes", FixAvailability.NEVER: ""}
    rows = ["| code | name | default | fix | what it finds |", "|---|---|---|---|---|"]
    for rule in all_rules():
        page = (type(rule).__doc__ or "").split("## What it does\n", 1)[1]
        first = re.split(r"(?<=[.:])\s", page.strip(), maxsplit=1)[0]
        summary = " ".join(first.rstrip(".:").split()).removeprefix("Reports ").replace("|", "\\|")
        default = "on" if rule.default else "off"
        rows.append(f"| {rule.code} | {rule.name} | {default} | {mends[rule.fix]} | {summary} |")
    return "\n".join(rows) + "\n"


def _blocks(text: str, language: str) -> list[str]:
    return [block.text for block in fenced_blocks(text) if block.language == language]


def _replayed(document: str, session: str, folder: Path) -> str:
    """A console block as it really looks, in a folder with the files that the document shows."""
    for text in _blocks(document, "py"):
        named = re.match(r"# (\w+\.py)\n", text)
        if named:
            (folder / named[1]).write_text(text, encoding="utf-8")
    return replay(session, folder)


def test_the_two_commands_are_as_promised() -> None:
    commands = _blocks(README.read_text(encoding="utf-8"), "sh")
    assert commands[0] == f"{SETUP}pip install . && ctxlint --exit-zero fixtures/programs\n"
    assert commands[1] == f'{SETUP}pip install -e ".[test]" && pytest\n'


def test_the_first_command_finds_something_and_succeeds() -> None:
    code, output = run_ctxlint(["--exit-zero", "fixtures/programs"], ROOT)
    assert code == 0
    places = re.findall(r"^CTX.*\n *--> fixtures/programs/(.*?):(\d+):\d+$", output, re.MULTILINE)
    wanted = [(str(program), str(mark.line)) for program in programs("broken") for mark in program.marked.marks]
    assert sorted(places) == sorted(wanted)


@pytest.mark.parametrize("path", WITH_SESSIONS, ids=lambda path: path.name)
def test_sessions_print_what_they_show(path: Path, tmp_path: Path) -> None:
    document = path.read_text(encoding="utf-8")
    sessions = _blocks(document, "console")
    assert sessions
    for session in sessions:
        assert _replayed(document, session, tmp_path) == session


def test_the_table_names_every_rule() -> None:
    found = _TABLE.search(README.read_text(encoding="utf-8"))
    assert found
    assert found[0] == rules_table(), "`python -m tests.test_readme` writes the table anew"


def test_the_configuration_is_valid() -> None:
    blocks = _blocks(README.read_text(encoding="utf-8"), "toml")
    ours = [text.replace("[tool.ctxlint]\n", "") for text in blocks if "[tool.ctxlint]" in text]
    assert ours
    for text in ours:
        assert settings_from(text) != Settings()


def schema_text() -> str:
    """What ``docs/ctxlint.schema.json`` has to say."""
    return json.dumps(json_schema(), indent=2) + "\n"


def test_the_schema_is_up_to_date() -> None:
    message = "`python -m tests.test_readme` writes the schema anew"
    assert SCHEMA.read_text(encoding="utf-8") == schema_text(), message


if __name__ == "__main__":
    SCHEMA.write_text(schema_text(), encoding="utf-8")
    for path in WITH_SESSIONS:
        document = _TABLE.sub(lambda _: rules_table(), path.read_text(encoding="utf-8"))
        for each in _blocks(document, "console"):
            with tempfile.TemporaryDirectory() as scratch:
                shown = _replayed(document, each, Path(scratch))
            if INTERNAL_ERROR in shown:
                raise SystemExit(shown)
            document = document.replace(each, shown)
        path.write_text(document, encoding="utf-8")
