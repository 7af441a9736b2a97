"""Collect the sources of the site in one folder, and have Zensical turn them into HTML."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from ctxlint.rules import all_rules
from website.reference import changelog, command_line, configuration
from website.rule_pages import groups, rule_index, rule_page
from website.wild import wild_page

ROOT = Path(__file__).parent.parent
TEMPLATE = ROOT / "website" / "zensical.toml"
_TESTED = re.compile(r"^(```py) run$", re.MULTILINE)
_NAVIGATION = "  # the pages of the rules\n"


def generated_pages() -> dict[str, str]:
    """Every generated page, by its path below ``docs/``."""
    return {
        "rules/index.md": rule_index(all_rules()),
        **{f"rules/{rule.code}.md": rule_page(rule) for rule in all_rules()},
        "configuration-reference.md": configuration(),
        "command-line.md": command_line(),
        "changelog.md": changelog((ROOT / "CHANGELOG.md").read_text(encoding="utf-8")),
        "wild.md": wild_page(),
    }


def write_sources(folder: Path) -> None:
    """Write all that Zensical reads into ``folder``, in the place of what is there."""
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(ROOT / "docs", folder / "docs")
    for path, text in generated_pages().items():
        target = folder / "docs" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    _plain_fences(folder / "docs")
    template = TEMPLATE.read_text(encoding="utf-8")
    (folder / "zensical.toml").write_text(template.replace(_NAVIGATION, _navigation()), encoding="utf-8")


def _plain_fences(folder: Path) -> None:
    """Take the words for our tests out of the fences: Markdown of the site knows the language alone."""
    for path in folder.rglob("*.md"):
        path.write_text(_TESTED.sub(r"\1", path.read_text(encoding="utf-8")), encoding="utf-8")


def build(folder: Path) -> Path:
    """Build the site below ``folder``, and return where it is. Raises CalledProcessError for any warning."""
    write_sources(folder)
    subprocess.run([sys.executable, "-m", "zensical", "build", "--strict"], cwd=folder, check=True)
    return folder / "site"


def _navigation() -> str:
    def entry(code: str, name: str) -> str:
        return f'      {{ "{code} {name}" = "rules/{code}.md" }},\n'

    return "".join(
        f'    {{ "{group.title}" = [\n{"".join(entry(rule.code, rule.name) for rule in group.rules)}    ] }},\n'
        for group in groups(all_rules())
    )
