"""The continuous integration configurations of the documents, and the GitHub action, run."""

from __future__ import annotations

import json
import re
import site
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from packaging.requirements import Requirement

from ctxlint.commands.arguments import parser
from tests.console import run_ctxlint
from tests.fixture_reader import ROOT, fenced_blocks
from tests.habitats.installing import PUBLISHED, copy_sources, offline
from tests.habitats.test_flake8 import STASH
from tests.hostile.checkout import build

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from pathlib import Path

DOCUMENT = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
WORKFLOWS = [block.text for block in fenced_blocks(DOCUMENT) if block.language == "yaml"]
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
    assert len(WORKFLOWS) == 6
    for text in WORKFLOWS:
        assert yaml.safe_load(text)


def test_the_document_asks_the_action_for_what_it_takes() -> None:
    workflow = yaml.safe_load(next(text for text in WORKFLOWS if "uses: ctxlint/ctxlint@" in text))
    [*_, step] = workflow["jobs"]["ctxlint"]["steps"]
    assert step["uses"].startswith("ctxlint/ctxlint@v")
    assert set(step["with"]) <= set(ACTION["inputs"])


def _step(
    step: dict[str, Any], inputs: dict[str, str], folder: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a step as GitHub's runner does, with ``folder`` as the checkout."""

    def filled(text: str) -> str:
        return re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: inputs[found[1]], text)

    return subprocess.run(
        [step["shell"], "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
        cwd=folder / filled(step.get("working-directory", ".")),
        env={**environment, **{name: filled(value) for name, value in step.get("env", {}).items()}},
        capture_output=True,
        check=False,
        encoding="utf-8",
    )


def _inputs(given: dict[str, str]) -> dict[str, str]:
    """The inputs of the action, by default as it declares them."""
    defaults = {name: each["default"] for name, each in ACTION["inputs"].items()}
    return {**defaults, **{name.replace("_", "-"): value for name, value in given.items()}}


def _environment(home: Path) -> dict[str, str]:
    """The environment that GitHub gives to the steps of an action, which is this repository."""
    action = home / "action"
    action.mkdir(parents=True)
    copy_sources(action, (*PUBLISHED, "constraints.txt"))
    return {**offline(home), "RUNNER_TEMP": str(home), "GITHUB_ACTION_PATH": str(action), "PIP_NO_DEPS": "1"}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout whose code must not run; whatever runs writes into ``marker`` next to it."""
    folder = tmp_path_factory.mktemp("action")
    checkout = folder / "checkout"
    build(checkout, folder / "marker")
    (checkout / "pip").mkdir()
    for name in ("__init__.py", "__main__.py"):
        (checkout / "pip" / name).write_text((checkout / "pip.py").read_text(encoding="utf-8"), encoding="utf-8")
    (checkout / "pip.py").unlink()
    return checkout


@pytest.fixture(scope="module")
def installed(hostile: Path) -> dict[str, str]:
    """The environment after the install step, run in the hostile checkout; dependencies come from that of the tests."""
    home = hostile.parent / "home"
    environment = _environment(home)
    done = _step(ACTION["runs"]["steps"][0], _inputs({}), hostile, environment)
    assert (done.returncode, done.stderr) == (0, "")
    [packages] = (home / "ctxlint").glob("lib/*/site-packages")
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()) + "\n", encoding="utf-8")
    return environment


def _lint(folder: Path, environment: dict[str, str], **given: str) -> subprocess.CompletedProcess[str]:
    """The step of the action that lints, in ``folder``."""
    return _step(ACTION["runs"]["steps"][1], _inputs(given), folder, environment)


def _reported(done: subprocess.CompletedProcess[str]) -> list[tuple[str, str]]:
    return re.findall(r"^::warning title=ctxlint \((CTX\d+)\),file=.*?/([^/]+\.py),", done.stdout, re.MULTILINE)


def test_the_action_runs_no_code_of_the_checkout(hostile: Path, installed: dict[str, str]) -> None:
    done = _lint(hostile, installed, arguments="--select CTX203", paths="program1.py -ohidden.py @evil.py")
    marker = hostile.parent / "marker"
    assert not marker.exists(), marker.read_text(encoding="utf-8")
    assert done.returncode == 1
    assert len(re.findall("CTX203", done.stdout)) == 2 * 3
    assert done.stderr == ""


def test_the_action_splits_as_a_shell_and_evaluates_nothing(tmp_path: Path, installed: dict[str, str]) -> None:
    folder = tmp_path / "checkout" / "sub folder"
    folder.mkdir(parents=True)
    for name in ("a.py", "b c.py", "$(touch d).py", "*.py"):
        (folder / name).write_text(STASH, encoding="utf-8")
    done = _lint(
        tmp_path / "checkout",
        installed,
        arguments="--select 'CTX109' --config 'extend-exclude = [\"*.none\"]'",
        paths="\"b c.py\" '$(touch d).py' *.py",
        working_directory="sub folder",
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert _reported(done) == [("CTX109", "$(touch d).py"), ("CTX109", "*.py"), ("CTX109", "b c.py")]
    assert sorted(each.name for each in folder.iterdir() if each.suffix) == ["$(touch d).py", "*.py", "a.py", "b c.py"]


def test_the_action_says_what_it_cannot_split(tmp_path: Path, installed: dict[str, str]) -> None:
    done = _lint(tmp_path, installed, arguments="--select 'CTX109")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "ctxlint: error: ARGUMENTS: No closing quotation\n")


def test_the_action_installs_the_release_that_is_asked_for(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    inputs = _inputs({"version": "0.0.99"})  # there is no network
    done = _step(ACTION["runs"]["steps"][0], inputs, checkout, _environment(tmp_path / "home"))
    assert done.returncode == 1
    assert "No matching distribution found for ctxlint==0.0.99" in done.stderr


def test_the_action_pins_what_it_installs() -> None:
    pins = {}
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            name, _, version = line.partition("==")
            pins[name] = version
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for text in (*project["project"]["dependencies"], *project["build-system"]["requires"]):
        requirement = Requirement(text)
        assert requirement.specifier.contains(pins[requirement.name]), text
