"""Rewrites newer syntax as Python 3.9, for the ``ast`` of a Python that is older than the code.

LibCST parses all syntax on every Python. What its tree shows to be newer is overwritten: every line keeps its number,
and nearly everything else its column, so that the file's index comes out as on a newer Python. A ``match`` becomes
tests, and the contents of types and patterns are dropped.
"""

from __future__ import annotations

import ast
import warnings
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.source.nesting import too_deep
from ctxlint.source.slices import Slice, parse_slice
from ctxlint.source.source import Position

if TYPE_CHECKING:
    from ctxlint.source.source import Source


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

    # Python 3.10

    def visit_Match(self, node: cst.Match) -> None:
        bare = isinstance(node.subject, cst.Tuple) and not node.subject.lpar
        self.write_over(self.start(node), self.start(node.subject), "if", "(" if bare else "")
        if bare:
            self.replaced.append((self.end(node.subject), self.end(node.subject), ")"))

    def visit_MatchCase(self, node: cst.MatchCase) -> None:
        if node.guard is None:
            self.write_over(self.start(node), self.end(node.pattern), "if 1")
        else:
            self.write_over(self.start(node), self.start(node.guard), "if")

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
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ast.parse(f"({self.text(start, end)})")
        except (SyntaxError, ValueError):
            self.write_over(start, end, '""')
            return False
        return True
