"""The real pre-commit over a git repository, with the hooks as they are published."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.habitats.installing import copy_sources, offline

if TYPE_CHECKING:
    from pathlib import Path

BROKEN = """\
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x * scale

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.scale


def double(x):
    return Scale.apply(x, 2.0)
"""
FIXED = BROKEN.replace("return grad_output * ctx.scale", "return grad_output * ctx.scale, None")

_CONFIG = """\
repos:
  - repo: {repository}
    rev: {revision}
    hooks:
      - id: {hook}
"""


@dataclass(frozen=True)
class Git:
    """A git repository, and the environment in which its commands and its hooks run."""

    folder: Path
    environment: dict[str, str]

    def run(self, *arguments: str) -> tuple[int, str]:
        """The exit code of a git command, and what it prints."""
        return self._call("git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments)

    def git(self, *arguments: str) -> str:
        """What a git command that must succeed prints."""
        code, output = self.run(*arguments)
        assert code == 0, output
        return output.strip()

    def pre_commit(self, *arguments: str) -> tuple[int, str]:
        """The exit code of a command of pre-commit, and what it prints."""
        return self._call(sys.executable, "-m", "pre_commit", *arguments)

    def _call(self, *command: str) -> tuple[int, str]:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            check=False,
            encoding="utf-8",
        )
        return done.returncode, done.stdout


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Without the user's settings and without a network; dependencies come from the environment of the tests."""
    home = tmp_path_factory.mktemp("home")
    return {**offline(home), "GIT_CONFIG_NOSYSTEM": "1", "PRE_COMMIT_HOME": str(home / "pre-commit")}


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> Git:
    """ctxlint's own repository as it would be published."""
    repository = Git(tmp_path_factory.mktemp("ctxlint"), environment)
    copy_sources(repository.folder)
    repository.git("init", "--quiet")
    repository.git("add", ".")
    repository.git("commit", "--quiet", "-m", "As published")
    return repository


@pytest.fixture
def project(tmp_path: Path, published: Git) -> Git:
    """A user's repository with pre-commit installed; each test writes its own configuration."""
    made = Git(tmp_path / "project", published.environment)
    made.folder.mkdir()
    made.git("init", "--quiet")
    assert made.pre_commit("install")[0] == 0
    return made


def _use(project: Git, published: Git, hook: str) -> None:
    config = _CONFIG.format(
        repository=published.folder.as_uri(), revision=published.git("rev-parse", "HEAD"), hook=hook
    )
    (project.folder / ".pre-commit-config.yaml").write_text(config, encoding="utf-8")


def _commit(project: Git, files: dict[str, str]) -> tuple[int, str]:
    for name, text in files.items():
        (project.folder / name).write_text(text, encoding="utf-8")
    project.git("add", ".")
    return project.run("commit", "-m", "A change")


def test_the_manifest_is_valid(published: Git) -> None:
    assert published.pre_commit("validate-manifest", ".pre-commit-hooks.yaml") == (0, "")


def test_a_bad_commit_is_refused_with_a_readable_message(project: Git, published: Git) -> None:
    _use(project, published, "ctxlint")
    code, output = _commit(project, {"scale.py": BROKEN, "other.py": "x = 1\n"})
    assert code == 1, output
    assert "ctxlint" in output
    assert "Failed" in output
    assert "CTX203" in output
    assert "--> scale.py:12:9" in output
    assert "Found 1 error." in output
    assert project.run("log")[0] != 0, "nothing was committed"
    assert (project.folder / "scale.py").read_text(encoding="utf-8") == BROKEN


def test_the_fixing_hook_fails_and_the_second_commit_passes(project: Git, published: Git) -> None:
    _use(project, published, "ctxlint-fix")
    code, output = _commit(project, {"scale.py": BROKEN})
    assert code == 1, output
    assert "files were modified by this hook" in output
    assert "CTX203 (missing-none)" in output
    assert (project.folder / "scale.py").read_text(encoding="utf-8") == FIXED
    code, output = _commit(project, {})
    assert code == 0, output
    assert "Passed" in output
    assert project.git("show", "HEAD:scale.py") == FIXED.strip()


