"""The locations of a Function's nodes, and their code on one line."""

from __future__ import annotations

import ast
import re
import textwrap
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.explain.contract_rows import PlaceRow
from ctxlint.model.syntax import code_of
from ctxlint.patterns import pattern
from ctxlint.source.source import Span

if TYPE_CHECKING:
    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method
    from ctxlint.source.source import Source

_BLANK = pattern(r"\s*(\S|\Z)")
_PARAMETERS = pattern(r"[ \t]*\(([^()\[\]{}\"'#\\\r\n]*)\)")
"""Parameters on one line, without brackets, strings and comments."""
_CLOSING = pattern(r"(?:\s|\\|#[^\r\n]*(?=[\r\n]))*\)")


def place_in(source: Source, span: Span) -> PlaceRow:
    """A range of a file."""
    located = source.locate(span)
    return PlaceRow(source.path, span, located.span, located.cell)


def place_of(fn: FunctionClass, node: cst.CSTNode) -> PlaceRow | None:
    """The location of a node; None for one outside of the class's statements."""
    found = fn.location_of(node)
    return place_in(*found) if found is not None else None


def place_with_parentheses(fn: FunctionClass, node: cst.BaseExpression) -> PlaceRow | None:
    """Like ``place_of``, including the closing parentheses around an expression, which LibCST excludes."""
    found = fn.location_of(node)
    if found is None:
        return None
    source, span = found
    end = source.offset(span.end)
    for _ in getattr(node, "rpar", ()):
        closing = _CLOSING.match(source.text, end)
        if closing is None:
            break
        end = closing.end()
    return place_in(source, Span(span.start, source.position(end)))


def one_line(fn: FunctionClass, node: cst.CSTNode) -> str:
    """The code of an expression or statement of a Function, on one line and without its comments."""
    return _as_written(fn, node) or _generated(node)


def parameters_of(fn: FunctionClass, method: Method) -> str:
    """The code of the parameters of a method, as ``one_line`` gives it."""
    found = fn.location_of(method.node.name)
    written = _PARAMETERS.match(found[0].text, found[0].offset(found[1].end)) if found is not None else None
    return written[1].strip() if written is not None else _generated(method.node.params)


def _as_written(fn: FunctionClass, node: cst.CSTNode) -> str | None:
    """The text of an expression on one line; None for one that may have parentheses around it.

    For each node that LibCST writes, it reads and writes a whole statement.
    """
    found = fn.location_of(node) if isinstance(node, cst.BaseExpression) else None
    if found is None or found[1].start.line != found[1].end.line:
        return None
    source, span = found
    start, end = source.offset(span.start), source.offset(span.end)
    before = source.text[source.line_starts[span.start.line - 1] : start].rstrip()
    following = _BLANK.match(source.text, end)
    if before[-1:] in ("", "(") and following is not None and following[1] in ")#\\":
        return None
    return source.text[start:end]


def _generated(node: cst.CSTNode) -> str:
    """The code of a node, on one line and without its comments."""
    if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1:
        node = node.body[0]  # the lines above it belong to the layout of everything around it
    code = code_of(node).strip()
    if "\n" not in code and "\r" not in code:
        return code
    for opening, closing in (("", ""), ("(\n", "\n)")):
        try:
            return ast.unparse(ast.parse(opening + textwrap.dedent(code) + closing))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return " ".join(re.sub(r"#[^\r\n]*", "", code).split())
