"""From text to an ``ast`` module, also where the file does not parse as a whole.

A half-typed file, or one in older or newer syntax, is taken apart at its top-level statements; those that parse are kept
at their own lines, the others are named as broken.
"""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass

from ctxlint.files.nesting import too_deep_for_ast
from ctxlint.files.source import Position, Source
from ctxlint.model.functions import BrokenStatement

_STATEMENT_START = re.compile(r"[^\s#)\]}]")
_CONTINUES = re.compile(r"(?:else|elif|except|finally)\b")
_TRIPLE = re.compile(r'"""|\'\'\'')


@dataclass(frozen=True)
class Parsed:
    """A module as far as it parses. ``broken`` names the statements that do not, in order."""

    module: ast.Module
    broken: tuple[BrokenStatement, ...] = ()


def parse(source: Source) -> Parsed:
    """Parse the whole file, or else each top-level statement for itself. Never raises for bad code."""
    reason = too_deep_for_ast(source.text)
    if reason is None:
        try:
            return Parsed(_parse(source.text))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            pass
    return _parse_piecewise(source)


def _parse(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes and the like are other linters' business
        return ast.parse(text)


def _parse_piecewise(source: Source) -> Parsed:
    body: list[ast.stmt] = []
    broken: list[BrokenStatement] = []
    for first, last in top_level_pieces(source):
        text = source.lines(first, last)
        reason = too_deep_for_ast(text)
        if reason is not None:
            broken.append(BrokenStatement(Position(first, 1), f"not read: {reason}"))
            continue
        try:
            module = _parse(text)
        except SyntaxError as error:
            line = min(max((error.lineno or 1), 1), last - first + 1)
            broken.append(BrokenStatement(Position(first + line - 1, max(error.offset or 1, 1)), error.msg))
        except (ValueError, RecursionError, MemoryError) as error:
            broken.append(BrokenStatement(Position(first, 1), f"not read: {error}"))
        else:
            for statement in module.body:
                ast.increment_lineno(statement, first - 1)
            body.extend(module.body)
    return Parsed(ast.Module(body=body, type_ignores=[]), tuple(broken))


def top_level_pieces(source: Source) -> list[tuple[int, int]]:
    """The first and last lines of what look like top-level statements, decorators included."""
    pieces: list[tuple[int, int]] = []
    first = 0
    in_string = False
    after_decorator = False
    count = source.line_count
    for number in range(1, count + 1):
        line = source.line(number)
        starts = not in_string and _STATEMENT_START.match(line) is not None and not _CONTINUES.match(line)
        if starts and not after_decorator:
            if first:
                pieces.append((first, number - 1))
            first = number
        if starts:
            after_decorator = line.startswith("@")
        if len(_TRIPLE.findall(line)) % 2:
            in_string = not in_string
    if first:
        pieces.append((first, count))
    return pieces