def test_the_reporting_hook_changes_nothing(project: Git, published: Git) -> None:
    _use(project, published, "ctxlint")
    code, output = _commit(project, {"scale.py": BROKEN, "ctxlint.toml": "fix = true\n"})
    assert code == 1, output
    assert "Found 1 error." in output
    assert (project.folder / "scale.py").read_text(encoding="utf-8") == BROKEN


def test_the_hook_for_the_whole_project(project: Git, published: Git) -> None:
    _use(project, published, "ctxlint-project")
    (project.folder / "scale.py").write_text(BROKEN, encoding="utf-8")
    project.git("add", ".")
    project.git("commit", "--quiet", "--no-verify", "-m", "Unchecked")
    code, output = _commit(project, {"README": "No Python.\n"})
    assert (code, "Skipped" in output) == (0, True), output
    code, output = _commit(project, {"other.py": "x = 1\n"})
    assert code == 1, output
    assert output.count("--> scale.py:12:9") == 1


def test_what_is_staged_counts(project: Git, published: Git) -> None:
    """pre-commit stashes unstaged changes while hooks run."""
    _use(project, published, "ctxlint")
    path = project.folder / "scale.py"
    for staged, unstaged, code in ((BROKEN, FIXED, 1), (FIXED, BROKEN, 0)):
        path.write_text(staged, encoding="utf-8")
        project.git("add", ".")
        path.write_text(unstaged, encoding="utf-8")
        done = project.run("commit", "-m", "Half of it")
        assert done[0] == code, done[1]
        assert path.read_text(encoding="utf-8") == unstaged


def test_fixes_of_a_partly_staged_file_lose_nothing(project: Git, published: Git) -> None:
    _use(project, published, "ctxlint-fix")
    path = project.folder / "scale.py"
    path.write_text(BROKEN, encoding="utf-8")
    project.git("add", ".")
    path.write_text(BROKEN + "\n\nMORE = 1\n", encoding="utf-8")
    code, output = project.run("commit", "-m", "Half of it")
    assert (code, "files were modified by this hook" in output) == (1, True), output
    assert path.read_text(encoding="utf-8") == FIXED + "\n\nMORE = 1\n"
    assert project.git("show", ":scale.py") == BROKEN.strip()


def test_fixes_next_to_a_change_that_is_not_staged_are_rolled_back(project: Git, published: Git) -> None:
    _use(project, published, "ctxlint-fix")
    path = project.folder / "scale.py"
    path.write_text(BROKEN, encoding="utf-8")
    project.git("add", ".")
    mine = BROKEN.replace("return grad_output * ctx.scale", "return 2 * grad_output * ctx.scale")
    path.write_text(mine, encoding="utf-8")
    code, output = project.run("commit", "-m", "Half of it")
    assert (code, "Rolling back fixes" in output) == (1, True), output
    assert path.read_text(encoding="utf-8") == mine


@pytest.mark.parametrize("hook", ["ctxlint", "ctxlint-fix"])
def test_no_files_and_excluded_files_pass(project: Git, published: Git, hook: str) -> None:
    _use(project, published, hook)
    code, output = _commit(project, {"README": "Nothing to lint.\n"})
    assert code == 0, output
    assert "Skipped" in output
    code, output = _commit(
        project, {"vendored.py": BROKEN, "pyproject.toml": '[tool.ctxlint]\nextend-exclude = ["vendored.py"]\n'}
    )
    assert code == 0, output
    assert "Passed" in output


@pytest.mark.parametrize("hook", ["ctxlint", "ctxlint-fix"])
def test_names_of_files_are_no_arguments(project: Git, published: Git, hook: str) -> None:
    _use(project, published, hook)
    names = ("--config=evil.py", "--diff", "-ohidden.py", "@evil.py")
    (project.folder / "evil.py").write_text("--exit-zero\n--output-file=hidden\n", encoding="utf-8")
    for name in names:
        (project.folder / name).write_text(f"#!/usr/bin/env python3\n{BROKEN}", encoding="utf-8")
        (project.folder / name).chmod(0o755)
    code, output = _commit(project, {})
    assert code == 1, output
    fixed = hook == "ctxlint-fix"
    for name in names:
        assert (f"- {name}:" if fixed else f"--> {name}:13:9") in output
        text = (project.folder / name).read_text(encoding="utf-8")
        assert text == f"#!/usr/bin/env python3\n{FIXED if fixed else BROKEN}"
    assert not list(project.folder.glob("hidden*"))
