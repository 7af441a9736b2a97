"""The parts of a class or function whose nesting can be measured one by one: most are those of its last version."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.source.source import Source


def parts_of(statement: ast.stmt, source: Source, above: str = "") -> Iterator[str]:
    """The head of a statement and the statements in its body, each below heads that stand for those ``above`` it.

    So each is as deep as it is in the whole.
    """
    first, last = _lines_of(statement)
    block = statement.body if isinstance(statement, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) else []
    if not block or not _is_on_own_lines(statement.lineno, block, source):
        yield above + source.lines(first, last)
        return
    yield above + source.lines(first, _lines_of(block[0])[0] - 1)
    indent = source.line(statement.lineno)[: statement.col_offset]
    for each in block:
        yield from parts_of(each, source, f"{above}{indent}if 1:\n")


def _is_on_own_lines(head: int, block: list[ast.stmt], source: Source) -> bool:
    """Whether each statement of a block begins on a line of its own, and none on that of the ``head``."""
    last = head
    for each in block:
        first, end = _lines_of(each)
        before = source.line(first)[: each.col_offset] if first == each.lineno else ""
        if first <= last or before.strip(" \t") or source.line(first - 1).endswith("\\"):
            return False
        last = end
    return True


def _lines_of(statement: ast.stmt) -> tuple[int, int]:
    decorators = getattr(statement, "decorator_list", ())
    first = min([statement.lineno, *(each.lineno for each in decorators)])
    return first, statement.end_lineno or statement.lineno
