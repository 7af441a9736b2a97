"""The line of work: find, scan, read, understand, judge, suppress. What comes after is to report or to mend.

LibCST, and with it the model and the rules, is imported in ``check_source`` only, once a file holds a candidate.
"""

from __future__ import annotations

import os
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from ctxlint.cache.run import Cache
from ctxlint.cache.stamp import digest
from ctxlint.files.decode import NotPython, Undecodable, Unreadable, decode, read_bytes, source_of
from ctxlint.files.find import Found, Missing, Skipped, find_files, is_excluded
from ctxlint.files.scan import holds_candidate
from ctxlint.result import (
    Alone,
    Candidate,
    FileResult,
    describe,
    internal_error,
    io_error,
    without_needless_text,
)
from ctxlint.settings import ALL, Settings
from ctxlint.stages import stage, stage_of_each
from ctxlint.workers import Workers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ctxlint.configuration import Configuration
    from ctxlint.diagnostic import Diagnostic
    from ctxlint.files.scan import Mentions
    from ctxlint.files.source import Source
    from ctxlint.model.callers import KnownNames, OutsideFacts
    from ctxlint.model.functions import SourceFile
    from ctxlint.model.project import Project
    from ctxlint.rules.base import Finding, Rule
    from ctxlint.suppression.noqa import Suppression

Read = TypeVar("Read")

# Many files


def lint_paths(
    paths: Sequence[str],
    configuration: Configuration,
    *,
    jobs: int = 1,
    finish: Callable[[FileResult], FileResult] | None = None,
    watch: Callable[[Iterator[FileResult], int], Iterator[FileResult]] | None = None,
    cached: bool = False,
) -> Iterator[FileResult]:
    """Lint every file under ``paths``, each with the settings of the nearest configuration file.

    One result for each file, also for those that are skipped, in no particular order. ``jobs`` is how many processes to
    use at most, 0 for as many as there are processors; ``finish`` is applied to each result where it was made.
    ``watch`` passes on the results that take time; it is told how many there will be. ``cached`` takes over what was
    found out earlier about files that are as they were, where nothing is mended. Raises ConfigurationError.
    """
    cache = Cache(used=cached)
    # Where results are kept, they are kept as they were before they were finished.
    work = partial(_lint_candidate, finish=None if cached else finish)
    with Workers(jobs, _prepare) as workers:
        # A cache may know all of them.
        begin = (lambda _candidates: None) if cached else partial(workers.begin, work)
        lint = partial(_lint_candidates, cache=cache, work=partial(workers.map, work), finish=finish, watch=watch)
        yield from _lint_paths(paths, configuration, cache, begin, lint)
    cache.write()


def _lint_paths(
    paths: Sequence[str],
    configuration: Configuration,
    cache: Cache,
    begin: Callable[[Sequence[Candidate]], None],
    lint: Callable[[Sequence[Candidate]], Iterator[FileResult]],
) -> Iterator[FileResult]:
    candidates: list[Candidate] = []
    others: list[tuple[Found, Settings]] = []
    for each in stage_of_each("find", _find(paths, configuration)):
        found, settings = each
        if isinstance(found, Skipped):
            lost = ((0, f"{found.reason}; nothing in it was linted"),) if found.lost else ()
            yield FileResult(found.path, skipped=found.reason, warnings=lost, settings=settings)
            continue
        if isinstance(found, Missing):
            yield _unreadable(found.path, found.reason, settings)
            continue
        try:
            holds = _holds_candidate(cache, found, settings)
        except Unreadable as error:
            yield _unreadable(found.path, str(error), settings)
            continue
        if not holds:
            others.append((found, settings))
            continue
        candidate = _admit(configuration, found, settings)
        if candidate is None:
            yield FileResult(found.path, skipped="excluded", settings=settings)
            continue
        candidates.append(candidate)
        begin(candidates)
    if not candidates:
        yield from (FileResult(found.path, settings=settings) for found, settings in others)
        return
    from ctxlint.together import lint_together

    yield from lint_together(candidates, others, partial(_mentioning, cache), partial(_admit, configuration), lint)


