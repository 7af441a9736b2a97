"""One file: read, analysed and checked. Any failure becomes a finding about this file, and stops nothing else.

LibCST, and with it the model and the rules, is imported in ``check_source`` and ``analyse_source`` only.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from ctxlint.cache.stamp import digest
from ctxlint.call_stack import with_room
from ctxlint.config.project_files import project_tables
from ctxlint.libcst_import import import_libcst
from ctxlint.result import Alone, FileResult, describe, internal_error, io_error, nested_too_deeply
from ctxlint.source.decode import decode, source_of
from ctxlint.source.modules import root_of_file
from ctxlint.source.reading import OPEN, NotPython, Undecodable, Unreadable, content_of, read_bytes, refusal
from ctxlint.source.scanner import holds_candidate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ctxlint.config.settings import Settings
    from ctxlint.diagnostic import Diagnostic
    from ctxlint.model.function import SourceFile
    from ctxlint.model.index.outside_facts import KnownNames, OutsideFacts
    from ctxlint.model.index.project import Project
    from ctxlint.model.reader import FindOutsideFacts, Reading
    from ctxlint.source.source import Source

Read = TypeVar("Read")


class SurroundingProject(Protocol):
    """Finds the facts of the project around a text."""

    def leads(self, path: str, data: bytes) -> frozenset[str]:
        """The names by which a text at this path may call Functions of other files."""

    def finder(self, settings: Settings, leads: frozenset[str]) -> FindOutsideFacts:
        """The outside facts of a text with these settings and leads, on demand."""


def lint_file(
    path: str,
    settings: Settings,
    outside: OutsideFacts | None = None,
    known: KnownNames | None = None,
    alone: Alone | None = None,
    facts_only: bool = False,
) -> FileResult:
    """The result for a file, whether or not its bytes look like a Function's; see ``check_source`` for the others.

    It depends on nothing but the bytes of the file, ``settings``, ``outside``, ``known``, and the ``consulted`` files
    of the result; ``read`` of the result identifies the content.
    """
    try:
        data = content_of(path)
        result = check_source(decode(path, data), settings, outside, known, alone, facts_only=facts_only)
    except (Unreadable, Undecodable) as error:
        return unreadable(path, str(error), settings)
    except NotPython as error:
        return FileResult(path, skipped=str(error), settings=settings)
    before = dict(alone.read) if alone is not None else {}
    others = result.consulted.files if result.consulted is not None else ()
    own = (os.path.abspath(path), digest(data))
    read = (own, *((other, _LOADED.get(other, before.get(other))) for other in others))
    return result._replace(read=read, alone=result.alone._replace(read=read) if result.alone is not None else None)


def lint_bytes(path: str, data: bytes, settings: Settings, around: SurroundingProject | None = None) -> FileResult:
    """The result for a file with this content, with facts of the project ``around`` it."""
    return _lint(path, data, lambda: decode(path, data), settings, around)


def lint_text(path: str, text: str, settings: Settings, around: SurroundingProject | None = None) -> FileResult:
    """The result for a file with this text; that of a notebook is its JSON. ``around`` as for ``lint_bytes``."""
    return _lint(path, text.encode("utf-8", "surrogatepass"), lambda: source_of(path, text), settings, around)


def _lint(
    path: str, data: bytes, read: Callable[[], Source], settings: Settings, around: SurroundingProject | None
) -> FileResult:
    leads = around.leads(path, data) if around is not None else frozenset[str]()
    candidate = holds_candidate(data)
    if not candidate and not leads:
        return FileResult(path, settings=settings)
    find_outside = around.finder(settings, leads) if around is not None else None
    try:
        return check_source(read(), settings, find_outside=find_outside, concerned=candidate)
    except Undecodable as error:
        return unreadable(path, str(error), settings)
    except NotPython as error:
        return FileResult(path, skipped=str(error), settings=settings)


def lint_source(source: Source, settings: Settings, around: SurroundingProject | None = None) -> list[Diagnostic]:
    """The findings in one file that is already in memory, sorted. ``around`` as for ``lint_bytes``."""
    data = source.text.encode("utf-8", "surrogatepass")
    return list(_lint(source.path, data, lambda: source, settings, around).diagnostics)


@with_room
def analyse_source(source: Source, settings: Settings, find_outside: FindOutsideFacts | None = None) -> SourceFile:
    """The model of one file.

    Raises:
        RecursionError: The code is nested too deeply.
    """
    import_libcst()
    from ctxlint.model.reader import analyse

    project = _project(settings.extra_bases, root_of_file(source.path), _asks_kernels(settings))
    project.start_trace()  # release what was computed for the last text
    return analyse(source, project, find_outside)


@with_room
def check_source(
    source: Source,
    settings: Settings,
    outside: OutsideFacts | None = None,
    known: KnownNames | None = None,
    alone: Alone | None = None,
    *,
    facts_only: bool = False,
    find_outside: FindOutsideFacts | None = None,
    concerned: bool = True,
) -> FileResult:
    """Analyse, check, suppress. Nothing is raised: an internal failure becomes a finding with the code CTX900.

    See ``_checked`` for the arguments.
    """
    import_libcst()
    from ctxlint.model.index.bare_nodes import UnlikeLibCST, layout_on_demand

    check = partial(_checked, source, settings, outside, known, alone)
    if not settings.is_selected(
        "CTX110", "missing-setup-context", default=False
    ):  # it needs the layout of nearly all of them
        with suppress(UnlikeLibCST), layout_on_demand():
            return check(facts_only=facts_only, find_outside=find_outside, concerned=concerned)
        _project.cache_clear()
    return check(facts_only=facts_only, find_outside=find_outside, concerned=concerned)


def _checked(
    source: Source,
    settings: Settings,
    outside: OutsideFacts | None,
    known: KnownNames | None,
    alone: Alone | None,
    *,
    facts_only: bool,
    find_outside: FindOutsideFacts | None,
    concerned: bool,
) -> FileResult:
    """The implementation of ``check_source``.

    Args:
        source: The text.
        settings: The settings.
        outside: Facts of other files; see ``cross_file``.
        known: Check the file only if it is related to Functions, given those of these names that it calls.
        alone: The result of the file by itself: only what ``outside`` affects is computed again.
        facts_only: Compute no findings.
        find_outside: Finds outside facts on demand.
        concerned: Whether the file is known to be related to Functions; otherwise it is checked only if it is.
    """
    from dataclasses import replace

    from ctxlint.model.reader import read, read_facts, read_finding_facts, read_if_concerned
    from ctxlint.run.check_file import rule_findings, suppressed

    if settings.reports_unused_suppressions:
        alone = None  # findings of rules that are off matter, too
    project = _project(settings.extra_bases, root_of_file(source.path), _asks_kernels(settings))
    if outside is not None:
        project.learn(outside)
    trace = project.start_trace()
    if alone is not None and alone.consulted is not None:
        trace.take(alone.consulted)
    work: Callable[[], Reading]
    if find_outside is not None:
        work = partial(read_finding_facts, source, project, find_outside, concerned=concerned)
    elif known is None:
        work = partial(read, source, project, outside, alone.functions if alone is not None else None)
    else:
        work = partial(read_facts if facts_only else read_if_concerned, source, project, known)
    reading = _guarded(source, settings, work)
    if isinstance(reading, FileResult):
        return reading
    result = FileResult(source.path, linted=True, settings=settings)
    findings: tuple[tuple[str, Diagnostic], ...] = ()
    if reading.file is not None:
        before = alone.findings if alone is not None else ()
        unchanged = [each for each in before if each[0] not in reading.again]
        findings = (*unchanged, *rule_findings(reading.file, settings))
        result = suppressed(reading.file, (diagnostic for _key, diagnostic in findings), settings)
        if reading.outside is None and not (reading.file.broken or result.failed):
            alone = Alone(findings, reading.functions)
    consulted = trace.sorted()
    by_itself = alone._replace(consulted=consulted) if alone is not None else None
    at_stake = (
        reading.facts.all_keys
        if settings.reports_unused_suppressions
        else {key for key, _diagnostic in findings if key}
    )
    facts = replace(reading.facts, at_stake=tuple(sorted(at_stake)), asked=tuple(sorted(project.trace.asked)))
    return result._replace(
        outside=reading.outside,
        facts=facts,
        consulted=consulted,
        alone=by_itself,
        function_count=len(reading.functions),
    )


def read_source(
    source: Source, settings: Settings, find_outside: FindOutsideFacts | None = None
) -> SourceFile | FileResult:
    """Like ``analyse_source``; if that fails, the result that reports the failure."""
    return _guarded(source, settings, lambda: analyse_source(source, settings, find_outside))


def _guarded(source: Source, settings: Settings, read: Callable[[], Read]) -> Read | FileResult:
    reason = refusal(source.text)  # the text of an editor was not decoded by ctxlint
    if reason:
        return unreadable(source.path, reason, settings)
    try:
        return read()
    except RecursionError:
        found = _selected([nested_too_deeply(source.path)], settings)
        return FileResult(source.path, source, found, broken=1, linted=True, settings=settings)
    except Exception as error:  # noqa: BLE001  (one file must not end the run)
        failure = internal_error(source.path, describe("The model", error))
        return FileResult(source.path, source, (failure,), linted=True, settings=settings)


# Other files that names lead to


@lru_cache(maxsize=1)
def _project(extra_bases: tuple[str, ...], root: str, asks_kernels: bool) -> Project:  # noqa: ARG001  (one is known at a time)
    """The project below a root, shared by consecutive files there, so that it reads each file once."""
    from ctxlint.model.index.project import Project

    if _LATEST:
        _LATEST.pop().forget_results()
    _LATEST.append(Project(_load, frozenset(extra_bases), asks_kernels=asks_kernels))
    return _LATEST[0]


def _asks_kernels(settings: Settings) -> bool:
    """Whether a rule is on, or checked all the same, that reports what may be wrong in kernels."""
    asking = (settings.is_selected(code, name, default=False) for code, name in _RULES_ABOUT_KERNELS)
    return settings.reports_unused_suppressions or any(asking)


_RULES_ABOUT_KERNELS = (
    ("CTX416", "unguarded-launch"),
    ("CTX417", "narrow-offset"),
    ("CTX713", "unbound-kernel-name"),
    ("CTX714", "shared-kernel-store"),
    ("CTX715", "misaligned-kernel-operand"),
)
"""They are off by default."""


def forget_read_files() -> None:
    """Read other files again from now on."""
    from ctxlint.config.line_length import line_lengths
    from ctxlint.config.python_requirement import python_requirements
    from ctxlint.config.torch_requirement import torch_requirements

    _project.cache_clear()
    _LOADED.clear()
    torch_requirements.clear()
    python_requirements.clear()
    line_lengths.clear()
    project_tables.cache_clear()


_LATEST: list[Project] = []
"""The project that is known, or was known last: what refers to it in a circle has to be dropped."""

_LOADED: dict[str, bytes | None] = {}
"""A fingerprint of the content of other files at the time they were read."""


def has_changed(path: str, text: str) -> bool:
    """Whether imports have led to a file that had another text: then the change matters to others."""
    return path in _LOADED and _LOADED[path] != digest(text.encode("utf-8", "surrogatepass"))


def _load(path: str) -> Source | None:
    _LOADED[path] = None
    try:
        if path in OPEN:
            _LOADED[path] = digest(OPEN[path].encode("utf-8", "surrogatepass"))
            return source_of(path, OPEN[path])
        data = read_bytes(path)
        _LOADED[path] = digest(data)
        return decode(path, data)
    except (Unreadable, Undecodable, NotPython):
        return None


# Findings about whole files


def unreadable(path: str, reason: str, settings: Settings) -> FileResult:
    """The result for a file that cannot be read."""
    found = _selected([io_error(path, reason)], settings)
    return FileResult(path, diagnostics=found, skipped="" if found else reason, settings=settings)


def _selected(diagnostics: Iterable[Diagnostic], settings: Settings) -> tuple[Diagnostic, ...]:
    """The ``diagnostics`` whose rule is on, for rules that are on by default and have no check of their own."""
    return tuple(
        each
        for each in diagnostics
        if settings.is_selected(each.code, each.name, default=True)
        and not settings.is_ignored_in(each.path, each.code, each.name)
    )
