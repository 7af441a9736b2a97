"""Rewrites newer syntax as Python 3.10, for the ``ast`` of a Python that is older than the code.

LibCST parses all syntax on every Python. What its tree shows to be newer is overwritten: every line keeps its number,
and nearly everything else its column, so that the file's index comes out as on a newer Python. The contents of types
are dropped.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.patterns import pattern
from ctxlint.source.ast_tree import tree_of
from ctxlint.source.nesting import too_deep
from ctxlint.source.slices import Slice, parse_slice
from ctxlint.source.source import Position

if TYPE_CHECKING:
    from ctxlint.source.source import Source


_NEW_WORDS = tuple(
    pattern(expression)
    for version, expression in (
        ((3, 11), r"except(?<=\bexcept)\s*\*"),
        ((3, 11), r"[\[,:]\s*\*\s*[\w(\[]"),
        ((3, 12), r"def(?<=\bdef)\s+\w+\s*\["),
        ((3, 12), r"class(?<=\bclass)\s+\w+\s*\["),
        ((3, 12), r"type(?<=\btype)[\s\\]+\w+[\s\\]*[=\[]"),
        ((3, 14), r"""["'](?<=[tT]["'])(?<!\w[tT]["'])(?<!'[tT]')(?<!"[tT]")"""),  # but not the end of ``"T"``
        ((3, 14), r"""["'](?<=[tT][rR]["']|[rR][tT]["'])(?<!\w[tTrR]{2}["'])(?<!'[tTrR]{2}')(?<!"[tTrR]{2}")"""),
    )
    if sys.version_info < version
)
"""Newer syntax contains one of these, except inside f-strings. All begin with what ``re`` finds fast."""
_FORMATTED = pattern(r"""[fFrR](?<!\w[fFrR])(?:(?<=[fF])[rR]?|(?<=[rR])[fF])(?=["'])""")
_STRING = pattern(
    r"""\w*(?:"{3}(?:[^\\]|\\.)*?"{3}|'{3}(?:[^\\]|\\.)*?'{3}|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')""", re.DOTALL
)


def may_hold_newer_syntax(text: str) -> bool:
    """Whether code that this Python cannot parse may be in newer syntax. ``False`` costs no parse by LibCST."""
    return any(each.search(text) for each in _NEW_WORDS) or (
        sys.version_info < (3, 12)
        and any(not _is_older_string(text, each.start()) for each in _FORMATTED.finditer(text))
    )


def _is_older_string(text: str, start: int) -> bool:
    """Whether this Python parses what looks like an f-string, or it is in another string or a comment."""
    found = _STRING.match(text, start)
    return found is not None and _parses(found.group())


@lru_cache(maxsize=1024)
def _parses(expression: str) -> bool:
    return tree_of(f"({expression})") is not None


def in_older_syntax(source: Source, first: int, last: int) -> str | None:
    """The lines ``first`` to ``last``, with newer syntax overwritten.

    None if there is none, or if LibCST cannot parse them either.
    """
    if too_deep(source.lines(first, last)) is not None:
        return None
    try:
        part = parse_slice(source, first, last)
        newer = _NewerSyntax(part)
        part.module.visit(newer)
    except (cst.ParserSyntaxError, RecursionError):
        return None
    if not newer.replaced:
        return None
    text, above = source.lines(first, last), source.offset(Position(first, 1))
    pieces, done = [], 0
    for start, end, replacement in sorted(newer.replaced):
        pieces += [text[done : start - above], replacement]
        done = end - above
    return "".join([*pieces, text[done:]])


class _NewerSyntax(cst.CSTVisitor):
    """Collects what to overwrite in a slice, as offsets in the file and text."""

    def __init__(self, part: Slice) -> None:
        super().__init__()
        self.part = part
        self.replaced: list[tuple[int, int, str]] = []

    def start(self, node: cst.CSTNode) -> int:
        """The start of a node, including the parentheses around it."""
        outer = next(iter(getattr(node, "lpar", ())), node)
        return self.part.source.offset(self.part.span(outer).start)

    def end(self, node: cst.CSTNode) -> int:
        outer = next(reversed(getattr(node, "rpar", ())), node)
        return self.part.source.offset(self.part.span(outer).end)

    def text(self, start: int, end: int) -> str:
        return self.part.source.text[start:end]

    def write_over(self, start: int, end: int, opening: str = "", closing: str = "") -> None:
        """Replace a stretch of code by the given text; line continuations are kept."""
        lines = self.text(start, end).replace("\r\n", " \n").replace("\r", "\n").split("\n")
        blank = [*(" " * (len(line) - 1) + "\\" for line in lines[:-1]), " " * len(lines[-1])]
        text = "\n".join(blank)
        text = opening + text[len(opening) :]
        self.replaced.append((start, end, text[: len(text) - len(closing)] + closing))

    # Python 3.11

    def visit_ExceptStarHandler(self, node: cst.ExceptStarHandler) -> None:
        star = self.part.source.text.index("*", self.start(node))
        self.write_over(star, star + 1)

    def visit_Index(self, node: cst.Index) -> None:
        if getattr(node, "star", None) == "*":
            self.write_over(self.start(node), self.start(node) + 1)

    def visit_Annotation(self, node: cst.Annotation) -> None:
        if isinstance(node.annotation, cst.StarredElement):
            self.write_over(self.start(node.annotation), self.start(node.annotation) + 1)

    # Python 3.12

    def visit_TypeParameters(self, node: cst.TypeParameters) -> bool:
        self.write_over(self.start(node), self.end(node))
        return False

    def visit_TypeAlias(self, node: cst.TypeAlias) -> bool:
        self.write_over(self.start(node), self.start(node.value), node.name.value, ":")
        return False

    def visit_FormattedString(self, node: cst.FormattedString) -> bool:
        return self.string(node)

    # Python 3.14

    def visit_TemplatedString(self, node: cst.CSTNode) -> bool:
        return self.string(node)

    def string(self, node: cst.CSTNode) -> bool:
        """Leave an empty string if this Python cannot parse it; returns whether to visit its contents."""
        start, end = self.start(node), self.end(node)
        if _parses(self.text(start, end)):
            return True
        self.write_over(start, end, '""')
        return False
