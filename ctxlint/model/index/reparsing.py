"""Parsing a statement of which a few lines have changed: only the smallest statements around them are parsed again.

They are parsed with their own indentation and at their own lines. If they parse by themselves, at the indentation of
their block, the rest of the text is tokenised as before, so that its syntax tree is the same. A single line that leaves
no bracket and no string open, and has an error of its own, has that error in the whole text as well.

Otherwise, all but the statements of a block that end before the last one above the change are parsed: Python is done
with those when it comes to the change, so that neither the rest of the tree nor an error depends on them.
"""

from __future__ import annotations

import ast
from copy import copy
from typing import TYPE_CHECKING, Any, cast

from ctxlint.named_tuples import NamedTuple
from ctxlint.patterns import pattern
from ctxlint.source.changes import change_between

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Parse = Callable[[str, int], ast.Module]
    """Parses a text whose first line has this number in the file."""

_UNLIKELY = ("\t", "\r", "\f")
"""What makes lines and indentation hard to compare."""


_HARD = ("'", '"', "\\", "\f")
"""What may make another thing of what follows it on the line."""
_OPEN = pattern(r"[\"'\\#]")
_CONTINUES = pattern(r"\s*(?:elif|else|except|finally|case)\b")
_OWN_ERRORS = ("invalid syntax", "expected ':'")
"""The errors of which Python says no more than where they are."""


class _Whole(Exception):
    """The whole statement has to be parsed."""


class _Broken(Exception):
    """The whole statement has this syntax error, too."""

    def __init__(self, error: SyntaxError) -> None:
        super().__init__()
        self.error = error


def reparsed(before: ast.stmt, old: str, new: str, first: int, parse: Parse) -> ast.stmt | SyntaxError | None:
    """A statement with the text ``new``, given that it was ``before`` with ``old``; None if all of it has to be parsed.

    ``first`` is the number of the first line. The nodes of unchanged statements are those of ``before``, which is the
    result itself if only comments and blank lines have changed.
    """
    if any(each in new for each in _UNLIKELY):
        return None
    change = change_between(old, new)
    top, bottom = (first + new.count("\n", 0, at) for at in (change.start, change.new_end))
    reparsing, found = _Reparsing(new.split("\n"), first, parse), None
    if old.count("\n") == new.count("\n"):
        lines = _Lines(top, bottom)
        if reparsing.code_on(lines) == reparsing.of(old).code_on(lines) and reparsing.is_apart(before, lines):
            return before
        try:
            found = reparsing.changed(before, lines)
        except _Broken as broken:
            return broken.error
        except (_Whole, SyntaxError, ValueError, RecursionError, MemoryError):
            pass
    return found if found is not None else reparsing.continued(before, top)


def _code(line: str) -> str:
    """What is on a line before a comment; all of it if a string is in front of that, or what is hard to compare."""
    code = line.partition("#")[0].rstrip(" ")
    return line if any(each in code for each in _HARD) or "\r" in line else code


class _Lines(NamedTuple):
    """The numbers of the first and the last of some lines."""

    first: int
    last: int


