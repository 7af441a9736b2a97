"""The results of a whole run are used again exactly as long as nothing that they depend on has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ctxlint.source.reading import Unreadable
from tests.cache.test_cache import forget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FUNCTION = """\
from torch.autograd import Function
from vendored.gradients import number


class Scale(Function):
    @staticmethod
    def forward(ctx, x, k):
        return x * k

    @staticmethod
    def backward(ctx, g):
        return number(g)
"""
HELPER = "def number(g):\n    return {value}\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The helper is in a folder that is not checked."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "ctxlint.toml").write_text('extend-exclude = ["vendored"]\n')
    for folder in ("pkg", "vendored"):
        (tmp_path / folder).mkdir()
    (tmp_path / "pkg/scale.py").write_text(FUNCTION)
    (tmp_path / "pkg/plain.py").write_text("import os\n")
    return tmp_path


@pytest.fixture
def run(
    project: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Callable[..., str]]:
    """Run the command in this process; what it keeps in memory is cleared each time."""
    from ctxlint.cache import folder
    from ctxlint.cli import main
    from ctxlint.run.in_project import forget_other_files
    from ctxlint.source import modules

    monkeypatch.setattr("ctxlint.cache.stamp._SETTLED", 0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("home")))
    monkeypatch.chdir(project)
    forget(folder)

    def call(*options: str) -> str:
        forget_other_files()
        modules.forget()
        main(["check", "--output-format", "concise", *options, "."])
        return "".join(capsys.readouterr())

    yield call
    forget(folder)


@pytest.mark.parametrize("functions", [True, False])
def test_nothing_is_looked_up(
    project: Path, run: Callable[..., str], monkeypatch: pytest.MonkeyPatch, functions: bool
) -> None:
    (project / "pkg/inner").mkdir()
    (project / "pkg/inner/ctxlint.toml").write_text('exclude = ["left_out.py"]\n')
    (project / "pkg/inner/left_out.py").write_text(FUNCTION)
    if not functions:
        (project / "pkg/scale.py").unlink()
    first = run("-v")
    monkeypatch.delattr("ctxlint.run.cross_file.lint_together")
    monkeypatch.delattr("ctxlint.cache.run.holds_candidate")
    assert run("-v") == first == run("-v")
    assert "left_out.py: skipped: excluded" in first


def test_a_file_that_cannot_be_read_is_tried_again(run: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("ctxlint.cache.run.read_bytes", unreadable)
        assert "CTX902" in run()
        assert "CTX902" in run()
    assert run() == run("--no-cache")


def unreadable(path: str) -> bytes:
    raise Unreadable(path)


def add_settings(project: Path) -> None:
    (project / "pkg/ctxlint.toml").write_text('ignore = ["CTX203"]\n')


def add_imported_file(project: Path) -> None:
    (project / "vendored/gradients.py").write_text(HELPER.format(value="g, None"))


def change_imported_file(project: Path) -> None:
    (project / "vendored/gradients.py").write_text(HELPER.format(value="g, None, None"))


def change_own_file(project: Path) -> None:
    (project / "pkg/scale.py").write_text(FUNCTION.replace("number(g)", "None, None"))


def remove_file(project: Path) -> None:
    (project / "pkg/scale.py").unlink()


def add_caller(project: Path) -> None:
    (project / "pkg/plain.py").write_text(
        "from pkg.scale import Scale\n\n\ndef f(x):\n    return Scale.apply(x, k=1)\n"
    )


@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize(
    "change", [add_settings, add_imported_file, change_imported_file, change_own_file, remove_file, add_caller]
)
def test_a_change_is_seen(project: Path, run: Callable[..., str], exists: bool, change: Callable[[Path], None]) -> None:
    if exists:
        (project / "vendored/gradients.py").write_text(HELPER.format(value="g"))
    before = run()
    assert run() == before
    change(project)
    after = run("--no-cache")
    assert run() == after == run()


def test_settings_of_a_folder_without_functions_may_be_broken(project: Path, run: Callable[..., str]) -> None:
    (project / "empty").mkdir()
    (project / "empty/plain.py").write_text("import os\n")
    (project / "empty/ctxlint.toml").write_text("select = 1\n")
    assert run() == run("--no-cache") == run()


def test_other_arguments_have_other_results(run: Callable[..., str]) -> None:
    assert run() != run("--select", "ALL")
    assert run("--select", "ALL") == run("--no-cache", "--select", "ALL")
    assert run() == run("--no-cache")
