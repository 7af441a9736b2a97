"""Many projects: one call each, plain records, and no project affects another."""

from __future__ import annotations

import gc
import json
import os
import pickle
import shutil
import signal
import sys
import time
import weakref
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import ctxlint
from ctxlint import one_project
from ctxlint.run import lint_file

if TYPE_CHECKING:
    from collections.abc import Iterator

dask: Any = import_module("dask.distributed")
TWO_WORKERS = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
PROGRAMS = sorted((Path(__file__).parents[1] / "fixtures/programs").rglob("*.py"))


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """21 projects of several files."""
    home = tmp_path_factory.mktemp("projects")
    for number in range(21):
        package = home / f"project{number:02}" / "package"
        package.mkdir(parents=True)
        (package.parent / "pyproject.toml").write_text("[tool.ctxlint]\nselect = ['ALL']\n")
        for at, path in enumerate(PROGRAMS[number::21] or PROGRAMS[:1]):
            shutil.copy(path, package / f"m{at}.py")
    return sorted(home.iterdir())


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with dask.LocalCluster(**TWO_WORKERS) as found:
        yield found


def _locally(projects: list[Path]) -> list[tuple[object, ...]]:
    """What one run over all projects finds."""
    found = ctxlint.lint_paths(projects[0].parent)
    return sorted((each.path, each.span.start.line, each.span.start.column, each.code, each.message) for each in found)


def _placed(project: Path, record: dict[str, Any]) -> tuple[object, ...]:
    path = str(project / record["path"])
    return (path, record["line"], record["column"], record["code"], record["message"])


def _scan(project: Path, out: Path, until: Path | None = None) -> int:
    """What a task does: lint, write, return a number."""
    if until is not None:
        (out / f"{project.name}.pid").write_text(str(os.getpid()))
        while not until.exists():
            time.sleep(0.02)
    records = ctxlint.lint_project(project, commit="abc", timeout=600)
    part = out / f"{project.name}.{dask.get_worker().id[-4:]}.part"
    part.write_text(json.dumps(records))
    part.replace(out / f"{project.name}.json")
    return len(records)


def _written(out: Path, projects: list[Path]) -> list[tuple[object, ...]]:
    return sorted(
        _placed(project, record)
        for project in projects
        for record in json.loads((out / f"{project.name}.json").read_text())
    )


def test_records_are_plain(projects: list[Path]) -> None:
    """A record has all fields, in order, and survives JSON and pickle."""
    records = [each for project in projects for each in ctxlint.lint_project(project, project="a/b", commit="abc")]
    assert records
    assert json.loads(json.dumps(records)) == records == pickle.loads(pickle.dumps(records))
    for each in records:
        assert list(each) == list(ctxlint.RECORD_FIELDS)
        assert all(value is None or type(value) is ctxlint.RECORD_FIELDS[name] for name, value in each.items())
        assert (each["project"], each["commit"]) == ("a/b", "abc")
        assert each["path"].startswith("package/")
    fixed = next(each for each in records if each["fix"] is not None)
    assert fixed["applicability"] in ("safe", "unsafe", "display")
    assert json.loads(fixed["edits"])


def test_one_project_is_known_at_a_time(projects: list[Path]) -> None:
    """Cross-file facts are dropped with their project, so that memory does not grow with the number of projects."""
    ctxlint.lint_paths(projects[0].parent)
    assert lint_file._project.cache_info().currsize == 1
    first = lint_file._project((), str(projects[0]), False)
    assert lint_file._project((), str(projects[1]), False) is not first


def test_projects_leave_no_garbage(projects: list[Path]) -> None:
    """What was read of a project is freed with it, without a search for garbage."""
    lint_file.forget_read_files()
    gc.collect()
    gc.disable()
    try:
        known = []
        for project in projects[:3]:
            ctxlint.lint_paths(project)
            known.append(weakref.ref(lint_file._LATEST[0]))
        lint_file.forget_read_files()
        assert [each() is None for each in known] == [True, True, False]
    finally:
        gc.enable()


def test_settings_and_name(projects: list[Path]) -> None:
    """Settings replace the configuration of the project, and the folder gives the name."""
    only = ctxlint.Settings(select=("CTX902",))
    some = projects[:3]
    assert {each["code"] for project in some for each in ctxlint.lint_project(project, only)} <= {"CTX901", "CTX902"}
    named = {each["project"] for project in some for each in ctxlint.lint_project(project)}
    assert named <= {project.name for project in some}
    assert named
    with pytest.raises(ctxlint.ConfigurationError):
        ctxlint.lint_project(projects[0], ctxlint.Settings(select=("CTX777",)))


