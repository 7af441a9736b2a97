"""The text of a class: offsets of its nodes, in characters, and the layout of its lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fix import Edit
from ctxlint.records import record
from ctxlint.source.slices import parse_slice

if TYPE_CHECKING:
    import ast
    from collections.abc import Sequence

    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method
    from ctxlint.source.slices import Slice
    from ctxlint.source.source import Source


@record
class Layout:
    """The text around the nodes of one slice. Offsets are 0-based characters, ends exclusive."""

    source: Source
    slice: Slice

    @property
    def text(self) -> str:
        """The text of the file."""
        return self.source.text

    def start(self, node: cst.CSTNode) -> int:
        """The start of a node, including its parentheses."""
        known = self.slice.statement.known(node)
        if known is not None:
            start = self.source.offset(known.moved(self.slice.first_line - 1).start)
            before = self.text[self.source.line_starts[self.line_number(start) - 1] : start].rstrip(" \t")
            if before and before[-1] not in "(\\":
                return start
        opening = getattr(node, "lpar", ())
        place = self.slice.span(opening[0] if isinstance(opening, (list, tuple)) and opening else node)
        return self.source.offset(place.start)

    def end(self, node: cst.CSTNode) -> int:
        """The end of a node, including its parentheses."""
        closing = getattr(node, "rpar", ())
        place = self.slice.span(closing[-1] if isinstance(closing, (list, tuple)) and closing else node)
        return self.source.offset(place.end)

    def code(self, node: cst.CSTNode) -> str:
        """The text of a node, including its parentheses."""
        return self.text[self.start(node) : self.end(node)]

    def after_comma(self, comma: cst.Comma) -> int:
        """The offset right after a comma, without the space that follows it."""
        return self.source.offset(self.slice.span(comma).end)

    def insert(self, at: int, content: str) -> Edit:
        """Insert ``content`` at an offset."""
        return Edit(at, at, content)

    def insert_word(self, at: int, content: str) -> Edit:
        """Insert ``content`` that begins with a word or bracket, with a space after an adjacent keyword."""
        before = self.text[at - 1 : at]
        return Edit(at, at, f" {content}" if before.isalnum() or before == "_" else content)

    def replace_by_word(self, node: cst.CSTNode, content: str) -> Edit:
        """Like ``replace``, with a space after an adjacent keyword."""
        return Edit(self.start(node), self.end(node), self.insert_word(self.start(node), content).content)

    def delete(self, start: int, end: int) -> Edit:
        """Delete the text from ``start`` to ``end``."""
        return Edit(start, end, "")

    def replace(self, node: cst.CSTNode, content: str) -> Edit:
        """Replace a node and its parentheses by ``content``."""
        return Edit(self.start(node), self.end(node), content)

    # Lines

    def line_start(self, offset: int) -> int:
        """The start of the line of an offset."""
        return self.source.line_starts[self.line_number(offset) - 1]

    def line_end(self, offset: int) -> int:
        """The end of the line of an offset, before its line ending."""
        number = self.line_number(offset)
        return self.source.line_starts[number - 1] + len(self.source.line(number))

    def line_number(self, offset: int) -> int:
        """The 1-based line of an offset."""
        return self.source.position(offset).line

    def indentation(self, offset: int) -> str | None:
        """The text before an offset on its line, if that is only whitespace."""
        before = self.text[self.line_start(offset) : offset]
        return before if not before.strip() else None

    def nothing_but_a_comment_follows(self, offset: int) -> bool:
        """Whether the rest of the line is empty, except for a comment."""
        rest = self.text[offset : self.line_end(offset)].strip()
        return not rest or rest.startswith("#")


def layout_of_import(
    source: Source, statement: ast.ImportFrom
) -> tuple[Layout, cst.ImportFrom, Sequence[cst.ImportAlias]] | None:
    """The layout of ``from … import …``, its node and the imported names.

    None for a star, for a statement that shares its lines with others, and if no fix may change it.
    """
    try:
        part = parse_slice(source, statement.lineno, statement.end_lineno or statement.lineno)
    except (cst.ParserSyntaxError, RecursionError):
        return None
    line = part.module.body[0] if len(part.module.body) == 1 else None
    node = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    if not part.faithful or not isinstance(node, cst.ImportFrom) or isinstance(node.names, cst.ImportStar):
        return None
    return Layout(source, part), node, node.names


def layout_of(fn: FunctionClass, method: Method | None = None, *, head: bool = False) -> Layout | None:
    """The layout of a class, or None if no fix may change it, or the method is not defined in it.

    With ``head``, for a fix that only uses what is above the name of that method.
    """
    if fn.slice.source is not fn.source:
        return None
    if method is None:
        return Layout(fn.source, fn.slice) if fn.slice.faithful else None
    if method.inherited or method.slice is not fn.slice:
        return None
    return Layout(fn.source, fn.slice) if fn.slice.gives_back(method.node, head=head) else None