class _Reparsing(NamedTuple):
    """The lines of a statement, the number of the first one, and the parser."""

    lines: list[str]
    first: int
    parse: Parse

    def of(self, text: str) -> _Reparsing:
        """The same for another text."""
        return self._replace(lines=text.split("\n"))

    def text_of(self, lines: _Lines) -> list[str]:
        """What is on some lines."""
        return self.lines[lines.first - self.first : lines.last + 1 - self.first]

    def code_on(self, lines: _Lines) -> list[str]:
        """The code on some lines, without comments and blanks at the end."""
        return [_code(each) for each in self.text_of(lines)]

    def is_apart(self, statement: ast.stmt, lines: _Lines) -> bool:
        """Whether within a statement, some lines have only simple statements of one line: no string goes on there."""
        around: list[ast.AST] = [statement]
        for node in around:
            for each in ast.iter_child_nodes(node):
                if not hasattr(each, "lineno"):
                    around.append(each)
                elif _first_line(each) <= lines.last and lines.first <= _last_line(each):
                    if any(blocks_of(each)):
                        around.append(each)
                    elif not isinstance(each, ast.stmt) or each.lineno != each.end_lineno:
                        return False
        return lines.first > self.first and not self._line(lines.first - 1).endswith("\\")

    def changed(self, statement: ast.stmt, lines: _Lines) -> ast.stmt | None:
        """A statement after a change of some lines; None if they are not all in one of its blocks."""
        for part, name, block in blocks_of(statement):
            if not (_first_line(block[0]) <= lines.first and lines.last <= _last_line(block[-1])):
                continue
            if self._line(block[0].lineno)[: block[0].col_offset].strip(" "):
                return None  # it is on the line of the head
            if isinstance(block[0], ast.If) and block[0].col_offset == statement.col_offset:  # ``elif``
                inner = self.changed(block[0], lines)  # the word itself belongs to the statement around it
                if inner is None:
                    return None
                spliced = [inner]
            else:
                spliced = self._spliced(block, lines)
            inside = _replaced(part, name, spliced, block[-1])
            if part is statement:
                return cast("ast.stmt", inside)
            parts = "handlers" if isinstance(part, ast.ExceptHandler) else "cases"
            others = [inside if each is part else each for each in getattr(statement, parts)]
            return cast("ast.stmt", _replaced(statement, parts, others, block[-1], spliced[-1]))
        return None

    def _spliced(self, block: list[ast.stmt], lines: _Lines) -> list[ast.stmt]:
        """The statements of a block after a change of some of its lines."""
        start, end, whole = _touched(block, lines)
        inner = self.changed(block[start], lines) if end - start == 1 else None
        between = [inner] if inner is not None else self._parsed(whole, block[0].col_offset)
        found = [*block[:start], *between, *block[end:]]
        if not found:
            raise _Whole
        return found

    def _parsed(self, lines: _Lines, column: int) -> list[ast.stmt]:
        """The statements on some lines of a block that begins at a column.

        A last statement at this column keeps Python from accepting another one, or a statement that goes on.
        """
        if any(self._line(each).rstrip().endswith("\\") for each in (lines.first - 1, lines.last)):
            raise _Whole
        text = "\n".join(self.text_of(lines))
        try:
            wrapped = self.parse(f"if 1:\n{text}\n{' ' * column}pass\n", lines.first - 1).body
        except SyntaxError as error:
            if lines.first == lines.last == error.lineno and _is_own(error, text, column):
                raise _Broken(error) from None
            raise
        if len(wrapped) != 1 or not isinstance(wrapped[0], ast.If) or wrapped[0].orelse:
            raise _Whole
        *found, last = wrapped[0].body
        if not isinstance(last, ast.Pass) or last.col_offset != column:
            raise _Whole
        return found

    def continued(self, before: ast.stmt, top: int) -> ast.stmt | SyntaxError | None:
        """A statement, or its error, after a change that begins at a line; what is well above is not parsed again."""
        blocks, lines = list(_blocks_around(before, top)), list(self.lines)
        known = [each.statements[: each.at] if self._is_apart(each.statements, each.at) else [] for each in blocks]
        for block, above in zip(blocks, known):
            if above:
                first, last = _first_line(above[0]) - self.first, _first_line(block.statements[block.at]) - self.first
                lines[first:last] = [""] * (last - first)
        if not any(known):
            return None
        try:
            found = self.parse("\n".join(lines), self.first).body
        except SyntaxError as error:
            return error
        except (ValueError, RecursionError, MemoryError):
            return None
        statement = found[0]
        for block, above in zip(blocks, known):
            inside = getattr(_parts_of(statement)[block.part], block.name)
            statement = inside[block.at - len(above)]
            inside[:0] = above
        return found[0] if len(found) == 1 else None

    def _is_apart(self, block: list[ast.stmt], at: int) -> bool:
        """Whether a statement of a block, and the first one, begin a line, and the statement before ends above it."""
        firsts = [(each, _first_line(each)) for each in (block[0], block[at])]
        if at == 0 or _last_line(block[at - 1]) >= firsts[1][1]:
            return False
        column = block[0].col_offset
        return all(
            not self._line(first)[:column].strip(" ")
            and not self._line(first - 1).rstrip().endswith("\\")
            and (not getattr(each, "decorator_list", ()) or self._line(first)[column] == "@")
            for each, first in firsts
        )

    def _line(self, number: int) -> str:
        return self.lines[number - self.first]


