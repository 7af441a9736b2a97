"""What the documents and the action tell a continuous integration to run, run."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from ctxlint.commands.arguments import parser
from tests.console import run_ctxlint
from tests.fixture_reader import ROOT, fenced_blocks
from tests.habitats.installing import copy_sources, offline
from tests.habitats.test_flake8 import STASH

if TYPE_CHECKING:
    from pathlib import Path

DOCUMENT = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\W*(?:run: )?ctxlint (check .*)$", DOCUMENT, re.MULTILINE)
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_document_reports(command: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(STASH, encoding="utf-8")
    options = parser().parse_args(command.split()[1:])
    code, output = run_ctxlint(command.split(), tmp_path)
    assert code == (0 if options.exit_zero else 1)
    report = output
    if options.output_file:
        assert output == ""
        report = (tmp_path / options.output_file).read_text(encoding="utf-8")
    assert "CTX301" in report
    if options.output_format in ("sarif", "gitlab"):
        json.loads(report)


def test_the_document_shows_each_system() -> None:
    assert [re.findall(r"--output-format (\w+)", command) for command in COMMANDS] == [
        ["github"],
        ["sarif"],
        ["gitlab"],
        ["junit"],
    ]


def test_each_workflow_is_yaml() -> None:
    blocks = [block.text for block in fenced_blocks(DOCUMENT) if block.language == "yaml"]
    assert len(blocks) == 4
    for text in blocks:
        assert yaml.safe_load(text)


def test_the_document_asks_the_action_for_what_it_takes() -> None:
    workflow = yaml.safe_load(fenced_blocks(DOCUMENT)[0].text)
    [*_, step] = workflow["jobs"]["ctxlint"]["steps"]
    assert step["uses"].startswith("ctxlint/ctxlint@v")
    assert set(step["with"]) <= set(ACTION["inputs"])


def _step(
    step: dict[str, Any], inputs: dict[str, str], folder: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    given = {
        name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: inputs[found[1]], value)
        for name, value in step.get("env", {}).items()
    }
    return subprocess.run(
        [step["shell"], "-e", "-c", step["run"]],
        cwd=folder,
        env={**environment, **given},
        capture_output=True,
        check=False,
        encoding="utf-8",
    )


def test_the_action_installs_ctxlint_and_runs_it(tmp_path: Path) -> None:
    """All its steps, with the environment that GitHub gives them, on this repository."""
    action = tmp_path / "action"
    action.mkdir()
    copy_sources(action)
    for name in ("a.py", "b.py", "c.py"):
        (tmp_path / name).write_text(STASH, encoding="utf-8")
    inputs = {name: each["default"] for name, each in ACTION["inputs"].items()}
    inputs.update(paths="a.py b.py", arguments="--select CTX109")
    environment = {**offline(tmp_path), "RUNNER_TEMP": str(tmp_path), "GITHUB_ACTION_PATH": str(action)}
    *_, done = (_step(step, inputs, tmp_path, environment) for step in ACTION["runs"]["steps"])
    assert (done.returncode, done.stderr) == (1, "")
    assert re.findall(r"^::warning title=ctxlint \((CTX\d+)\),file=.*?/(\w+\.py),", done.stdout, re.MULTILINE) == [
        ("CTX109", "a.py"),
        ("CTX109", "b.py"),
    ]
