"""Every command in a document is run verbatim, in a shell, on a copy of the repository."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.fixture_reader import ROOT, fenced_blocks
from tests.habitats.installing import PUBLISHED, copy_sources, offline

if TYPE_CHECKING:
    from pathlib import Path

DOCUMENTS = ("README.md", "CONTRIBUTING.md", *sorted(f"docs/{each.name}" for each in (ROOT / "docs").glob("*.md")))


@dataclass(frozen=True)
class Command:
    """A shell block: its place, its text and its expected exit code. Without ``code``, it is not run."""

    place: str
    text: str
    code: int | None = 0


# The tests would run themselves. `.ci/run` takes the README's line and runs it as it stands, and the steps of CONTRIBUTING
# in an environment with the tools of developers.
_RUNS_THE_TESTS = re.compile(r"^(.* && )?pytest\b", re.MULTILINE)

# What does not end with 0, and why.
_EXIT_CODES = {
    # There are findings, and this command reports them.
    "ctxlint check --output-format junit --output-file ctxlint.xml\n": 1,
}


COMMANDS = [
    Command(
        f"{document}:{block.line}",
        block.text,
        None if _RUNS_THE_TESTS.search(block.text) else _EXIT_CODES.get(block.text, 0),
    )
    for document in DOCUMENTS
    for block in fenced_blocks((ROOT / document).read_text(encoding="utf-8"))
    if block.language in ("sh", "bash", "shell")
]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A copy of the repository, and an environment without a network in which the last installed ctxlint comes first."""
    folder = tmp_path_factory.mktemp("repository")
    copy_sources(folder, (*PUBLISHED, "fixtures", "tests"))
    environment = offline(folder)
    environment["PATH"] = f"{folder / '.venv' / 'bin'}:{environment['PATH']}"
    return folder, environment


def test_all_exceptions_are_there() -> None:
    """An unused exception would hide the next block that matches it."""
    assert set(_EXIT_CODES) <= {command.text for command in COMMANDS}


def test_each_block_runs(installed: tuple[Path, dict[str, str]]) -> None:
    """In the order of the documents: later blocks use what the first one installs."""
    folder, environment = installed
    for command in COMMANDS:
        if command.code is None:
            continue
        done = subprocess.run(
            ["bash", "-c", command.text],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            encoding="utf-8",
        )
        assert done.returncode == command.code, f"{command.place}\n{done.stdout}"
        if "fixtures/programs" in command.text:
            assert "CTX203" in done.stdout