@stage("scan")
def _holds_candidate(cache: Cache, found: Found, settings: Settings) -> bool:
    return cache.holds_candidate(found, settings)


@stage("scan")
def _mentioning(
    cache: Cache, others: Iterable[tuple[Found, Settings]], mentions: Mentions
) -> list[tuple[Found, Settings]]:
    return list(cache.mentioning(others, mentions))


def _lint_candidates(
    todo: Sequence[Candidate],
    cache: Cache,
    work: Callable[[Sequence[Candidate]], Iterator[FileResult]],
    finish: Callable[[FileResult], FileResult] | None,
    watch: Callable[[Iterator[FileResult], int], Iterator[FileResult]] | None,
) -> Iterator[FileResult]:
    """The results for some files, in order: from the cache where it has them."""
    known = [cache.result(candidate) for candidate in todo]
    unknown = [candidate for candidate, result in zip(todo, known) if result is None]
    found = work(unknown)
    fresh = iter(found if watch is None or not unknown else watch(found, len(unknown)))
    for candidate, before in zip(todo, known):
        result = next(fresh) if before is None else before
        if before is None:
            cache.keep(candidate, result)
        yield _finished(result, finish) if cache.used else result


def files_under(paths: Sequence[str], configuration: Configuration) -> Iterator[str]:
    """The files that ``lint_paths`` would read. Raises ConfigurationError."""
    for found, settings in _find(paths, configuration):
        if isinstance(found, Found) and not _left_out_by_nearer(found, configuration, settings):
            yield found.path


def _find(paths: Sequence[str], configuration: Configuration) -> Iterator[tuple[Found | Skipped | Missing, Settings]]:
    """What is under ``paths``, with the settings for the folder that each path names."""
    groups: dict[Settings, list[str]] = {}
    for path in paths:
        folder = path if os.path.isdir(path) else os.path.dirname(path)
        groups.setdefault(configuration.settings_for(folder), []).append(path)
    seen: set[tuple[type, str]] = set()
    for settings, members in groups.items():
        for found in find_files(
            members,
            exclude=settings.exclude_globs,
            extend_exclude=settings.extend_exclude,
            root=settings.root,
            force_exclude=settings.force_exclude,
            respect_gitignore=settings.respect_gitignore,
        ):
            if len(groups) > 1:
                name = (type(found), os.path.realpath(found.path))  # what is skipped by one name is found by another
                if name in seen:
                    continue
                seen.add(name)
            yield found, settings


def _admit(configuration: Configuration, found: Found, settings: Settings) -> Candidate | None:
    """A file that is to be linted, with the settings that apply to it, unless these exclude it."""
    if _left_out_by_nearer(found, configuration, settings):
        return None
    return Candidate(found.path, configuration.settings_for_file(found.path))


def _left_out_by_nearer(found: Found, configuration: Configuration, settings: Settings) -> bool:
    """Whether a configuration file below the one that the walk went by excludes what it found."""
    nearest = configuration.settings_for(os.path.dirname(found.path))
    return nearest is not settings and not found.explicit and is_left_out(found.path, nearest)


def is_left_out(path: str, settings: Settings) -> bool:
    """Whether ``exclude`` or ``extend-exclude`` names the file or a folder that it is in."""
    return is_excluded(path, [*settings.exclude_globs, *settings.extend_exclude], settings.root)


def _prepare() -> None:
    """Import what linting a file needs."""
    from ctxlint.model.reader import read  # noqa: F401
    from ctxlint.rules import all_rules

    all_rules()


def _lint_candidate(candidate: Candidate, finish: Callable[[FileResult], FileResult] | None = None) -> FileResult:
    return without_needless_text(_finished(lint_file(*candidate), finish))


def _finished(result: FileResult, finish: Callable[[FileResult], FileResult] | None) -> FileResult:
    """The result after ``finish``; what it says about others is what the file says as it was."""
    if finish is None:
        return result
    said = finish(result)._replace(outside=result.outside, facts=result.facts, consulted=result.consulted)
    return said._replace(alone=result.alone)


# One file


