"""Positions of nodes created from ``ast``, the same as LibCST's, without parsing by LibCST."""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.patterns import pattern
from ctxlint.records import entity
from ctxlint.source.source import Position, Source, Span

if TYPE_CHECKING:
    from collections.abc import Mapping

_HEAD = pattern(r"(?:async[ \t]+)?(?:def|class)[ \t]+")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@entity
class AstPlaces:
    """The positions of the nodes of a statement. ``nodes`` are their ``ast`` origins, by identity.

    ``first`` is the line of the file at which ``text`` begins; positions are in ``text``. Parentheses make LibCST's
    position of some nodes differ; the position of such a node is unknown here.
    """

    text: str
    first: int
    nodes: Mapping[int, ast.AST]

    def span(self, node: cst.CSTNode) -> Span | None:
        """The span of a node; None if only LibCST knows it."""
        made_from = self.nodes.get(id(node))
        if not isinstance(made_from, (ast.expr, ast.stmt, ast.arg, ast.keyword)) or isinstance(
            made_from, ast.GeneratorExp
        ):
            return None
        if isinstance(node, cst.SimpleStatementLine) and len(node.body) > 1:
            return None
        whole = self._span_of(made_from)
        if isinstance(made_from, ast.keyword) and isinstance(node, cst.Name):
            return Span(whole.start, whole.start.moved(columns=len(made_from.arg or "")))
        if isinstance(node, cst.Decorator):
            start = self.source.offset(whole.start) - 1
            return Span(self.source.position(start), whole.end) if self.text[start : start + 1] == "@" else None
        if not isinstance(node, cst.Name):
            return self._inside_parentheses(made_from, whole) if isinstance(made_from, ast.Tuple) else whole
        if isinstance(made_from, ast.Attribute):
            return Span(whole.end.moved(columns=-len(made_from.attr)), whole.end)
        if isinstance(made_from, ast.arg):
            return Span(whole.start, whole.start.moved(columns=len(made_from.arg)))
        if isinstance(made_from, _DEFINITIONS):
            return self._name_of(made_from, whole.start)
        return whole

    def _span_of(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword) -> Span:
        return self.source.span_of(node, above=self.first - 1)

    def _name_of(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, start: Position) -> Span | None:
        """The name after ``def`` or ``class``, on the same line."""
        head = _HEAD.match(self.text, self.source.offset(start))
        if head is None or not self.text.startswith(node.name, head.end()):
            return None
        name = start.moved(columns=head.end() - head.start())
        return Span(name, name.moved(columns=len(node.name)))

    def _inside_parentheses(self, node: ast.Tuple, whole: Span) -> Span | None:
        """The span of a tuple without its own parentheses; None if it is hard to decide whether it has any."""
        if not node.elts:
            return None
        first, last = self._span_of(node.elts[0]), self._span_of(node.elts[-1])
        if (first.start, last.end) == whole:
            return whole
        before = self._between(whole.start, first.start)
        inside, after = self._between(first.end, last.start), self._between(last.end, whole.end)
        if before.strip() != "(" or after.strip() != ")" or "#" in inside or inside.lstrip().startswith(")"):
            return None
        return Span(first.start, last.end)

    def _between(self, start: Position, end: Position) -> str:
        return self.text[self.source.offset(start) : self.source.offset(end)]

    @cached_property
    def source(self) -> Source:
        """The text by itself."""
        return Source("", self.text)