def _failure(project: Path, **limits: Any) -> str:
    """The message of the one record of a project that cannot be linted."""
    [record] = ctxlint.lint_project(project, **limits)
    assert (record["code"], record["path"], record["project"]) == ("CTX900", None, project.name)
    return str(record["message"])


def test_wrong_configuration(tmp_path: Path) -> None:
    (tmp_path / "ctxlint.toml").write_text("selekt = []\n")
    assert "selekt" in _failure(tmp_path)
    assert "selekt" in _failure(tmp_path, timeout=600)


def test_timeout(projects: list[Path], tmp_path: Path) -> None:
    """The next project has a new process."""
    for number in range(40):
        shutil.copytree(projects[0], tmp_path / str(number))
    assert _failure(tmp_path, timeout=0.2) == "The project takes longer than 0.2 s; it was not linted."
    assert ctxlint.lint_project(projects[0], timeout=600) == ctxlint.lint_project(projects[0])


def test_the_process_is_kept(projects: list[Path]) -> None:
    """The process is reused, and a project sees nothing of an earlier one at the same path."""
    ctxlint.lint_project(projects[0], timeout=600)
    kept = one_project._own.process
    assert kept is not None
    file = projects[0] / "package/added.py"
    before = ctxlint.lint_project(projects[0], timeout=600)
    file.write_text(next(path for path in PROGRAMS if path.parent.name == "broken").read_text(encoding="utf-8"))
    try:
        added = ctxlint.lint_project(projects[0], timeout=600)
    finally:
        file.unlink()
    assert len(added) > len(before)
    assert ctxlint.lint_project(projects[0], timeout=600) == before
    assert one_project._own.process is kept


@pytest.mark.skipif(sys.platform != "linux", reason="no limit of memory")
def test_memory(tmp_path: Path) -> None:
    """Too little memory is one record, and the next project has enough."""
    (tmp_path / "a.py").write_text(
        "from torch.autograd import Function\nx = [\n" + "    [1, 2, 3],\n" * 120_000 + "]\n"
    )
    message = "The project takes more than 200 MB of memory; it was not linted."
    assert _failure(tmp_path, memory=200) == message
    assert ctxlint.lint_project(tmp_path, memory=4000) == ctxlint.lint_project(tmp_path)


def test_no_limit_of_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory limits need Linux."""
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(ctxlint.ConfigurationError):
        ctxlint.lint_project(tmp_path, memory=200)


def test_cluster_finds_what_one_run_finds(cluster: Any, projects: list[Path], tmp_path: Path) -> None:
    """21 projects on two workers; the scheduler keeps no results."""
    with dask.Client(cluster) as client:
        futures = client.map(_scan, projects, out=tmp_path, pure=False)
        counts = dict(dask.as_completed(futures, with_results=True))
        assert all(isinstance(each, int) for each in counts.values())
        held = sum(each.nbytes or 0 for each in cluster.scheduler.tasks.values())
        assert held <= 64 * len(projects)
    found = _locally(projects)
    assert _written(tmp_path, projects) == found
    assert sum(counts.values()) == len(found) > 0


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_killed_worker_loses_nothing(projects: list[Path], tmp_path: Path) -> None:
    """Its tasks run again elsewhere, and replace what they have written."""
    with (
        dask.LocalCluster(**TWO_WORKERS) as cluster,
        dask.Client(cluster) as client,
    ):
        killed = tmp_path / "killed"
        futures = client.map(_scan, projects, out=tmp_path, until=killed, pure=False)
        while not (begun := [text for path in tmp_path.glob("*.pid") if (text := path.read_text())]):
            time.sleep(0.02)
        os.kill(int(begun[0]), signal.SIGKILL)
        killed.touch()
        client.gather(futures)
    assert _written(tmp_path, projects) == _locally(projects)


def test_memory_of_the_scheduler_stays_flat(cluster: Any, tmp_path: Path) -> None:
    """After ten times the projects there are no more tasks than before."""
    project = tmp_path / "small"
    project.mkdir()
    shutil.copy(PROGRAMS[0], project)
    with dask.Client(cluster) as client:
        for _ in range(10):
            futures = client.map(_scan, [project] * 4, out=tmp_path, pure=False)
            for _done in dask.as_completed(futures):
                pass
            del futures, _done
        deadline = time.monotonic() + 10
        while cluster.scheduler.tasks and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(cluster.scheduler.tasks) == 0