def lint_file(
    path: str,
    settings: Settings,
    outside: OutsideFacts | None = None,
    known: KnownNames | None = None,
    alone: Alone | None = None,
) -> FileResult:
    """The result for a file, whether or not its bytes look like a Function's; the others are as for ``check_source``.

    It hangs on nothing but the bytes of the file, ``settings``, ``outside``, ``known``, and what the result has as
    ``consulted``; its ``read`` says by which content.
    """
    try:
        data = read_bytes(path)
        result = check_source(decode(path, data), settings, outside, known, alone)
    except (Unreadable, Undecodable) as error:
        return _unreadable(path, str(error), settings)
    except NotPython as error:
        return FileResult(path, skipped=str(error), settings=settings)
    before = dict(alone.read) if alone is not None else {}
    others = result.consulted.files if result.consulted is not None else ()
    own = (os.path.abspath(path), digest(data))
    read = (own, *((other, _LOADED.get(other, before.get(other))) for other in others))
    return result._replace(read=read, alone=result.alone._replace(read=read) if result.alone is not None else None)


def lint_bytes(path: str, data: bytes, settings: Settings) -> FileResult:
    """The result for a file with this content."""
    return _lint(path, data, lambda: decode(path, data), settings)


def lint_text(path: str, text: str, settings: Settings) -> FileResult:
    """The result for a file with this text; that of a notebook is its JSON."""
    return _lint(path, text.encode("utf-8", "surrogatepass"), lambda: source_of(path, text), settings)


def _lint(path: str, data: bytes, read: Callable[[], Source], settings: Settings) -> FileResult:
    if not holds_candidate(data):
        return FileResult(path, settings=settings)
    try:
        return check_source(read(), settings)
    except Undecodable as error:
        return _unreadable(path, str(error), settings)
    except NotPython as error:
        return FileResult(path, skipped=str(error), settings=settings)


def lint_source(source: Source, settings: Settings) -> list[Diagnostic]:
    """The findings in one file that is already in memory, sorted; none where nothing in it could be a Function."""
    if not holds_candidate(source.text.encode("utf-8", "surrogatepass")):
        return []
    return list(check_source(source, settings).diagnostics)


def understand_source(source: Source, settings: Settings) -> SourceFile:
    """The model of one file. Raises RecursionError for code that is nested too deeply."""
    from ctxlint.model.reader import understand

    return understand(source, _project(settings.extra_bases))


def check_source(
    source: Source,
    settings: Settings,
    outside: OutsideFacts | None = None,
    known: KnownNames | None = None,
    alone: Alone | None = None,
) -> FileResult:
    """Understand, judge, suppress. Nothing is raised: what fails inside becomes a finding with the code CTX900.

    ``outside`` is what other files of a run say about this one; see ``ctxlint.together``. With ``known`` it is judged
    only if it has to do with Functions, and told those of these names that it calls. With ``alone`` nothing is found
    out again that is known by that.
    """
    from ctxlint.model.reader import read, read_if_concerned

    project = _project(settings.extra_bases)
    trace = project.start_trace()
    if alone is not None and alone.consulted is not None:
        trace.take(alone.consulted)
    if known is None:
        work = partial(read, source, project, outside, alone.functions if alone is not None else None)
    else:
        work = partial(read_if_concerned, source, project, known)
    reading = _guarded(source, settings, work)
    if isinstance(reading, FileResult):
        return reading
    result = FileResult(source.path, linted=True, settings=settings)
    if reading.files:
        result = _check(reading.files, settings, alone)
        if alone is not None and result.alone is None:
            return check_source(source, settings, outside)
    consulted = trace.sorted()
    by_itself = result.alone._replace(consulted=consulted) if result.alone is not None else None
    return result._replace(outside=reading.outside, facts=reading.facts, consulted=consulted, alone=by_itself)


def read_source(source: Source, settings: Settings) -> SourceFile | FileResult:
    """As ``understand_source``; where that fails, what is to be said about it."""
    return _guarded(source, settings, lambda: understand_source(source, settings))


