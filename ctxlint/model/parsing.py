"""From text to an ``ast`` module, also where the file does not parse as a whole.

A half-typed file, or one in older or newer syntax, is taken apart at its top-level statements; those that parse are
kept at their own lines, if need be in the words of an older Python, and the others are named as broken.
"""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass

from ctxlint.files.nesting import too_deep_for_ast
from ctxlint.files.source import Position, Source
from ctxlint.model.functions import BrokenStatement
from ctxlint.model.older_syntax import in_older_syntax
from ctxlint.model.pieces import Lines, hard_starts, statements
from ctxlint.stages import stage


@dataclass(frozen=True)
class Parsed:
    """A module as far as it parses. ``broken`` names the statements that do not, in order.

    ``as_written`` is False where the words of an older Python may stand in the place of what is written.
    """

    module: ast.Module
    broken: tuple[BrokenStatement, ...] = ()
    as_written: bool = True


@stage("parse")
def parse(source: Source) -> Parsed:
    """Parse the whole file, or else each top-level statement for itself. Never raises for bad code.

    A notebook is parsed cell by cell: what one leaves open, the next one does not close.
    """
    body: list[ast.stmt] = []
    broken: list[BrokenStatement] = []
    as_written = True
    for block in source.blocks:
        found = _parse_lines(source, Lines(*block))
        if isinstance(found, BrokenStatement):
            found, more = _parse_piecewise(source, Lines(*block))
            broken.extend(more)
            as_written = False
        body.extend(found)
    return Parsed(ast.Module(body=body, type_ignores=[]), tuple(broken), as_written)


def _parse(text: str, first: int = 1) -> ast.Module:
    """Parse a text whose first line is the ``first`` of its file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes and the like are other linters' business
        return ast.parse("\n" * (first - 1) + text)  # much cheaper than to renumber the nodes


def _parse_piecewise(source: Source, block: Lines) -> tuple[list[ast.stmt], list[BrokenStatement]]:
    body: list[ast.stmt] = []
    broken: list[BrokenStatement] = []
    for piece in statements(source, block):
        parts = [piece]
        found = _parse_piece(source, piece)
        if isinstance(found, BrokenStatement):
            # A bracket or string that was never closed has taken in what follows it.
            parts = list(hard_starts(source, piece))
        for part in parts:
            found = found if part == piece else _parse_piece(source, part)
            if isinstance(found, BrokenStatement):
                broken.append(found)
            else:
                body.extend(found)
    return body, broken


def _parse_piece(source: Source, lines: Lines) -> list[ast.stmt] | BrokenStatement:
    found = _parse_lines(source, lines)
    return _parse_older(source, lines) or found if isinstance(found, BrokenStatement) else found


def _parse_lines(source: Source, lines: Lines) -> list[ast.stmt] | BrokenStatement:
    text = source.lines(*lines)
    reason = too_deep_for_ast(text)
    if reason is not None:
        return BrokenStatement(Position(lines.first, 1), f"not read: {reason}")
    try:
        return _parse(text, lines.first).body
    except SyntaxError as error:
        line = min(max(error.lineno or 1, lines.first), lines.last)
        return BrokenStatement(Position(line, max(error.offset or 1, 1)), error.msg)
    except (ValueError, RecursionError, MemoryError) as error:
        return BrokenStatement(Position(lines.first, 1), f"not read: {error}")


def _parse_older(source: Source, lines: Lines) -> list[ast.stmt] | None:
    """As ``_parse_lines``, for what is newer than the ``ast`` of this Python; None where that is not what is wrong."""
    older = in_older_syntax(source, *lines)
    if older is None or too_deep_for_ast(older) is not None:
        return None
    try:
        return _parse(older, lines.first).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
