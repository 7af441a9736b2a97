"""``# noqa`` and its relatives.

====================================  ================================================================================
``# noqa``                            every finding that starts on the line (a line that a string or a backslash
                                      continues counts up to its end)
``# noqa: CTX301, CTX2 reason``       those rules only; a prefix means all rules that start with it
``# ctxlint: ignore[CTX301] reason``  the same for codes and names, for the whole statement that it ends or that
                                      follows it
``# ctxlint: noqa``                   every finding of the file; on a line of its own
``# ctxlint: noqa: CTX101``           those rules in the whole file
``# flake8: noqa``                    like ``# ctxlint: noqa``, with or without codes
====================================  ================================================================================

Case and spaces are ignored. A malformed comment suppresses nothing. It causes a warning if it is addressed to ctxlint,
or on a line where it would have suppressed a finding.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left, bisect_right
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from ctxlint.config.options import nearest, nearest_of
from ctxlint.config.settings import INTERNAL_ERROR, is_prefix, specificity
from ctxlint.named_tuples import NamedTuple
from ctxlint.patterns import pattern
from ctxlint.profiling import stage
from ctxlint.records import record
from ctxlint.suppression.comment_layout import Comment, CommentLayout, Lines, read_layout

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ctxlint.diagnostic import Diagnostic
    from ctxlint.source.source import Source

_POSSIBLE_DIRECTIVE = pattern(r"#\s*(?:noqa|(?:ctxlint|flake8)\s*[:=])", re.IGNORECASE)
_LINE = pattern(r"#\s*noqa", re.IGNORECASE)
_FILE = pattern(r"#\s*(?P<tool>ctxlint|flake8)\s*[:=]\s*noqa", re.IGNORECASE)
_OWN = pattern(r"#\s*ctxlint\s*:\s*ignore(?!\w)\s*(?:\[(?P<rules>[^\]#]*)\])?", re.IGNORECASE)
_OWN_TOOL = pattern(r"#\s*ctxlint\s*:\s*(?P<word>[\w-]*)", re.IGNORECASE)
_CODE = r"(?:CTX(?!\w)|[A-Z]+[0-9]+)"
_CODES = pattern(rf"\s*:\s*(?P<codes>{_CODE}(?:[\s,]*{_CODE})*)", re.IGNORECASE)


class Word(NamedTuple):
    """A code or name in a directive, as a selector, and its offsets in the text."""

    selector: str
    start: int
    end: int


@record
class Directive:
    """A comment that suppresses findings which start on ``lines`` (None: in the whole file).

    ``selectors`` are its codes, prefixes and names; None means every rule. ``own``: it is addressed to ctxlint by name,
    not to every linter. It spans offsets ``start`` to ``end``, without a reason that follows; ``words`` are all its
    entries, including those of other linters.
    """

    comment: Comment
    lines: Lines | None
    selectors: tuple[str, ...] | None
    own: bool
    start: int
    end: int
    words: tuple[Word, ...] = ()

    @property
    def concerns_ctxlint(self) -> bool:
        """Whether it is not only for other linters: it names ctxlint, or one of its rules."""
        return self.own or any(is_prefix(word.selector) for word in self.words)

    def hides(self, diagnostic: Diagnostic) -> bool:
        """Whether the comment applies to this finding."""
        return self.covers(diagnostic.span.start.line) and self.names(diagnostic)

    def names(self, diagnostic: Diagnostic) -> bool:
        """Whether it names the rule of this finding, or no rule at all."""
        return self.selectors is None or specificity(self.selectors, diagnostic.code, diagnostic.name) is not None

    def covers(self, line: int) -> bool:
        """Whether it applies to findings that start on ``line``."""
        return self.lines is None or self.lines.first <= line <= self.lines.last


@record
class Mistake:
    """A comment that looks like a directive but is not. ``lines`` is what it would cover; None for the file.

    ``own``: it is addressed to ctxlint by name.
    """

    comment: Comment
    lines: Lines | None
    message: str
    own: bool = True

    def matters(self, diagnostics: Iterable[Diagnostic]) -> bool:
        """Whether it is certainly a mistake: a ``noqa`` on a line without findings may be for another tool."""
        return self.own or any(
            self.lines is None or self.lines.first <= each.span.start.line <= self.lines.last for each in diagnostics
        )


class Reach:
    """How many of some directives suppress a finding: a file may have thousands of both."""

    def __init__(self, directives: Iterable[Directive]) -> None:
        """Store the directives; nothing is computed before the first request."""
        self._directives = tuple(directives)
        self._lines: dict[str, tuple[list[int], list[int]]] = {}

    def count(self, diagnostic: Diagnostic) -> int:
        """How many of them apply to this finding."""
        firsts, lasts = self._lines.get(diagnostic.code) or self._of_rule(diagnostic)
        line = diagnostic.span.start.line
        return bisect_right(firsts, line) - bisect_left(lasts, line)

    def _of_rule(self, diagnostic: Diagnostic) -> tuple[list[int], list[int]]:
        """The sorted first and last lines of those that apply to the rule of a finding."""
        lines = [each.lines or _EVERYWHERE for each in self._directives if each.names(diagnostic)]
        found = sorted(each.first for each in lines), sorted(each.last for each in lines)
        self._lines[diagnostic.code] = found
        return found


_EVERYWHERE = Lines(0, sys.maxsize)


@record
class Suppression:
    """The remaining and the suppressed findings of a file, and its warnings, as (line, message).

    ``directives`` are those of the file, whether they suppress something or not; possibly empty if all of them are for
    other linters and none can suppress a finding.
    """

    kept: tuple[Diagnostic, ...]
    hidden: tuple[Diagnostic, ...] = ()
    warnings: tuple[tuple[int, str], ...] = ()
    directives: tuple[Directive, ...] = ()


@stage("suppress")
def suppress(
    source: Source, diagnostics: Iterable[Diagnostic], names: Mapping[str, str], *, own_only: bool = False
) -> Suppression:
    """Remove the findings that a comment in ``source`` suppresses; ``names`` maps the code of every rule to its name.

    With ``own_only``, ``# noqa`` is left to the host. A failure of ctxlint itself is never suppressed.
    """
    found = tuple(diagnostics)
    lines = {each.span.start.line for each in found}
    starts = (each.start() for each in _POSSIBLE_DIRECTIVE.finditer(source.text))
    by_line = groupby(starts, partial(bisect_right, source.line_starts))
    if not any(_may_apply(source, line, list(each), lines) for line, each in by_line):
        return Suppression(found)
    comments = list(read_directives(read_layout(source), names))
    directives = tuple(each for each in comments if isinstance(each, Directive))
    honoured = [each for each in directives if each.own or not own_only]
    mistakes = [each for each in comments if isinstance(each, Mistake)]
    reach = Reach(honoured)
    hidden = {id(each) for each in found if each.code != INTERNAL_ERROR and reach.count(each)}
    return Suppression(
        tuple(each for each in found if id(each) not in hidden),
        tuple(each for each in found if id(each) in hidden),
        tuple((each.comment.line, each.message) for each in mistakes if each.matters(found)),
        directives,
    )


def _may_apply(source: Source, line: int, starts: Sequence[int], lines: set[int]) -> bool:
    """Whether something on ``line`` that looks like a directive may be for ctxlint, or suppress findings on ``lines``.

    Most are for other linters, on lines without findings; the layout of such a file is not needed.
    """
    text, start = source.line(line), source.line_starts[line - 1]
    before, rest = text[: starts[-1] - start], text[starts[0] - start :]
    if "ctx" in rest.lower():
        return True
    if not lines:
        return False
    if line in lines or "flake8" in rest.lower():
        return True
    # The line may be joined to the one above: by a string that ends on it, or by a backslash.
    joined = '"' in before or "'" in before or (line > 1 and source.line(line - 1).endswith("\\"))
    return joined and min(lines) < line


def read_directives(layout: CommentLayout, names: Mapping[str, str]) -> Iterator[Directive | Mistake]:
    """Every directive in the comments of a file, in order, and every malformed one."""
    for comment in layout.comments:
        yield from _file_level(comment)
        yield from _own(comment, layout, names)
        for found in _LINE.finditer(comment.text):
            yield from _noqa(comment, found, layout.noqa_lines(comment.line))


def _noqa(
    comment: Comment, found: re.Match[str], lines: Lines | None, *, own: bool = False
) -> Iterator[Directive | Mistake]:
    """What follows the word ``noqa``: nothing or a reason (everything is suppressed), or a colon and codes."""
    rest = comment.text[found.end() :]
    start, end = comment.offset + found.start(), comment.offset + found.end()
    codes = _CODES.match(rest)
    if codes:
        words = tuple(
            Word(code[0].upper(), end + codes.start("codes") + code.start(), end + codes.start("codes") + code.end())
            for code in re.finditer(_CODE, codes["codes"], re.IGNORECASE)
        )
        listed = tuple(word.selector for word in words)
        yield Directive(comment, lines, listed, own, start, end + codes.end(), words)
    elif re.match(r"\s*:", rest):
        yield Mistake(comment, lines, f"`{_shown(found)}:` needs codes after the colon, such as `# noqa: CTX301`", own)
    elif not rest or rest[0].isspace() or rest[0] == "#":
        yield Directive(comment, lines, None, own, start, end)
    elif not rest[0].isalnum():
        yield Mistake(comment, lines, f"`{_shown(found)}` needs a colon before codes, such as `# noqa: CTX301`", own)


def _file_level(comment: Comment) -> Iterator[Directive | Mistake]:
    found = _FILE.match(comment.text)
    if found and comment.alone:
        yield from _noqa(comment, found, None, own=found["tool"].lower() == "ctxlint")
    elif found and found["tool"].lower() == "ctxlint":
        yield Mistake(comment, Lines(comment.line, comment.line), f"`{_shown(found)}` must be on a line of its own")


def _own(comment: Comment, layout: CommentLayout, names: Mapping[str, str]) -> Iterator[Directive | Mistake]:
    for tool in _OWN_TOOL.finditer(comment.text):
        lines = layout.statement_below(comment.line) if comment.alone else layout.statement_at(comment.line)
        if lines is None:
            continue
        word = tool["word"].lower()
        found = _OWN.match(comment.text, tool.start())
        if found is None and word != "noqa":
            message = f"`ctxlint: {word}` is not a directive; write `# ctxlint: ignore[CTX301]`"
            yield Mistake(comment, lines, message, own=_is_nearly_a_directive(word))
        if found is None:
            continue
        listed = [(each, _selector(each[0], names)) for each in re.finditer(r"[^\s,]+", found["rules"] or "")]
        known = tuple(selector for _, selector in listed if selector is not None)  # none: then it suppresses nothing
        unknown = [each[0] for each, selector in listed if selector is None]
        if listed:
            at = comment.offset + found.start("rules")
            words = tuple(Word(selector or each[0], at + each.start(), at + each.end()) for each, selector in listed)
            start, end = comment.offset + found.start(), comment.offset + found.end()
            yield Directive(comment, lines, known, True, start, end, words)
        if unknown:
            meant = nearest(unknown[0], [*names, *names.values()])
            yield Mistake(comment, lines, f"`ctxlint: ignore`: unknown rule `{unknown[0]}`{meant}")
        elif not known:
            yield Mistake(
                comment, lines, "`ctxlint: ignore` needs rules in brackets, such as `# ctxlint: ignore[CTX301]`"
            )


def _is_nearly_a_directive(word: str) -> bool:
    """Whether it cannot be prose."""
    return nearest_of(word, ("ignore", "noqa", "disable")) is not None


def _selector(word: str, names: Mapping[str, str]) -> str | None:
    """``word`` as a selector: a code, a prefix of one, or a name; None for anything else."""
    if word.lower() in names.values():
        return word.lower()
    code = word.upper()
    return code if re.fullmatch(_CODE, code) and any(each.startswith(code) for each in names) else None


def _shown(found: re.Match[str]) -> str:
    return re.sub(r"\s+", " ", found[0])