class _Block(NamedTuple):
    """A block: which part of its statement has it in which field, and the number of the statement to go on with."""

    part: int
    name: str
    statements: list[ast.stmt]
    at: int


def _blocks_around(statement: ast.stmt, line: int) -> Iterator[_Block]:
    """The blocks that begin above a line and go on there, or end last above it, outermost first."""
    while True:
        parts = _parts_of(statement)
        above = [each for each in blocks_of(statement) if _first_line(each[2][0]) < line]
        if not above:
            return
        part, name, block = max(above, key=lambda each: _first_line(each[2][0]))
        at = sum(_first_line(each) < line for each in block) - 1
        yield _Block(parts.index(part), name, block, at)
        statement = block[at]


def _parts_of(statement: Any) -> list[ast.AST]:
    """The statement, and those of its parts that have blocks of their own."""
    return [statement, *getattr(statement, "handlers", ()), *getattr(statement, "cases", ())]


def blocks_of(statement: Any) -> Iterator[tuple[ast.AST, str, list[ast.stmt]]]:
    """The blocks of a statement, each after the part of it that has it, and the name of the field."""
    for part in _parts_of(statement):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(part, name, None)
            if block:
                yield part, name, block


def _touched(block: list[ast.stmt], lines: _Lines) -> tuple[int, int, _Lines]:
    """The range of statements that have some of the lines, and all lines of these, and of statements on the same."""
    while True:
        start = sum(_last_line(each) < lines.first for each in block)
        end = sum(_first_line(each) <= lines.last for each in block)
        if start >= end:
            return start, start, lines
        first, last = _first_line(block[start]), _last_line(block[end - 1])
        if lines.first <= first and last <= lines.last:
            return start, end, lines
        lines = _Lines(min(first, lines.first), max(last, lines.last))


def _first_line(statement: Any) -> int:
    found: int = min([statement.lineno, *(each.lineno for each in getattr(statement, "decorator_list", ()))])
    return found


def _last_line(statement: Any) -> int:
    found: int = statement.end_lineno or statement.lineno
    return found


def _is_own(error: SyntaxError, line: str, column: int) -> bool:
    """Whether a line that begins at a column certainly has an error wherever it is in a block of that column."""
    if error.msg not in _OWN_ERRORS or _OPEN.search(line) or _CONTINUES.match(line):
        return False
    if len(line) - len(line.lstrip(" ")) != column:
        return False
    return all(line.count(opening) == line.count(closing) for opening, closing in ("()", "[]", "{}"))


def _replaced(node: ast.AST, name: str, value: list[Any], last: ast.stmt, now: ast.stmt | None = None) -> ast.AST:
    """A copy of a node with another list in a field; if it ended with ``last``, it ends with ``now``, or the list."""
    new = copy(node)
    setattr(new, name, value)
    if _end(node) == _end(last):
        end: Any = now if now is not None else value[-1]
        new.end_lineno, new.end_col_offset = _end(end)  # type: ignore[attr-defined]
    return new


def _end(node: Any) -> tuple[int | None, int | None]:
    return getattr(node, "end_lineno", None), getattr(node, "end_col_offset", None)
