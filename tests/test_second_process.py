"""Two processes find what one finds, also if one of them dies."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ctxlint.cache.run import answers_in
from ctxlint.editor.projects import Projects
from ctxlint.editor.workspace import Workspace
from ctxlint.model.index.outside_facts import ProjectQuestion
from ctxlint.run.answers import Answering, NamingMethods, Storing
from ctxlint.run.loaded_together import NamingModules
from ctxlint.run.second_process import PATIENCE, SecondProcess, _project_around
from ctxlint.run.worker_process import WorkerProcess
from ctxlint.source.imports import Imports
from ctxlint.source.scanner import Mentions, Transforming

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.source.scanner import Search

FILES = (
    "from ops import Scale\n",
    "x = 1\n",
    "vmap(f)\n",
    "ctx.late = 1\n",
    "patch('ops.Scale.forward')\n",
    "a.b = 2\n",
)


@pytest.fixture
def second(monkeypatch: pytest.MonkeyPatch) -> Iterator[SecondProcess]:
    """The process, started as by a server where there are two processors."""
    monkeypatch.setattr("ctxlint.run.second_process.processors", lambda: 2)
    process = SecondProcess()
    process._is_copy = True  # a new Python does the same, only later
    yield process
    process.end()


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    """Files to search, one of which cannot be read."""
    found = [tmp_path / f"file{number}.py" for number in range(101)]
    for number, each in enumerate(found[:-1]):
        each.write_text(FILES[number % len(FILES)])
    return [str(each) for each in found]


def searches(folder: Path) -> list[Search]:
    """One search of each kind."""
    asked = [
        ProjectQuestion("assigns", str(folder / "a.py"), ""),
        ProjectQuestion("calls", str(folder / "ops.py"), "Scale"),
    ]
    return [
        Mentions({"ops": ["Scale"]}),
        Transforming(),
        NamingMethods(),
        Storing(frozenset({"late"})),
        NamingModules(frozenset({b"ops"})),
        Answering(asked),
    ]


def test_two_processes_find_what_one_finds(second: SecondProcess, paths: list[str], tmp_path: Path) -> None:
    for search in searches(tmp_path):
        found = second.answers(Imports(), search, paths)
        assert found == answers_in(Imports(), search, paths)
        assert found[-1] is None
        assert any(found) != all(found[:-1])


def test_what_it_has_searched_ahead_is_the_same(second: SecondProcess, paths: list[str], tmp_path: Path) -> None:
    second.prepare(paths)
    for search in searches(tmp_path):
        assert second.answers(Imports(), search, paths) == answers_in(Imports(), search, paths)
    for path in paths:
        Path(path).write_text("x = 1\n")
    second.forget()
    assert not second.can_prepare
    second.prepare(paths)
    assert not any(second.answers(Imports(), Transforming(), paths))


def test_it_searches_the_project_of_a_document_ahead(second: SecondProcess, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    for number in range(100):
        (tmp_path / f"file{number}.py").write_text("import torch\n")
    path = str(tmp_path / "file0.py")
    projects = Projects(Workspace(print, (str(tmp_path),)), second)
    projects.prepare(path)
    around = projects.around(path)
    assert around is not None
    assert second._prepared == set(around.paths(path))
    assert len(second._prepared) == 100
    assert set(_project_around(str(tmp_path))) == second._prepared


def test_it_searches_the_project_around_a_folder_ahead(second: SecondProcess, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    paths = [tmp_path / f"file{number}.py" for number in range(100)]
    for path in paths:
        path.write_text("vmap(f)\n")
    Projects(Workspace(print, (str(tmp_path),)), second).prepare_around(str(tmp_path / "."))
    assert second._process is not None
    begun = "sorted(__import__('ctxlint.run.second_process', fromlist=[''])._BEGUN)"
    asked, deadline = sorted(map(str, paths)), time.monotonic() + 10
    second._process.answer()  # that it has imported what searching needs
    second._process.answer()  # that it has begun
    while second._process.ask(eval, [begun]) != [asked]:
        assert time.monotonic() < deadline
    assert second.answers(Imports(), Transforming(), asked) == [True] * len(paths)


@pytest.mark.parametrize("prepares", [False, True])
def test_one_that_dies_is_not_missed(
    second: SecondProcess, paths: list[str], tmp_path: Path, *, prepares: bool
) -> None:
    assert second._process is not None
    if prepares:
        second.prepare(paths)
    second._process.kill()
    for search in searches(tmp_path)[:2]:
        assert second.answers(Imports(), search, paths) == answers_in(Imports(), search, paths)


@pytest.mark.skipif(sys.platform == "win32", reason="no signals")
@pytest.mark.parametrize("files", [0, 10_000])
def test_one_that_is_stopped_is_not_waited_for(
    second: SecondProcess, paths: list[str], files: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctxlint.run.second_process.PATIENCE", 0.1)
    assert second._process is not None
    os.kill(second._process._process.pid, signal.SIGSTOP)
    second.prepare([f"{paths[0]}{number}" for number in range(files)])  # more than fits into a pipe
    assert second.can_prepare == (files == 0)
    assert second.answers(Imports(), Transforming(), paths) == answers_in(Imports(), Transforming(), paths)
    assert (second._process is None) == (files > 0)


@pytest.mark.skipif(sys.platform != "linux", reason="pipes tell whether there is an answer")
def test_late_answers_are_not_those_to_the_next_search(second: SecondProcess, paths: list[str], tmp_path: Path) -> None:
    assert second._process is not None
    for search in searches(tmp_path):
        os.kill(second._process._process.pid, signal.SIGSTOP)
        begun = time.monotonic()
        assert second.answers(Imports(), search, paths) == answers_in(Imports(), search, paths)
        assert time.monotonic() - begun < PATIENCE / 2
        os.kill(second._process._process.pid, signal.SIGCONT)
        assert second.answers(Imports(), search, paths[::-1]) == answers_in(Imports(), search, paths)[::-1]
    assert second._process is not None


@pytest.mark.skipif(sys.platform != "linux", reason="pipes tell whether there is an answer")
def test_answers_that_came_together_are_all_there(tmp_path: Path) -> None:
    process = WorkerProcess(None, is_copy=True)
    process.begin(len, ["a"])
    process.begin(len, ["ab"])
    process.begin(os.mkdir, [str(tmp_path / "done")])
    end = time.monotonic() + PATIENCE
    while not (tmp_path / "done").exists() and time.monotonic() < end:
        time.sleep(0.01)
    assert process.answer() == [1]
    assert process.has_answer()
    assert process.answer() == [2]
    assert process.answer() == [None]
    assert not process.has_answer()
    process.kill()
    process.close()


@pytest.mark.parametrize("error", [OSError, RuntimeError, NotImplementedError, AttributeError])
def test_one_that_cannot_be_started_is_not_missed(
    error: type[Exception], paths: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: object, **_options: object) -> None:
        raise error

    monkeypatch.setattr("ctxlint.run.second_process.processors", lambda: 2)
    monkeypatch.setattr("ctxlint.run.worker_process.can_copy", lambda: False)
    monkeypatch.setattr("subprocess.Popen", fail)
    monkeypatch.setattr("os.fork", fail, raising=False)
    process = SecondProcess()
    assert process.answers(Imports(), Transforming(), paths) == answers_in(Imports(), Transforming(), paths)


def test_few_files_are_not_shared_and_it_ends_once(second: SecondProcess, paths: list[str]) -> None:
    second.answers(Imports(), Transforming(), paths[:3])
    second.end()
    second.end()
    assert second.answers(Imports(), Transforming(), paths) == answers_in(Imports(), Transforming(), paths)


def test_files_that_have_changed_are_read_again(second: SecondProcess, paths: list[str]) -> None:
    search = Storing(frozenset({"late"}))
    assert any(second.answers(Imports(), search, paths))
    for path in paths:
        Path(path).write_text("x = 1\n")
    second.forget()
    assert not any(second.answers(Imports(), search, paths))
