"""The pages of the website: one for each rule, complete navigation, and correct examples."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING

import pytest

import ctxlint
from ctxlint.addresses import SITE, rule_page
from ctxlint.commands import COMMANDS
from ctxlint.config.options import OPTIONS
from ctxlint.rule_names import rule_names
from ctxlint.rules import all_rules
from tests.fixture_reader import fenced_blocks
from website.build import TEMPLATE, generated_pages, write_sources
from website.wild import COUNTS, Kind, kinds

if TYPE_CHECKING:
    from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def test_every_rule_has_the_page_that_its_findings_link_to() -> None:
    pages = generated_pages()
    for code, name in rule_names().items():
        path = rule_page(code).removeprefix(SITE).rstrip("/")
        assert f"# {name} ({code})\n" in pages[f"{path}.md"]
        assert f'<a href="{code}/">{code}</a><br>{name}' in pages["rules/index.md"]


def test_every_page_is_in_the_navigation(tmp_path: Path) -> None:
    write_sources(tmp_path / "site")
    text = (tmp_path / "site" / "zensical.toml").read_text(encoding="utf-8")
    linked = set(re.findall(r'"([\w/-]+\.md)"', json.dumps(tomllib.loads(text)["project"]["nav"])))
    docs = tmp_path / "site" / "docs"
    assert linked == {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
    assert not any("```py run" in path.read_text(encoding="utf-8") for path in docs.rglob("*.md"))


def test_links_lead_to_pages_that_exist(tmp_path: Path) -> None:
    write_sources(tmp_path / "site")
    docs = tmp_path / "site" / "docs"
    dead = [
        (path.relative_to(docs).as_posix(), target)
        for path in docs.rglob("*.md")
        for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", _prose(path.read_text(encoding="utf-8")))
        if not (path.parent / target).exists()
    ]
    assert not dead


def test_a_rule_page_links_to_the_other_rules_that_it_mentions() -> None:
    page = generated_pages()["rules/CTX203.md"]
    assert "too-few-gradients ([CTX201](CTX201.md))" in page
    assert "(CTX203.md)" not in page
    assert "](" not in "".join(re.findall(r"```.*?```", page, re.DOTALL))


def _prose(text: str) -> str:
    """The text without code, where brackets mean something else."""
    return re.sub(r"^```.*?^```$|`[^`\n]+`", "", text, flags=re.DOTALL | re.MULTILINE)


def test_the_template_is_the_address_of_the_rules() -> None:
    assert tomllib.loads(TEMPLATE.read_text(encoding="utf-8"))["project"]["site_url"] == SITE


def test_the_reference_names_every_option_and_command() -> None:
    pages = generated_pages()
    for option in OPTIONS:
        assert f"## `{option.key}` " in pages["configuration-reference.md"]
    for command in COMMANDS:
        assert f"## ctxlint {command} " in pages["command-line.md"]
    assert "`--target-torch VERSIONS`" in pages["command-line.md"]


def test_there_are_twenty_kinds() -> None:
    assert len({kind.code for kind in kinds()}) == len(kinds()) == 20


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.code)
def test_the_example_of_a_kind_has_its_defect(kind: Kind) -> None:
    program, output = fenced_blocks(kind.text)
    assert (program.language, output.language) == ("py", "text")
    assert ctxlint.lint_source(program.text)[0].code == kind.code


def test_the_counts_are_of_rules_that_exist() -> None:
    counted = json.loads(COUNTS.read_text(encoding="utf-8"))
    assert set(counted["rules"]) <= {rule.code for rule in all_rules()}
    assert all(0 < each["repositories"] <= counted["repositories"] for each in counted["rules"].values())
