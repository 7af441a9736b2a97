"""What the rules say about a file that was understood: judged, put in order, and suppressed where comments say so."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ctxlint.result import Alone, FileResult, describe, internal_error
from ctxlint.settings import ALL, Settings
from ctxlint.stages import stage, stage_of_each

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ctxlint.diagnostic import Diagnostic
    from ctxlint.files.source import Source
    from ctxlint.model.functions import SourceFile
    from ctxlint.rules.base import Finding, Rule
    from ctxlint.suppression.noqa import Suppression


def check_file(file: SourceFile, settings: Settings) -> FileResult:
    """Judge a file that was understood, and suppress."""
    return check_readings((file,), settings)


def check_readings(files: Sequence[SourceFile], settings: Settings, alone: Alone | None = None) -> FileResult:
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
                yield too_deep(path)
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


def too_deep(path: str) -> Diagnostic:
    """What is said about a file that Python cannot walk."""
    from ctxlint.diagnostic import Diagnostic
    from ctxlint.files.source import WHOLE_FILE

    message = "The code is nested too deeply to be read; this file was not checked in full."
    return Diagnostic(path, WHOLE_FILE, "CTX901", "invalid-syntax", message)
