"""The Python API: lint a text, lint paths, fix a text.

What comes back is made of plain frozen records that can be pickled, so that any engine can map these functions over
many files. Nothing is raised for bad code: what ctxlint itself fails on comes back as a finding with the code CTX900.
Settings that make no sense raise ``ConfigurationError``, whose message is that of the command line.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.diagnostic import Diagnostic
    from ctxlint.result import FileResult

_BOM = "\ufeff"


@dataclass(frozen=True)
class FixedSource:
    """A fixed text: the findings that are left in it, and how many of each code were fixed."""

    text: str
    diagnostics: tuple[Diagnostic, ...]
    fixed: dict[str, int]


def lint_source(text: str, path: str = "<string>", settings: Settings | None = None) -> list[Diagnostic]:
    """The findings in ``text``, sorted by place.

    ``path`` is the name that the findings carry, and that ``per-file-ignores`` look at. No configuration file is read;
    without ``settings`` the rules that are on by default are run. Lines and columns are 1-based, columns count
    characters, ends are exclusive. Where ``path`` ends in ``.ipynb``, ``text`` is the JSON of a notebook; ``cell`` is
    the number of the cell then that spans and edits count in. A fix that changes several cells shows no edits. Where
    ``path`` is a file, the other files of its project count, as they were when the process first read them.
    """
    from ctxlint.config.given_settings import checked
    from ctxlint.run.in_project import surroundings_of
    from ctxlint.run.lint_file import lint_text

    asked = checked(settings)
    return list(_in_cells(lint_text(path, text, asked, surroundings_of(path, asked))))


def lint_paths(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], settings: Settings | None = None, *, jobs: int = 1
) -> list[Diagnostic]:
    """The findings in all files under ``paths``, or under one path, sorted by path and place.

    Without ``settings``, those of the nearest configuration file apply to each file. ``jobs`` is how many processes to
    use at most, 0 for one per processor. A file that cannot be read is a finding. Raises ``ConfigurationError``
    for a configuration file that is wrong.
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
    """The findings in the folder ``root`` as plain records, sorted by path and place: one task of many.

    A record is a dict with the keys of ``RECORD_FIELDS``; its values are texts, whole numbers and None. ``project``
    and ``commit`` say what it is about; without ``project``, that is the name of the folder. ``path`` counts from
    ``root``; ``edits`` is the JSON of the edits of a fix. Without ``settings``, the configuration files of the project
    apply.

    With ``timeout`` (in seconds) or ``memory`` (in megabytes, on Linux) a process of its own lints the project, so
    that it ends where it takes more. A project that cannot be linted is one record with the code CTX900, whose
    ``path`` is None.
    """
    from ctxlint.config.given_settings import checked
    from ctxlint.one_project import ProjectTask
    from ctxlint.one_project import lint_project as linted

    folder = os.path.abspath(os.fsdecode(root))
    name = os.path.basename(folder) if project is None else project
    asked = None if settings is None else checked(settings)
    return linted(ProjectTask(folder, asked, name, commit), timeout, memory)


def fix_source(
    text: str, path: str = "<string>", settings: Settings | None = None, *, unsafe_fixes: bool = False
) -> FixedSource:
    """``text`` after its safe fixes (with ``unsafe_fixes``, all that are to be applied), and what is left to say.

    Lines keep their endings, and what no fix touches stays as it is. A text in which a fix does harm comes back
    unchanged, with a finding CTX900.
    """
    from ctxlint.config.given_settings import checked
    from ctxlint.fixes.apply import apply_fixes
    from ctxlint.run.in_project import surroundings_of
    from ctxlint.run.lint_file import check_source, lint_text

    asked = checked(settings)._replace(fix=True)
    if unsafe_fixes:
        asked = asked._replace(unsafe_fixes=True)
    first = lint_text(path, text, asked, surroundings_of(path, asked._replace(fix=False)))
    result = apply_fixes(first, asked, lambda source: check_source(source, asked, first.outside))
    fixed_text = text if result.source is None else _BOM * result.source.bom + result.source.written
    return FixedSource(fixed_text, tuple(_in_cells(result)), {each.code: each.count for each in result.fixed})


def _in_cells(result: FileResult) -> Iterator[Diagnostic]:
    """The findings of a file; those of a notebook with their cells, in which their places are counted."""
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