def _guarded(source: Source, settings: Settings, read: Callable[[], Read]) -> Read | FileResult:
    try:
        return read()
    except RecursionError:
        found = _selected([_too_deep(source.path)], settings)
        return FileResult(source.path, source, found, broken=1, linted=True, settings=settings)
    except Exception as error:  # noqa: BLE001  (one file must not end the run)
        failure = internal_error(source.path, describe("The model", error))
        return FileResult(source.path, source, (failure,), linted=True, settings=settings)


def check_file(file: SourceFile, settings: Settings) -> FileResult:
    """Judge a file that was understood, and suppress."""
    return _check((file,), settings)


def _check(files: Sequence[SourceFile], settings: Settings, alone: Alone | None = None) -> FileResult:
    """The result for the readings of one file: the one by itself, unless it is known what it is ``alone``, and others.

    What it is alone is not known of what cannot be read, nor where rules that are off matter as well.
    """
    from ctxlint.model.open_questions import own

    file, source, added = files[0], files[0].source, files
    if alone is None:
        findings = tuple(stage_of_each("judge", judge(file, settings)))
        alone, added = Alone(findings, tuple(map(own, file.functions))), files[1:]
    more = stage_of_each("judge", judge_all(added, settings, alone.findings))
    diagnostics = _in_order((*alone.findings, *more))
    broken = len(files[-1].broken)
    result = FileResult(source.path, source, diagnostics, broken=broken, linted=True, settings=settings)
    if file.broken or result.failed:
        unused_matter = False  # what hides nothing may still have something to hide where the code cannot be read
    else:
        unused_matter = _is_on(*_UNUSED_SUPPRESSION, settings)
        result = result._replace(alone=alone)
    if settings.ignore_noqa or not (diagnostics or unused_matter or "ctxlint" in source.text.lower()):
        return result
    from ctxlint.rules import rule_names
    from ctxlint.suppression.noqa import suppress

    judged = suppress(source, diagnostics, rule_names(), own_only=settings.leave_noqa)
    if unused_matter and any(each.speaks_to_ctxlint for each in judged.directives):
        judged = _with_unused(files, judged, settings)
        result = result._replace(alone=None)
    return result._replace(diagnostics=judged.kept, hidden=judged.hidden, warnings=judged.warnings)


_UNUSED_SUPPRESSION = ("CTX910", "unused-suppression")


def _is_on(code: str, name: str, settings: Settings) -> bool:
    return settings.is_selected(code, name, default=False)


@stage("suppress")
def _with_unused(files: Sequence[SourceFile], judged: Suppression, settings: Settings) -> Suppression:
    """``judged`` with the findings about directives that hide nothing, as far as no directive hides those.

    A directive may be there for a rule that is off in this run, so all rules are asked.
    """
    from ctxlint.rules import rule_names
    from ctxlint.suppression.unused import UnusedDirective, hide_unused, unused_directives

    everything = Settings(
        select=(ALL,),
        target_torch=settings.target_torch,
        project_torch=settings.project_torch,
        extra_bases=settings.extra_bases,
    )
    source = files[0].source
    every = tuple(judge_all(files, everything))
    unused = tuple(unused_directives(source, judged.directives, every, rule_names()))
    found = _in_order(_judge({UnusedDirective: unused}, source, settings))
    return hide_unused(source, judged, found, own_only=settings.leave_noqa)


@lru_cache(maxsize=1)
def _project(extra_bases: tuple[str, ...]) -> Project:
    """The other files that names may lead to, each read once in a process."""
    from ctxlint.model.project import Project

    return Project(_load, frozenset(extra_bases))


def forget_other_files() -> None:
    """Read other files anew from now on: for whoever stays around while they change."""
    from ctxlint.torch_requirement import torch_requirement

    _project.cache_clear()
    _LOADED.clear()
    torch_requirement.cache_clear()


_LOADED: dict[str, bytes | None] = {}
"""What stands for the content of other files, as it was when they were read."""


def _load(path: str) -> Source | None:
    _LOADED[path] = None
    try:
        data = read_bytes(path)
        _LOADED[path] = digest(data)
        return decode(path, data)
    except (Unreadable, Undecodable, NotPython):
        return None


