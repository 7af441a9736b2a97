"""What a release needs: one version everywhere, notes, pinned actions, and an sdist with everything that `.ci/run` uses."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from ctxlint import __version__
from ctxlint.rules import all_rules
from tests.fixture_reader import ROOT

if TYPE_CHECKING:
    from pathlib import Path

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
DOCUMENTS = (ROOT / "README.md", ROOT / "README.zh-CN.md", *sorted((ROOT / "docs").glob("*.md")))


def test_the_version_is_the_same_everywhere() -> None:
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"] == __version__
    for name in ("package.json", "package-lock.json"):
        assert json.loads((ROOT / "editors" / "vscode" / name).read_text(encoding="utf-8"))["version"] == __version__
    shown = [
        (path.name, version)
        for path in DOCUMENTS
        for version in re.findall(r"(?:rev: |ctxlint/ctxlint@)v([\d.]+)", path.read_text(encoding="utf-8"))
    ]
    assert shown
    assert {version for _, version in shown} == {__version__}, shown


@pytest.mark.parametrize(("tag", "code"), [(f"v{__version__}", 0), ("v9.9.9", 1)])
def test_the_changelog_has_the_notes_of_the_release(tag: str, code: int) -> None:
    script = ROOT / ".github" / "release_notes.py"
    done = subprocess.run([sys.executable, str(script), tag], capture_output=True, encoding="utf-8", check=False)
    assert (done.returncode, bool(done.stdout.strip())) == (code, not code)


def test_the_changelog_agrees_with_the_citation_and_the_rules() -> None:
    """The date of the release, and a new rule is not older than the section that announces it."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    [date] = re.findall(rf"^## \[{re.escape(__version__)}\] - (\S+)$", text, re.MULTILINE)
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert str(citation["date-released"]) == date
    unreleased = text.partition("## [Unreleased]")[2].partition(f"## [{__version__}]")[0]
    announced = set(re.findall(r"(CTX\d{3}) `[a-z-]+`", unreleased))
    assert [rule.code for rule in all_rules() if rule.code in announced and rule.since == __version__] == []


def test_the_lowest_dependencies_are_versions() -> None:
    script = ROOT / ".github" / "lowest_dependencies.py"
    done = subprocess.run([sys.executable, str(script)], capture_output=True, encoding="utf-8", check=True)
    names = [line.partition("==")[0] for line in done.stdout.splitlines()]
    assert [name for name in names if name != "tomli"] == ["libcst", "packaging", "pathspec"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_and_permissions_are_named(path: Path) -> None:
    workflow: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        assert "permissions" in job
        for step in job.get("steps", ()):
            assert "uses" not in step or re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", step["uses"])


def test_the_sdist_holds_everything(tmp_path: Path) -> None:
    """Tests, fixtures and tools: the suite passes from the unpacked sdist."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    [built] = tmp_path.glob("*.tar.gz")
    with tarfile.open(built) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    folders = (".ci", ".github", "benchmarks", "ctxlint", "docs", "fixtures", "tests", "website")
    wanted = {
        path.relative_to(ROOT).as_posix()
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and not {"__pycache__", ".ctxlint_cache"} & set(path.parts)
    }
    wanted |= {
        "README.md",
        "README.zh-CN.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "LICENSE",
        "pyproject.toml",
        "action.yml",
    }
    wanted |= {".pre-commit-hooks.yaml", ".gitignore", "editors/vscode/test/run.sh", "editors/neovim/ctxlint.lua"}
    assert wanted <= names, sorted(wanted - names)
