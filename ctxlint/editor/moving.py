"""Findings moved to a newer text: until it is checked, and while a class is half typed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ctxlint.model.index.statement_pieces import StatementLines, hard_starts, statements
from ctxlint.source.changes import change_between
from ctxlint.source.source import Source, Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ctxlint.diagnostic import Diagnostic
    from ctxlint.result import FileResult


def moved(diagnostics: Iterable[Diagnostic], old: Source, new: Source) -> Iterator[Diagnostic]:
    """The findings of ``old``, without fixes, at their positions in ``new``."""
    change = change_between(old.text, new.text)

    def there(span: Span) -> Span:
        start, end = change.moved(old.offset(span.start), old.offset(span.end))
        return Span(new.position(start), new.position(end))

    for each in diagnostics:
        related = tuple(other if other.path else replace(other, span=there(other.span)) for other in each.related)
        yield replace(each, span=there(each.span), related=related, fix=None)


# Half-typed code


def with_untouched(result: FileResult, before: FileResult) -> tuple[Diagnostic, ...]:
    """The findings of a text that does not parse, and those of ``before`` that are still valid.

    The latter are those in unchanged statements, and in those that do not parse. The parseable part of a half-typed
    text is not reliable: a name may have lost its binding.
    """
    if result.source is None or before.source is None or not before.diagnostics:
        return result.diagnostics
    found = {(each.code, each.span, each.message): each for each in result.diagnostics}
    for each in _in_untouched(before.source, before.diagnostics, result.source):
        found.setdefault((each.code, each.span, each.message), each)
    places = {(each.code, each.span) for each in found.values()}
    half_typed = half_typed_lines(result)
    for each in moved(before.diagnostics, before.source, result.source):
        if (each.code, each.span) not in places and any(
            first <= each.span.start.line <= each.span.end.line <= last for first, last in half_typed
        ):
            found[each.code, each.span, each.message] = each
    return tuple(sorted(found.values(), key=lambda each: each.sort_key))


def half_typed_lines(result: FileResult) -> list[StatementLines]:
    """The statements that cannot be parsed."""
    source = result.source
    if source is None:
        return []
    lines = {each.span.start.line for each in result.diagnostics if each.code == "CTX901"}
    return [
        part
        for block in source.blocks
        for piece in statements(source, StatementLines(*block))
        if any(piece.first <= line <= piece.last for line in lines)
        for part in hard_starts(source, piece)
        if any(part.first <= line <= part.last for line in lines)
    ]


def _in_untouched(old: Source, diagnostics: tuple[Diagnostic, ...], new: Source) -> Iterator[Diagnostic]:
    """The findings of ``old`` in unchanged statements, at their positions in ``new``."""
    at = 0
    for piece in statements(old, StatementLines(1, old.line_count)):
        inside = [each for each in diagnostics if piece.first <= each.span.start.line <= piece.last]
        if not inside:
            continue
        text = old.lines(*piece).rstrip()
        start = new.text.find(text, at)
        while start > 0 and new.text[start - 1] not in "\r\n":
            start = new.text.find(text, start + 1)
        if start < 0 or new.text[start + len(text) : start + len(text) + 1] not in ("", "\r", "\n"):
            continue
        at = start + len(text)
        lines = new.position(start).line - piece.first
        before = old.line_starts[piece.first - 1]
        for each in inside:
            related = tuple(
                other if other.path else replace(other, span=other.span.moved(lines))
                for other in each.related
                if other.path or piece.first <= other.span.start.line <= piece.last
            )
            fix = each.fix if each.fix is not None and each.fix.is_within(before, before + len(text)) else None
            fix = fix.moved(start - before) if fix is not None else None
            yield replace(each, span=each.span.moved(lines), related=related, fix=fix)