def judge_all(
    files: Sequence[SourceFile], settings: Settings, before: Iterable[Diagnostic] = ()
) -> Iterator[Diagnostic]:
    """What the rules say about a file as it is by itself; and about what else is known of it, at other places.

    So knowing more may add findings, and takes none away. ``before`` is what was said already.
    """
    taken = {each.span for each in before}
    for file in files:
        found = [each for each in judge(file, settings) if each.span not in taken]
        taken.update(each.span for each in found)
        yield from found


def judge(file: SourceFile, settings: Settings) -> Iterator[Diagnostic]:
    """What the rules that are on say about a file, in no particular order."""
    from ctxlint.model.functions import ApplyCall, FunctionClass, SourceFile

    subjects: dict[type, Sequence[Any]] = {
        FunctionClass: file.functions,
        ApplyCall: file.calls,
        SourceFile: (file,),
    }
    return _judge(subjects, file.source, settings)


def _judge(subjects: Mapping[type, Sequence[Any]], source: Source, settings: Settings) -> Iterator[Diagnostic]:
    """What the rules that are on say about ``subjects``, which are sorted by their type."""
    from ctxlint.rules import all_rules

    path = source.path
    for rule in _those_that_are_on(all_rules(), settings):
        if settings.per_file_ignores and settings.is_ignored_in(path, rule.code, rule.name):
            continue
        for subject in subjects.get(rule.subject, ()):
            try:
                if rule.about_backward and subject.backward_never_runs:
                    continue
                for finding in rule.check(subject, settings):
                    yield _diagnostic(source, rule, finding, settings)
            except RecursionError:
                yield _too_deep(path)
            except Exception as error:  # noqa: BLE001  (one rule must not silence the others)
                yield internal_error(path, describe(f"{rule.code} ({rule.name})", error))


@lru_cache(maxsize=8)
def _those_that_are_on(rules: tuple[Rule[Any], ...], settings: Settings) -> tuple[Rule[Any], ...]:
    return tuple(each for each in rules if settings.is_selected(each.code, each.name, default=each.default))


def _diagnostic(source: Source, rule: Rule[Any], finding: Finding, settings: Settings) -> Diagnostic:
    from dataclasses import replace

    from ctxlint.diagnostic import Diagnostic, Severity
    from ctxlint.fixes.edit import with_line_endings_of
    from ctxlint.rules.base import Category

    fix = finding.fix if settings.is_fixable(rule.code, rule.name) else None
    if fix is not None and not source.can_take(fix.edits):
        fix = None
    if fix is not None:
        fix = replace(
            with_line_endings_of(source, fix),
            applicability=settings.applicability(rule.code, rule.name, fix.applicability),
        )
    severity = Severity.ERROR if rule.category is Category.CORRECTNESS else Severity.WARNING
    return Diagnostic(
        source.path, finding.span, rule.code, rule.name, finding.message, severity, fix, tuple(finding.related)
    )


def _in_order(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Sorted by place and code; what is said twice in the same words at the same place is said once."""
    return tuple(sorted({each.sort_key: each for each in diagnostics}.values(), key=lambda each: each.sort_key))


# What is said about whole files


def _unreadable(path: str, reason: str, settings: Settings) -> FileResult:
    return FileResult(path, diagnostics=_selected([io_error(path, reason)], settings), settings=settings)


def _too_deep(path: str) -> Diagnostic:
    from ctxlint.diagnostic import Diagnostic
    from ctxlint.files.source import WHOLE_FILE

    message = "The code is nested too deeply to be read; this file was not checked in full."
    return Diagnostic(path, WHOLE_FILE, "CTX901", "invalid-syntax", message)


def _selected(diagnostics: Iterable[Diagnostic], settings: Settings) -> tuple[Diagnostic, ...]:
    """Those of ``diagnostics`` whose rule is on, for rules that are on by default and that nothing checks."""
    return tuple(
        each
        for each in diagnostics
        if settings.is_selected(each.code, each.name, default=True)
        and not settings.is_ignored_in(each.path, each.code, each.name)
    )
