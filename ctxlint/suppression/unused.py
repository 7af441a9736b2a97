"""Directives, or codes in them, that suppress nothing."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from ctxlint.config.settings import is_prefix, specificity
from ctxlint.fix import Applicability, Edit, Fix
from ctxlint.patterns import pattern
from ctxlint.records import record
from ctxlint.suppression.noqa import Reach

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ctxlint.diagnostic import Diagnostic
    from ctxlint.source.source import Source
    from ctxlint.suppression.comment_layout import Lines
    from ctxlint.suppression.noqa import Directive, Suppression, Word

CODE, NAME = "CTX910", "unused-suppression"
_MEANS_SOMETHING = pattern(r"[\w.-]+\s*[:=]|noqa", re.IGNORECASE)
"""A reason that another tool might interpret as a directive at the start of the comment: ``type: ignore``."""


@record
class UnusedDirective:
    """A directive of which ``words`` suppress nothing; all of it if it names no rules. ``unknown`` names no rule."""

    source: Source
    directive: Directive
    words: tuple[Word, ...]
    unknown: bool

    @property
    def whole(self) -> bool:
        """Whether the whole directive is unused."""
        return len(self.words) == len(self.directive.words)

    @property
    def text(self) -> str:
        """The text of the directive, without its reason."""
        return self.source.text[self.directive.start : self.directive.end]

    def removal(self) -> Fix | None:
        """The fix that removes it. The rest of the comment stays; None if that would become a directive."""
        if self.whole:
            edit = self._without_directive()
            return None if edit is None else Fix(f"Remove `{self.text}`", (edit,), Applicability.SAFE)
        useless = {word.start for word in self.words}
        words = [word for word in self.directive.words if word.start not in useless]
        content = ", ".join(self.source.text[word.start : word.end] for word in words)
        edit = Edit(self.directive.words[0].start, self.directive.words[-1].end, content)
        return Fix(f"Remove {codes_of(self.words)}", (edit,), Applicability.SAFE)

    def _without_directive(self) -> Edit | None:
        comment, text = self.directive.comment, self.source.text
        start, end = self.directive.start, comment.offset + len(comment.text)
        reason = text[self.directive.end : end].lstrip(" \t:,;-\u2013\u2014")
        if reason.startswith("#"):
            return Edit(start, end - len(reason), "")
        if reason:
            return None if _MEANS_SOMETHING.match(reason) else Edit(start, end - len(reason), "# ")
        line_start = self.source.line_starts[comment.line - 1]
        if comment.alone and start == comment.offset:
            ends = self.source.line_starts[comment.line : comment.line + 1]
            return Edit(line_start, ends[0] if ends else end, "")
        return Edit(line_start + len(text[line_start:start].rstrip(" \t")), end, "")


def codes_of(words: Sequence[Word]) -> str:
    """The words in a message: ```CTX301`, `CTX203```."""
    return ", ".join(f"`{word.selector}`" for word in words)


def unused_directives(
    source: Source, directives: Iterable[Directive], found: Iterable[Diagnostic], names: Mapping[str, str]
) -> Iterator[UnusedDirective]:
    """The directives of a file that suppress none of ``found``, the findings of all rules, including disabled ones.

    ``names`` maps the code of every rule to its name. A bare ``# noqa`` may be for another linter. Words that denote
    CTX910 itself are not reported.
    """
    in_order = sorted(found, key=_line)

    @cache
    def meant_by(selector: str) -> list[str]:
        return [code for code, name in names.items() if specificity((selector,), code, name) is not None]

    for directive in directives:
        covered = in_order if directive.lines is None else _on(directive.lines, in_order)
        if directive.selectors is None:
            if directive.own and not covered:
                yield UnusedDirective(source, directive, (), unknown=False)
            continue
        useless, unknown = [], True
        for word in directive.words:
            meant = meant_by(word.selector)
            foreign = not meant and not directive.own and not is_prefix(word.selector)
            if foreign or CODE in meant or any(_means(word, each.code, each.name) for each in covered):
                continue
            useless.append(word)
            unknown = unknown and not meant
        if useless:
            yield UnusedDirective(source, directive, tuple(useless), unknown)


def _line(diagnostic: Diagnostic) -> int:
    return diagnostic.span.start.line


def _on(lines: Lines, in_order: Sequence[Diagnostic]) -> Sequence[Diagnostic]:
    """The findings, of a sorted sequence, that start on these lines."""
    return in_order[bisect_left(in_order, lines.first, key=_line) : bisect_right(in_order, lines.last, key=_line)]


def _means(word: Word, code: str, name: str) -> bool:
    return specificity((word.selector,), code, name) is not None


def hide_unused(source: Source, judged: Suppression, found: Sequence[Diagnostic], *, own_only: bool) -> Suppression:
    """``judged`` with findings about unused directives; an unused directive cannot suppress its own finding."""
    honoured = [each for each in judged.directives if each.own or not own_only]
    by_start = {each.start: each for each in honoured}
    reach = Reach(honoured)

    def hidden(diagnostic: Diagnostic) -> bool:
        itself = by_start.get(source.offset(diagnostic.span.start))
        if itself is None or not itself.hides(diagnostic) or {CODE, NAME} & set(itself.selectors or ()):
            return reach.count(diagnostic) > 0
        return reach.count(diagnostic) > 1

    more = [each for each in found if hidden(each)]
    away = set(map(id, more))
    shown = [each for each in found if id(each) not in away]
    return replace(
        judged,
        kept=tuple(sorted((*judged.kept, *shown), key=lambda each: each.sort_key)),
        hidden=(*judged.hidden, *more),
    )
