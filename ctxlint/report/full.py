"""The default: each finding with its code frame, its related places, and its fix as a diff."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.report import applicability_of
from ctxlint.report.frame import Frame
from ctxlint.report.paths import relative
from ctxlint.report.run_summary import summary
from ctxlint.report.style import TextStyle
from ctxlint.report.visible import visible
from ctxlint.result import locate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ctxlint.diagnostic import Diagnostic, Related
    from ctxlint.fix import Fix
    from ctxlint.report import Report
    from ctxlint.source.source import Located, LocatedEdits, Source
    from ctxlint.source.text_edits import Edit

_NOTES = {
    "unsafe": "This is an unsafe fix and may change behaviour; see `ctxlint rule {}`",
    "display": "This is advice; ctxlint does not apply it",
}


def render(report: Report) -> Iterator[str]:
    """A paragraph for each finding, then the summary."""
    style = TextStyle(on=report.color)
    shown: dict[tuple[str, frozenset[Edit]], int] = {}
    for result, diagnostic in report.findings:
        mark = f"[{style.mark('*')}] " if report.is_fixable(diagnostic) else ""
        yield f"{style.code(diagnostic.code)} {mark}{style.bold(diagnostic.message)}\n"
        for line in _details(diagnostic, result.source, style, shown):
            yield f"{line}\n"
        yield "\n"
    yield from summary(report)


def _details(
    diagnostic: Diagnostic, source: Source | None, style: TextStyle, shown: dict[tuple[str, frozenset[Edit]], int]
) -> Iterator[str]:
    """The code, the related places and the fix. ``shown``: the lines of the findings whose fixes were shown before."""
    if source is None:
        yield f"{style.frame(' -->')} {diagnostic.path}:{locate(diagnostic, source).place}"
        return
    yield from _place(locate(diagnostic, source), diagnostic.path, style)
    for related, repeats in _without_repeats(diagnostic.related):
        yield from _note(related, repeats, source, diagnostic.path, style)
    if diagnostic.fix is not None:
        key = (diagnostic.path, frozenset(diagnostic.fix.edits))
        before = shown.get(key)
        again = f": the same fix as on {source.line_name(before)}" if before is not None else ""
        yield f"{style.mark('help')}{style.bold(f': {diagnostic.fix.message}{again}')}"
        if again:
            return
        shown[key] = diagnostic.span.start.line
        yield from fix_diff(source, diagnostic.fix, style)
        applicability = applicability_of(diagnostic)
        if applicability is not None and applicability.value in _NOTES:
            yield f"{style.bold('note')}: {_NOTES[applicability.value].format(diagnostic.code)}"


def _without_repeats(related: Sequence[Related]) -> Iterator[tuple[Related, list[Related]]]:
    """The places with distinct messages, each with the later places of its file that have the same message."""
    groups: dict[tuple[str, str], list[Related]] = {}
    for each in related:
        groups.setdefault((each.path, each.message), []).append(each)
    return ((first, repeats) for first, *repeats in groups.values())


def _note(related: Related, repeats: Sequence[Related], source: Source, path: str, style: TextStyle) -> Iterator[str]:
    lines = dict.fromkeys(each.span.start.line for each in repeats if each.span.start.line != related.span.start.line)
    names = [str(line) if related.path else source.locate_line(line) for line in lines]
    also = f" (also on {'lines' if len(names) > 1 else 'line'} {', '.join(names)})" if names else ""
    yield f"{style.bold('note')}: {related.message}{also}"
    if related.path:
        yield f"{style.frame(' -->')} {relative(related.path)}:{related.span.start.line}:{related.span.start.column}"
        return
    yield from _place(source.locate(related.span), path, style, mark="-")


def _place(located: Located, path: str, style: TextStyle, mark: str = "^") -> Iterator[str]:
    frame = Frame(located.source, located.span, style, mark)
    yield f"{' ' * frame.width}{style.frame('-->')} {path}:{located.place}"
    yield from frame.lines()


def fix_diff(source: Source, fix: Fix, style: TextStyle) -> Iterator[str]:
    """The diff of ``fix``: old lines with ``-``, new ones with ``+`` and their numbers, one line of context.

    Cells of a notebook are shown one by one.
    """
    for each in source.locate_edits(sorted(fix.edits)):
        yield from _diff(each, style)


def _diff(located: LocatedEdits, style: TextStyle) -> Iterator[str]:
    from difflib import SequenceMatcher

    source = located.source
    after = source.edited(located.edits)
    first, last = _touched(source, located.edits)
    grown = after.line_count - source.line_count
    old = [source.line(number) for number in range(first, last + 1)]
    new = [after.line(number) for number in range(first, last + grown + 1)]
    width = len(str(last + grown))
    bar = style.frame(f"{' ' * width} |")
    if located.cell is not None:
        yield f"{' ' * width}{style.frame(':::')} cell {located.cell}"
    yield bar
    groups = list(SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(1))
    for index, group in enumerate(groups):
        if index:
            yield style.frame(f"{'.' * max(width, 3)}")
        for tag, old_start, old_end, new_start, new_end in group:
            if tag == "equal":
                for number in range(new_start, new_end):
                    yield f"{style.frame(f'{first + number:>{width}} |')} {visible(new[number])}".rstrip()
                continue
            for text in old[old_start:old_end]:
                yield f"{' ' * width} {style.removed(f'- {visible(text)}'.rstrip())}"
            for number in range(new_start, new_end):
                line = style.added(f"+ {visible(new[number])}".rstrip())
                yield f"{style.frame(f'{first + number:>{width}}')} {line}"
    yield bar


def _touched(source: Source, edits: Sequence[Edit]) -> tuple[int, int]:
    """The lines of the edits, with two lines of context."""
    first = min((source.position(edit.start).line for edit in edits), default=1)
    last = max((source.position(edit.end).line for edit in edits), default=1)
    return max(first - 2, 1), min(last + 2, source.line_count)
