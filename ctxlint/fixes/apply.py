"""The fix engine: edits on the original text, round after round, until there is nothing left to fix.

Each round takes the findings in order of position and applies every fix that does not overlap one taken before it; the
others wait for the next round, which checks the new text. If a text no longer parses, or fixes undo each other, that is
a bug in ctxlint: the file is returned unchanged, with a finding that reports it.
"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING

from ctxlint.diagnostic import Fixed
from ctxlint.effort import STEPS_OF_FIXES, steps
from ctxlint.fix import Applicability
from ctxlint.fixes.imported_names import unused_imports
from ctxlint.patterns import pattern
from ctxlint.result import FileResult, internal_error, io_error, with_finding
from ctxlint.source.ast_tree import tree_of
from ctxlint.source.decode import encode
from ctxlint.source.reading import Undecodable
from ctxlint.source.text_edits import Edit, apply_edits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ctxlint.config.settings import Settings
    from ctxlint.diagnostic import Diagnostic
    from ctxlint.source.source import Source

__all__ = ["apply_edits", "apply_fixes", "is_applicable", "plan"]

MAX_IDLE_ROUNDS = 10
"""The maximum number of consecutive rounds without a new minimum of findings to fix."""


class _Fault(Exception):
    """Fixes that break the code: a bug in ctxlint."""


class _Unwritable(Exception):
    """Fixes whose text the encoding of the file cannot represent."""


def is_applicable(diagnostic: Diagnostic, settings: Settings) -> bool:
    """Whether ``--fix`` with these settings applies the fix of ``diagnostic``."""
    fix = diagnostic.fix
    if fix is None or not fix.edits:
        return False
    return fix.applicability is Applicability.SAFE or (
        settings.unsafe_fixes and fix.applicability is Applicability.UNSAFE
    )


def apply_fixes(result: FileResult, settings: Settings, check: Callable[[Source], FileResult]) -> FileResult:
    """Apply the fixes that ``settings`` allow to a checked file, and check it again until none is left.

    ``check`` is the pipeline for a text. Returns the result for the fixed text, or ``result`` with one more finding if
    a fix broke the code. Writes nothing.
    """
    original = result.source
    if original is None or result.failed or not any(is_applicable(each, settings) for each in result.diagnostics):
        return result
    parses = tree_of(original.text) is not None
    counts: Counter[tuple[str, str]] = Counter()
    current, seen, released = result, {original.text}, set[str]()
    fewest, idle = len(result.diagnostics) + 1, 0
    begun, unfinished, names = steps.spent, False, ""
    try:
        while True:
            todo = [each for each in current.diagnostics if is_applicable(each, settings)]
            if not todo or current.source is None:
                break
            fewest, idle = (len(todo), 0) if len(todo) < fewest else (fewest, idle + 1)
            taken, edits = plan(todo)
            source = current.source.edited(edits)
            names = ", ".join(sorted({f"{each.code} ({each.name})" for each in taken}))
            if source.text in seen or idle > MAX_IDLE_ROUNDS:
                raise _Fault(f"The fixes of {names} do not converge")
            current = _check_round(source, current, check, names, parses=parses)
            seen.add(source.text)
            counts.update((each.code, each.name) for each in taken)
            begun -= 4 * len(source.text)  # checking it again costs about that much
            released.update(name for each in taken if each.fix is not None for name in each.fix.releases)
            if steps.spent - begun > STEPS_OF_FIXES:
                unfinished = True
                break
        if current.source is not None and (edits := unused_imports(current.source, released)):
            current = _check_round(current.source.edited(edits), current, check, names, parses=parses)
    except _Fault as fault:
        return with_finding(result, internal_error(original.path, f"{fault}; nothing was changed"))
    except _Unwritable as error:
        return with_finding(result, io_error(original.path, str(error)))
    if current is result:
        return result
    if unfinished:
        current = _unfinished(current, settings)
    fixed = tuple(Fixed(code, name, count) for (code, name), count in sorted(counts.items()))
    return current._replace(fixed=fixed, before=original)


def _unfinished(result: FileResult, settings: Settings) -> FileResult:
    """The result when rounds end early, with a warning if there is more to fix."""
    left = sum(is_applicable(each, settings) for each in result.diagnostics)
    if not left:
        return result
    message = f"stopped fixing at the limit of work for one file; {left} fixable with another `--fix`"
    return result._replace(warnings=(*result.warnings, (0, message)))


def _check_round(
    source: Source, before: FileResult, check: Callable[[Source], FileResult], names: str, *, parses: bool
) -> FileResult:
    """The result for the text after a round.

    Raises:
        _Fault: A fix broke the code.
        _Unwritable: The text cannot be encoded.
    """
    try:
        encode(source, source.written)
    except Undecodable as error:
        raise _Unwritable(f"{error}, so {names} cannot be fixed; nothing was changed") from None
    if parses and tree_of(source.text) is None:
        raise _Fault(f"The fixes of {names} introduce a syntax error")
    after = check(source)
    lost = not parses and before.source is not None and _readable(source) < _readable(before.source)
    if lost or after.broken > before.broken or after.failed:
        raise _Fault(f"The fixes of {names} produce a text that ctxlint cannot read")
    return after


def _readable(source: Source) -> int:
    """The number of top-level statements that can be parsed, in a file with some that cannot."""
    from ctxlint.model.index.parsing import parse

    return len(parse(source).module.body)


def plan(diagnostics: Iterable[Diagnostic]) -> tuple[list[Diagnostic], list[Edit]]:
    """The findings to fix in one round, and their edits, in order and without overlaps.

    A fix occupies the whole range from its first edit to its last one: a fix that begins inside or right at the end of
    it waits, because it was made for a text that is about to change. Edits that an earlier fix makes as well count as
    applied. Fixes that only append to the same lists are applied together.
    """
    taken: list[Diagnostic] = []
    edits: dict[Edit, None] = {}
    end, joins = -1, False
    for diagnostic in sorted(diagnostics, key=lambda each: (_edits(each), each.sort_key)):
        every = _edits(diagnostic)
        if any(first.end > second.start for first, second in itertools.pairwise(every)):
            raise _Fault(f"The fix of {diagnostic.code} ({diagnostic.name}) overlaps with itself")
        mine = [edit for edit in every if edit not in edits]
        if mine and mine[0].start <= end:
            if not (joins and diagnostic.fix is not None and diagnostic.fix.joins and _go_together(every, edits)):
                continue
        elif mine:
            joins = diagnostic.fix is not None and diagnostic.fix.joins
        taken.append(diagnostic)
        edits.update(dict.fromkeys(mine))
        end = max([end, *(edit.end for edit in mine)])
    return taken, sorted(edits, key=lambda each: (each.start, each.end))


_APPENDED = pattern(r", \S.*| \S.*,")
"""What can be inserted several times at one place."""


def _go_together(mine: list[Edit], others: Iterable[Edit]) -> bool:
    """Whether edits overlap no others, or append an element at the same place."""
    first, last = mine[0].start, max(edit.end for edit in mine)
    near = [edit for edit in others if edit.end >= first and edit.start <= last]
    ordered = sorted([*mine, *near], key=lambda each: (each.start, each.end))
    return all(
        one.end < other.start
        or (one.end == other.start and one.start < one.end and other.start < other.end)
        or (_appends(one) and _appends(other) and one.start == other.start and one.content != other.content)
        for one, other in itertools.pairwise(ordered)
    )


def _appends(edit: Edit) -> bool:
    return edit.start == edit.end and _APPENDED.fullmatch(edit.content) is not None


def _edits(diagnostic: Diagnostic) -> list[Edit]:
    return [] if diagnostic.fix is None else sorted(diagnostic.fix.edits)
