"""One project as a unit of work in a batch of many: plain records, and no project can crash the others."""

from __future__ import annotations

import atexit
import gc
import json
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from ctxlint.config.project_files import ConfigurationError
from ctxlint.config.settings import INTERNAL_ERROR, Settings
from ctxlint.named_tuples import NamedTuple
from ctxlint.run.worker_process import Died, WorkerProcess

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.result import FileResult

    Record = dict[str, Any]

RECORD_FIELDS = {
    "project": str,
    "commit": str,
    "path": str,
    "cell": int,
    "line": int,
    "column": int,
    "end_line": int,
    "end_column": int,
    "code": str,
    "name": str,
    "severity": str,
    "message": str,
    "fix": str,
    "applicability": str,
    "edits": str,
}
"""The fields of a record, in order, and their types; any value may be None."""


class ProjectTask(NamedTuple):
    """A task: a folder, and its identification in the records."""

    root: str
    settings: Settings | None
    name: str
    commit: str | None


def lint_project(project: ProjectTask, timeout: float | None, memory: int | None) -> list[Record]:
    """The records of a project; if it cannot be linted, one record that gives the reason."""
    if timeout is None and memory is None:
        return _records(project)
    if memory is not None and sys.platform != "linux":
        raise ConfigurationError("memory: the limit is supported on Linux only")
    return _alone(project, timeout, memory)


def _records(project: ProjectTask) -> list[Record]:
    from ctxlint.result import describe

    _forget()
    try:
        return list(_findings(project))
    except ConfigurationError as error:
        return [_failure(project, f"The configuration is wrong: {error}")]
    except Exception as error:  # noqa: BLE001  (one project must not end the others)
        return [_failure(project, describe("The project", error))]
    finally:
        gc.collect()  # a process that lints many projects is long-lived


def _findings(project: ProjectTask) -> Iterator[Record]:
    from ctxlint.config.configuration import Configuration
    from ctxlint.run.pipeline import lint_paths

    results = lint_paths([project.root], Configuration(fixed=project.settings))
    for result in sorted(results, key=lambda each: each.path):
        yield from _of_file(project, result)


def _of_file(project: ProjectTask, result: FileResult) -> Iterator[Record]:
    from ctxlint.report.json_list import fix_record
    from ctxlint.result import locate

    path = os.path.relpath(result.path, project.root).replace(os.sep, "/")
    for each in result.diagnostics:
        located = locate(each, result.source)
        (line, column), (end_line, end_column) = located.span
        fix = fix_record(each, result.source) or {}
        place = (path, located.cell, line, column, end_line, end_column)
        reported = (each.code, each.name, each.severity.value, each.message)
        edits = json.dumps(fix["edits"], ensure_ascii=False) if fix else None
        fixed = (fix.get("message"), fix.get("applicability"), edits)
        yield dict(zip(RECORD_FIELDS, (project.name, project.commit, *place, *reported, *fixed)))


def _failure(project: ProjectTask, reason: str) -> Record:
    """The record for a project that cannot be linted."""
    record = dict.fromkeys(RECORD_FIELDS)
    return {
        **record,
        "project": project.name,
        "commit": project.commit,
        "code": INTERNAL_ERROR,
        "name": "internal-error",
        "severity": "error",
        "message": reason,
    }


def _forget() -> None:
    """Drop caches: another project may be in the same folder."""
    from ctxlint.run.in_project import forget_other_files
    from ctxlint.source import modules

    forget_other_files()
    modules.forget()


# In a separate process, which can be killed


class _Own(threading.local):
    """The process that lints for this thread, reused for the next project."""

    process: WorkerProcess | None = None


_own = _Own()
_running: set[WorkerProcess] = set()


def _alone(project: ProjectTask, timeout: float | None, memory: int | None) -> list[Record]:
    process = _own.process
    if process is None:
        from ctxlint.run.pipeline import prepare

        process = _own.process = WorkerProcess(prepare)
        _running.add(process)
    done, reasons = threading.Event(), list[str]()
    threading.Thread(target=_watch, args=(process, timeout, memory, done, reasons), daemon=True).start()
    try:
        [records] = process.ask(_records, [project])
    except Died:
        _end(process)
        return [_failure(project, f"{reasons[0] if reasons else _DIED}; it was not linted.")]
    except BaseException:  # the answer for this project must not be taken for that for the next one
        _end(process)
        raise
    finally:
        done.set()
    return records


_DIED = "The process that linted the project died"


def _watch(
    process: WorkerProcess, timeout: float | None, memory: int | None, done: threading.Event, reasons: list[str]
) -> None:
    """Kill a process that exceeds its limits, and report why."""
    start = time.monotonic()
    while not done.wait(_PAUSE):
        if timeout is not None and time.monotonic() - start > timeout:
            reasons.append(f"The project takes longer than {timeout:g} s")
        elif memory is not None and process.megabytes() > memory:
            reasons.append(f"The project takes more than {memory} MB of memory")
        else:
            continue
        process.kill()
        return


_PAUSE = 0.05
"""The interval in seconds between two checks of a process."""


def _end(process: WorkerProcess) -> None:
    _own.process = None
    _running.discard(process)
    process.kill()
    process.close()


@atexit.register
def _end_all() -> None:
    for process in tuple(_running):
        _end(process)
