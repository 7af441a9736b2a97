"""From the model of a file to its findings: run the rules, sort, and apply suppression comments.

What only a file with findings needs is imported by the first of them.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ctxlint.config.settings import ALL, Settings
from ctxlint.config.torch_versions import ALL_RELEASES
from ctxlint.diagnostic import Diagnostic, Severity
from ctxlint.effort import Effort, EffortExceeded, spend, steps
from ctxlint.fix import Applicability, with_line_endings_of
from ctxlint.model.analyses.apply_arity import all_are_shifted
from ctxlint.model.analyses.certain_raises import (
    backward_is_unreached,
    backward_raises,
    backward_raises_lately,
    forward_raises,
    forward_raises_lately,
    is_behind_cast,
    is_replaced,
    is_unreached,
    method_at,
)
from ctxlint.model.analyses.gradient_placements import is_in_miscounted
from ctxlint.model.analyses.reachability import backward_never_runs
from ctxlint.model.analyses.rejections import results_are_rejected
from ctxlint.model.analyses.skipped_state import may_lack_state
from ctxlint.model.analyses.unsavable_values import may_never_save
from ctxlint.model.function import ApplyCall, FunctionClass, SourceFile
from ctxlint.model.function_store import STORE
from ctxlint.model.index.outside_facts import MODULE_BACKWARDS
from ctxlint.model.index.statement_pieces import StatementLines
from ctxlint.profiling import stage, stage_of_each
from ctxlint.result import FileResult, describe, internal_error
from ctxlint.rule_names import rule_names
from ctxlint.rules import all_rules
from ctxlint.rules.base import Category
from ctxlint.rules.ctx903_too_complex import TooComplex, too_complex
from ctxlint.source.source import WHOLE_FILE, Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ctxlint.diagnostic import Related
    from ctxlint.model.function_store import KnownFindings
    from ctxlint.rules.base import Finding, Rule
    from ctxlint.source.source import Source
    from ctxlint.suppression.noqa import Suppression


def check_file(file: SourceFile, settings: Settings) -> FileResult:
    """Check and suppress, given the model of a file."""
    return suppressed(file, tuple(diagnostic for _key, diagnostic in rule_findings(file, settings)), settings)


def rule_findings(file: SourceFile, settings: Settings) -> tuple[tuple[str, Diagnostic], ...]:
    """The findings of all enabled rules in a file, each after the key of the Function that it is about.

    That is its key in ``SourceFile.by_name``; empty if it is about none.
    """
    return tuple(stage_of_each("check", run_rules(file, settings)))


def suppressed(file: SourceFile, findings: Iterable[Diagnostic], settings: Settings) -> FileResult:
    """The result for a file with these findings, except those that comments suppress."""
    source, diagnostics = file.source, _in_order(findings)
    broken = len(file.broken)
    result = FileResult(source.path, source, diagnostics, broken=broken, linted=True, settings=settings)
    # A directive that suppresses nothing may still be needed where the code cannot be parsed.
    unused_matter = not (broken or result.failed) and settings.reports_unused_suppressions
    if settings.ignore_noqa or not (diagnostics or unused_matter or "ctxlint" in source.text.lower()):
        return result
    from ctxlint.suppression.noqa import suppress

    split = suppress(source, diagnostics, rule_names(), own_only=settings.leave_noqa)
    if unused_matter and any(each.concerns_ctxlint for each in split.directives):
        split = _with_unused(file, split, settings)
    return result._replace(diagnostics=split.kept, hidden=split.hidden, warnings=split.warnings)


@stage("suppress")
def _with_unused(file: SourceFile, split: Suppression, settings: Settings) -> Suppression:
    """``split`` with findings about unused directives, unless a directive suppresses those.

    A directive may be meant for a rule that is off in this run, so all rules are checked.
    """
    from ctxlint.suppression.unused import UnusedDirective, hide_unused, unused_directives

    everything = Settings(
        select=(ALL,),
        target_torch=settings.target_torch,
        project_torch=settings.project_torch,
        project_python=settings.project_python,
        extra_bases=settings.extra_bases,
    )
    source = file.source
    every = tuple(diagnostic for _key, diagnostic in run_rules(file, everything))
    unused = tuple(unused_directives(source, split.directives, every, rule_names()))
    found = _in_order(diagnostic for _, diagnostic in _run_rules({UnusedDirective: unused}, source, settings))
    return hide_unused(source, split, found, own_only=settings.leave_noqa)


def run_rules(file: SourceFile, settings: Settings) -> Iterator[tuple[str, Diagnostic]]:
    """Like ``rule_findings``, in no particular order."""
    subjects: dict[type, Sequence[Any]] = {
        FunctionClass: file.functions,
        ApplyCall: file.calls,
        SourceFile: (file,),
    }
    called = {call.span: call.function for call in file.calls}
    called |= {call.modified.span: call.function for call in file.calls if call.modified is not None}
    called |= {each.span: MODULE_BACKWARDS for each in file.module_backwards}
    called |= {Span(each.position, each.position): each.qualname for each in file.too_complex}
    for subject, diagnostic in _run_rules(subjects, file.source, settings):
        yield (subject.qualname if type(subject) is FunctionClass else called.get(diagnostic.span, "")), diagnostic


def _run_rules(
    subjects: Mapping[type, Sequence[Any]], source: Source, settings: Settings
) -> Iterator[tuple[Any, Diagnostic]]:
    """The findings of all enabled rules about ``subjects``, which are grouped by type; each after its subject."""
    path, effort = source.path, Effort()
    rules = _those_that_are_on(all_rules(), settings)
    if settings.per_file_ignores or settings.extend_per_file_ignores:
        rules = tuple(each for each in rules if not settings.is_ignored_in(path, each.code, each.name))
    known = _known(subjects.get(FunctionClass, ()), rules, settings, effort)
    for kind, of_kind in subjects.items():
        about_it = tuple(each for each in rules if each.subject is kind)
        for subject in of_kind:
            found = _findings_about(subject, about_it, source, settings, effort, known.get(id(subject)))
            yield from ((subject, each) for each in found)


def _known(
    functions: Iterable[FunctionClass], rules: Iterable[Rule[Any]], settings: Settings, effort: Effort
) -> dict[int, KnownFindings | None]:
    """The known findings about Functions that have not changed, by their identity."""
    store = STORE.get()
    if store is None:
        return {}
    codes = tuple(rule.code for rule in rules if rule.subject is FunctionClass)
    found: dict[int, KnownFindings | None] = {}
    without_fixing = settings._replace(fix=False)
    for each in functions:
        stored = found[id(each)] = store.known_findings(each, without_fixing)
        if stored is not None:
            whole = stored.whole(codes)
            if whole is not None and effort.charge(each.qualname, whole.steps):
                stored.reported = whole.reported
    return found


def _findings_about(
    subject: Any,
    rules: Sequence[Rule[Any]],
    source: Source,
    settings: Settings,
    effort: Effort,
    stored: KnownFindings | None,
) -> list[Diagnostic]:
    """What some rules report about a subject."""
    if stored is not None and stored.reported is not None:
        rules = [each for each in rules if each.code in stored.reported]
    releases = getattr(subject, "releases", ALL_RELEASES)
    within = settings.limited_to(releases) if releases != ALL_RELEASES else settings
    found: list[Diagnostic] = []
    exceeded = False
    with effort.on(getattr(subject, "qualname", None)):
        for rule in rules:
            try:
                reported = _findings_of(rule, subject, within, stored)
                found.extend(_diagnostic(source, rule, each, settings, subject) for each in reported)
            except (EffortExceeded, RecursionError):
                exceeded = True
            except Exception as error:  # noqa: BLE001  (one rule must not silence the others)
                found.append(internal_error(source.path, describe(f"{rule.code} ({rule.name})", error)))
    return [*found, *_given_up(subject, source, settings)] if exceeded else found


def _findings_of(rule: Rule[Any], subject: Any, settings: Settings, stored: KnownFindings | None) -> Iterator[Finding]:
    """The findings of a rule about a subject, computed or known."""
    earlier = stored.get(rule.code) if stored is not None else None
    if earlier is not None and stored is not None and (stored.reported is not None or earlier.steps <= steps.left):
        if stored.reported is None:
            spend(earlier.steps)
        yield from earlier.findings
        return
    before, found = steps.left, []
    in_view = rule.default_in_view and not settings.is_selected(rule.code, rule.name, default=False)
    if _is_checked(rule, subject, settings, in_view=in_view):
        for each in rule.check(subject, settings):
            if (each.in_view or not in_view) and _may_come_true(rule, subject, each):
                found.append(_once_counted(rule, subject, _as_it_stands(rule, subject, _with_helpers(subject, each))))
                yield found[-1]
    if stored is not None:
        stored.keep(rule.code, found, before - steps.left)


def _is_checked(rule: Rule[Any], subject: Any, settings: Settings, *, in_view: bool) -> bool:
    """Whether a rule may report anything about a subject; ``in_view``: only what a use in the project makes certain."""
    if in_view and not rule.may_be_in_view(subject):
        return False
    if isinstance(subject, FunctionClass) and (
        subject.is_for_errors
        or (subject.is_replaced and not rule.about_definition)
        or (rule.about_backward and "backward" in subject.replaced)
    ):
        return False
    return not rule.about_backward or not (_is_out_of_use(subject, settings) or backward_never_runs(subject))


def _may_come_true(rule: Rule[Any], subject: Any, finding: Finding) -> bool:
    """Whether the place of a finding is reached, if that matters: nothing before it certainly raises.

    Nothing does of a method that other code replaces.
    """
    is_of_method = isinstance(subject, FunctionClass) and subject.replaced and not rule.about_definition
    if is_of_method and is_replaced(subject, finding.span):
        return False
    if rule.says_if_it_runs or not isinstance(subject, FunctionClass):
        return True
    if rule.about_backward and backward_is_unreached(subject, plainly=True):
        return False
    return rule.holds_unreached or not is_unreached(subject, finding.span, plainly=True)


def _as_it_stands(rule: Rule[Any], subject: Any, finding: Finding) -> Finding:
    """The finding, with the condition of what it claims where something raises before."""
    if not isinstance(subject, FunctionClass) or rule.says_if_it_runs:
        return finding
    about_backward = rule.about_gradients or (rule.about_backward and not rule.holds_unreached)
    unreached = about_backward and backward_is_unreached(subject)
    if not (unreached or _comes_late(rule, subject, finding)):
        if " at backward" not in finding.message or not _is_never_called(rule, subject, finding):
            return finding
        from ctxlint.rules.wording import if_it_is_called

        return replace(finding, message=if_it_is_called(finding.message))
    from ctxlint.rules.wording import if_backward_gets_there, if_it_gets_there

    method = None if about_backward else method_at(subject, finding.span)
    if method is None:
        return replace(finding, message=if_backward_gets_there(subject, finding.message))
    return replace(finding, message=if_it_gets_there(method.name, finding.message))


def _once_counted(rule: Rule[Any], subject: Any, finding: Finding) -> Finding:
    """The finding, with that condition where torch rejects the number of gradients before it takes one."""
    concerned = rule.about_values and isinstance(subject, FunctionClass)
    if not concerned or not is_in_miscounted(subject, finding.span):
        return finding
    from ctxlint.rules.wording import once_counted

    return replace(finding, message=once_counted(finding.message))


def _is_never_called(rule: Rule[Any], fn: FunctionClass, finding: Finding) -> bool:
    """Whether torch never calls backward, or calls only its decorator, which raises, where a finding is about that."""
    if backward_is_unreached(fn) or backward_never_runs(fn):
        return True
    return rule.holds_unreached and method_at(fn, finding.span) is fn.backward and is_behind_cast(fn)


def _comes_late(rule: Rule[Any], fn: FunctionClass, finding: Finding) -> bool:
    """Whether something certainly raises before the place of a finding, if that matters.

    Before what torch does with gradients: anywhere in backward, or after some path through forward, which may be that
    of the call in the message.
    """
    if (rule.about_context or rule.about_results) and forward_raises(fn):
        return True
    if rule.about_results and results_are_rejected(fn):
        return True
    if not rule.about_gradients:
        return not rule.about_definition and is_unreached(fn, finding.span)
    raises = backward_raises(fn) or all_are_shifted(fn) or may_lack_state(fn) or may_never_save(fn)
    lately = forward_raises_lately(fn) or backward_raises_lately(fn)
    return raises or lately or is_unreached(fn, finding.span)


def _is_out_of_use(subject: Any, settings: Settings) -> bool:
    """Whether no call of a Function reaches backward in any torch release: a legacy one needs its instance (CTX108)."""
    return getattr(subject, "legacy_state", None) is not None and settings.torch.reach(1, 5)


def _given_up(subject: Any, source: Source, settings: Settings) -> tuple[Diagnostic, ...]:
    """The finding for a class that a rule needs too much work for; the other rules still run."""
    if not settings.is_selected(TooComplex.code, TooComplex.name, default=True):
        return ()
    span, name = WHOLE_FILE, os.path.basename(source.path)
    if isinstance(subject, FunctionClass):
        start = subject.start(subject.node.name)
        span, name = Span(start, start), subject.name
    return (Diagnostic(source.path, span, TooComplex.code, TooComplex.name, too_complex(name), Severity.WARNING),)


def _with_helpers(subject: Any, finding: Finding) -> Finding:
    """The finding, with the helpers that it rests on, if any."""
    if not finding.rests_on:
        return finding
    from ctxlint.rules.through_helpers import with_helpers

    return with_helpers(subject, finding)


@lru_cache(maxsize=8)
def _those_that_are_on(rules: tuple[Rule[Any], ...], settings: Settings) -> tuple[Rule[Any], ...]:
    defaults = ((each, each.default or each.default_in_view) for each in rules)
    return tuple(each for each, default in defaults if settings.is_selected(each.code, each.name, default=default))


def _diagnostic(source: Source, rule: Rule[Any], finding: Finding, settings: Settings, subject: Any) -> Diagnostic:
    """The diagnostic of a finding, in fewer words if it is long.

    Its fix is not safe if its subject is known only in part.
    """
    from ctxlint.rules.wording import fitting

    message = fitting(finding.message)
    fix = finding.fix if settings.is_fixable(rule.code, rule.name) else None
    if fix is not None and not source.can_take(fix.edits):
        fix = None
    if fix is not None:
        function = subject if isinstance(subject, FunctionClass) else None
        doubted = function is not None and function.known_in_part
        unsafe = doubted and fix.applicability is Applicability.SAFE
        applicability = Applicability.UNSAFE if unsafe else fix.applicability
        applicability = settings.applicability(rule.code, rule.name, applicability)
        from ctxlint.fixes.formatting import formatted

        lines = StatementLines(function.slice.first_line, function.slice.last_line) if function is not None else None
        fix = formatted(source, fix, settings.line_length, lines)
        fix = replace(with_line_endings_of(source, fix), applicability=applicability)
    errs = rule.category is Category.CORRECTNESS and not finding.only_warns
    severity = Severity.ERROR if errs else Severity.WARNING
    return Diagnostic(source.path, finding.span, rule.code, rule.name, message, severity, fix, _distinct_notes(finding))


def _distinct_notes(finding: Finding) -> tuple[Related, ...]:
    """The notes of a finding, each once, without those that only point to its own position."""
    notes, own = dict.fromkeys(finding.related), finding.span.start
    return tuple(each for each in notes if each.path or each.span.start != own or "`" in each.message)


def _in_order(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Sorted by position and code; what several classes report about a method that they share is one with all notes."""
    found: dict[Any, Diagnostic] = {}
    for each in diagnostics:
        before = found.get(each.sort_key)
        if before is not None and before.related != each.related:
            found[each.sort_key] = replace(each, related=tuple(dict.fromkeys((*before.related, *each.related))))
        else:
            found[each.sort_key] = each
    return tuple(sorted(found.values(), key=lambda each: each.sort_key))
