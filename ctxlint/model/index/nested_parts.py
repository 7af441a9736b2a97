"""The parts of a class or function whose nesting can be measured one by one: most are those of its last version."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.source.source import Source


def parts_of(
    statement: ast.stmt, source: Source, known: frozenset[ast.stmt] = frozenset(), above: str = ""
) -> Iterator[str]:
    """The head of a statement and the statements in its body, each below heads that stand for those ``above`` it.

    So each is as deep as it is in the whole. Those that are ``known`` are left out.
    """
    first, last = _lines_of(statement)
    block = statement.body if isinstance(statement, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) else []
    if not block or not _are_on_own_lines(statement.lineno, block, source, known):
        yield above + source.lines(first, last)
        return
    yield above + source.lines(first, _lines_of(block[0])[0] - 1)
    indent = source.line(statement.lineno)[: statement.col_offset]
    for each in block:
        if each not in known:
            yield from parts_of(each, source, known, f"{above}{indent}if 1:\n")


def nested_in(statement: ast.ClassDef) -> frozenset[ast.stmt]:
    """The statements in a class and in the functions there."""
    return frozenset(inner for each in statement.body for inner in (each, *getattr(each, "body", ())))


def _are_on_own_lines(head: int, block: list[ast.stmt], source: Source, known: frozenset[ast.stmt]) -> bool:
    """Whether each statement of a block that is not ``known`` begins and ends on lines of its own, below the head."""
    above: ast.stmt | None = None
    for each in block:
        if each not in known or (above is not None and above not in known):
            first, last = _lines_of(each)[0], head if above is None else _lines_of(above)[1]
            before = source.line(first)[: each.col_offset] if first == each.lineno else ""
            if first <= last or before.strip(" \t") or source.line(first - 1).endswith("\\"):
                return False
        above = each
    return True


def _lines_of(statement: ast.stmt) -> tuple[int, int]:
    decorators = getattr(statement, "decorator_list", ())
    first = min([statement.lineno, *(each.lineno for each in decorators)])
    return first, statement.end_lineno or statement.lineno
