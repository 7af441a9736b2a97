"""The Python API: lint a text, lint paths, fix a text.

The results are plain frozen records that can be pickled, so that any engine can map these functions over many files.
Bad code raises nothing: an internal failure of ctxlint is returned as a finding with the code CTX900. Invalid settings
raise ``ConfigurationError``, with the message of the command line.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ctxlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.diagnostic import Diagnostic
    from ctxlint.result import FileResult

_BOM = "\ufeff"


@record
class FixedSource:
    """A fixed text: its remaining findings, and how many of each code were fixed."""

    text: str
    diagnostics: tuple[Diagnostic, ...]
    fixed: dict[str, int]


def lint_source(text: str, path: str = "<string>", settings: Settings | None = None) -> list[Diagnostic]:
    """The findings in ``text``, sorted by position.

    No configuration file is read. Lines and columns are 1-based, columns count characters, ends are exclusive.

    Args:
        text: The code. If ``path`` ends in ``.ipynb``, the JSON of a notebook: spans and edits then count in a cell,
            whose number is ``cell``, and a fix that changes several cells has no edits.
        path: The path of the findings, which ``per-file-ignores`` match. If it is a file, the other files of its
            project count, as they were when the process first read them.
        settings: By default, the default rules are run.
    """
    from ctxlint.config.given_settings import checked
    from ctxlint.run.in_project import surroundings_of
    from ctxlint.run.lint_file import lint_text

    effective = checked(settings)
    return list(_in_cells(lint_text(path, text, effective, surroundings_of(path, effective))))


def lint_paths(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], settings: Settings | None = None, *, jobs: int = 1
) -> list[Diagnostic]:
    """The findings in all files under ``paths``, or under one path, sorted by path and position.

    A file that cannot be read is a finding.

    Args:
        paths: Files and folders.
        settings: By default, those of the nearest configuration file apply to each file.
        jobs: The maximum number of processes, 0 for one per processor.

    Raises:
        ConfigurationError: A configuration file is invalid.
    """
    from ctxlint.config.configuration import Configuration
    from ctxlint.config.given_settings import checked, checked_jobs
    from ctxlint.run import pipeline

    several = [paths] if isinstance(paths, (str, bytes, os.PathLike)) else paths
    configuration = Configuration(fixed=None if settings is None else checked(settings))
    results = pipeline.lint_paths(list(map(os.fsdecode, several)), configuration, jobs=checked_jobs(jobs))
    return sorted((each for result in results for each in _in_cells(result)), key=lambda each: each.sort_key)


def lint_project(
    root: str | os.PathLike[str],
    settings: Settings | None = None,
    *,
    project: str | None = None,
    commit: str | None = None,
    timeout: float | None = None,
    memory: int | None = None,
) -> list[dict[str, Any]]:
    """The findings in the folder ``root`` as plain records, sorted by path and position: one task of many.

    A record is a dict with the keys of ``RECORD_FIELDS``; its values are strings, integers and None. Its ``path`` is
    relative to ``root``; ``edits`` is the JSON of the edits of a fix. A project that cannot be linted is one record
    with the code CTX900, whose ``path`` is None.

    Args:
        root: The folder.
        settings: By default, the configuration files of the project apply.
        project: Identifies the project in the records; by default, the name of the folder.
        commit: Identifies the version in the records.
        timeout: The time limit in seconds, enforced in a separate process.
        memory: The memory limit in megabytes (on Linux), enforced in a separate process.
    """
    from ctxlint.config.given_settings import checked
    from ctxlint.one_project import ProjectTask
    from ctxlint.one_project import lint_project as linted

    folder = os.path.abspath(os.fsdecode(root))
    name = os.path.basename(folder) if project is None else project
    effective = None if settings is None else checked(settings)
    return linted(ProjectTask(folder, effective, name, commit), timeout, memory)


def fix_source(
    text: str, path: str = "<string>", settings: Settings | None = None, *, unsafe_fixes: bool = False
) -> FixedSource:
    """``text`` after its safe fixes (with ``unsafe_fixes``, all applicable ones), and the remaining findings.

    Line endings, and everything that no fix changes, are preserved. A text that a fix would break is returned
    unchanged, with a finding CTX900.
    """
    from ctxlint.config.given_settings import checked
    from ctxlint.fixes.apply import apply_fixes
    from ctxlint.run.in_project import surroundings_of
    from ctxlint.run.lint_file import check_source, lint_text

    effective = checked(settings)._replace(fix=True)
    if unsafe_fixes:
        effective = effective._replace(unsafe_fixes=True)
    first = lint_text(path, text, effective, surroundings_of(path, effective._replace(fix=False)))
    result = apply_fixes(first, effective, lambda source: check_source(source, effective, first.outside))
    fixed_text = text if result.source is None else _BOM * result.source.bom + result.source.written
    return FixedSource(fixed_text, tuple(_in_cells(result)), {each.code: each.count for each in result.fixed})


def _in_cells(result: FileResult) -> Iterator[Diagnostic]:
    """The findings of a file; for a notebook with their cells, in which their positions are counted."""
    from ctxlint.result import locate

    for each in result.diagnostics:
        located = locate(each, result.source)
        if result.source is None or located.cell is None:
            yield each
            continue
        related = []
        for other in each.related:
            if other.path:
                related.append(other)
                continue
            place = result.source.locate(other.span)
            related.append(replace(other, span=place.span, cell=place.cell))
        fix = each.fix
        if fix is not None:
            mine = list(result.source.locate_edits(sorted(fix.edits)))
            together = len(mine) == 1 and mine[0].cell == located.cell
            fix = replace(fix, edits=mine[0].edits if together else ())
        yield replace(each, span=located.span, cell=located.cell, related=tuple(related), fix=fix)
