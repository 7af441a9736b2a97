"""From text to an ``ast`` module, even if the file does not parse as a whole.

A half-typed file, or one in older or newer syntax, is split into its top-level statements; those that parse are kept at
their own lines, if necessary rewritten in older syntax, and the others are listed as broken. Repeated parsing of
similar texts reuses results in ``ParsedPieces``.
"""

from __future__ import annotations

import ast
import warnings
from collections import OrderedDict
from collections.abc import Callable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, Union

from ctxlint.model.index.older_syntax import in_older_syntax, may_hold_newer_syntax
from ctxlint.model.index.reparsing import reparsed
from ctxlint.model.index.statement_pieces import StatementLines, hard_starts, note_parsed, statements
from ctxlint.patterns import pattern
from ctxlint.profiling import stage
from ctxlint.records import record
from ctxlint.source.ast_tree import nodes_in
from ctxlint.source.nesting import too_deep_for_ast
from ctxlint.source.source import Position

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from ctxlint.source.source import Source


@record
class BrokenStatement:
    """A top-level statement that no parser can parse, in a file that contains a Function.

    If ``is_syntax``, the message is Python's; otherwise Python may parse it, and only ctxlint cannot. ``follows``: the
    statement just before it is broken, too, which may be the only reason.
    """

    position: Position
    message: str
    is_syntax: bool = True
    follows: bool = False


Found = Union["list[ast.stmt]", BrokenStatement]
_Pieces = dict[tuple[int, str], Found]
"""By the number of the first line, and the text."""
_Statements = tuple[str, "list[ast.stmt]"]
"""A text that parses, and its statements."""
Kept = TypeVar("Kept")
Read = Callable[[StatementLines], Found]
"""Parses some lines of a file."""


@record
class Parsed:
    """A module as far as it parses. ``broken`` are the statements that do not, in order.

    ``as_written`` is False if the code may have been rewritten in older syntax.
    """

    module: ast.Module
    broken: tuple[BrokenStatement, ...] = ()
    as_written: bool = True


@stage("parse")
def parse(source: Source) -> Parsed:
    """Parse the whole file, or else each top-level statement by itself. Never raises for bad code.

    A notebook is parsed cell by cell: an open bracket does not extend into the next cell.
    """
    body: list[ast.stmt] = []
    broken: list[BrokenStatement] = []
    as_written = True
    statements = _KEPT.get()
    if statements is not None and not statements.has(source):
        statements = None
    read = partial(_parse_lines, source) if statements is None else statements.reading(source)
    for each in source.blocks:
        block = StatementLines(*each)
        found = read(block) if statements is None else _parse_known(source, block, read)
        if isinstance(found, BrokenStatement):
            found, more, rewritten = _parse_piecewise(source, block, read)
            broken.extend(more)
            as_written = as_written and not rewritten
        elif statements is not None and not source.has_cells:
            note_parsed(source, found)
        body.extend(found)
    return Parsed(ast.Module(body=body, type_ignores=[]), tuple(broken), as_written)


def _parse(text: str, first: int = 1) -> ast.Module:
    """Parse a text whose first line is the ``first`` of its file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes and the like are reported by other linters
        above = first - 1
        if above <= 10 * len(text) + 200:
            return ast.parse("\n" * above + text)  # much cheaper than renumbering the nodes of a long text
        try:
            return _moved(ast.parse(text), above)
        except SyntaxError as error:
            error.lineno = (error.lineno or 1) + above
            error.msg = LINE_NAMED.sub(lambda found: f"{found[1]} line {int(found[2]) + above}", error.msg)
            raise


def _moved(module: ast.Module, lines: int) -> ast.Module:
    """As ``ast.increment_lineno``, which takes twice as long."""
    for node in nodes_in(module):
        placed: Any = node
        if hasattr(placed, "lineno"):
            placed.lineno += lines
            placed.end_lineno += lines
    return module


LINE_NAMED = pattern(r"\b(at|on) line (\d+)")
"""As in ``expected an indented block after 'if' statement on line 3``."""


def _parse_known(source: Source, block: StatementLines, read: Read) -> Found:
    """Like ``_parse_lines``, if most pieces are known.

    Pieces that parse one by one also parse as a whole. If some piece does not, the text from there on may parse all the
    same: then the end of a piece was misjudged.
    """
    body: list[ast.stmt] = []
    for piece in statements(source, block):
        found = read(piece)
        if isinstance(found, BrokenStatement):
            if _fails_within(found, piece) or piece.last == block.last:
                return found
            rest = read(StatementLines(piece.first, block.last))
            return rest if isinstance(rest, BrokenStatement) else [*body, *rest]
        body.extend(found)
    return body


def _fails_within(broken: BrokenStatement, piece: StatementLines) -> bool:
    """Whether Python has read no further than a line above the last one of a piece: then more lines do not help."""
    return broken.position.line < piece.last and _READ_NO_FURTHER.match(broken.message) is not None


_READ_NO_FURTHER = pattern(r"invalid syntax\Z|expected ':'\Z|unterminated string literal")
"""The errors that Python reports at the last token that it has read."""


def _parse_piecewise(
    source: Source, block: StatementLines, read: Read
) -> tuple[list[ast.stmt], list[BrokenStatement], bool]:
    """The statements that parse, those that do not, and whether some had to be rewritten in older syntax."""
    body: list[ast.stmt] = []
    broken: list[BrokenStatement] = []
    follows = rewritten = False
    for piece in statements(source, block):
        parts = [piece]
        found, older = _parse_piece(source, piece, read)
        if isinstance(found, BrokenStatement):
            # An unclosed bracket or string has absorbed what follows it.
            parts = list(hard_starts(source, piece))
        for part in parts:
            if part != piece:
                found, older = _parse_piece(source, part, read)
            rewritten |= older
            if isinstance(found, BrokenStatement):
                broken.append(replace(found, follows=follows))
            else:
                body.extend(found)
            follows = isinstance(found, BrokenStatement)
    return body, broken, rewritten


def _parse_piece(source: Source, lines: StatementLines, read: Read) -> tuple[Found, bool]:
    """A piece, and whether it had to be rewritten in older syntax."""
    found = read(lines)
    older = _parse_older(source, lines) if isinstance(found, BrokenStatement) else None
    return (older or found, bool(older))


def _parse_lines(source: Source, lines: StatementLines) -> Found:
    text = source.lines(*lines)
    reason = too_deep_for_ast(text)
    if reason is not None:
        return BrokenStatement(Position(lines.first, 1), reason, is_syntax=False)
    try:
        return _parse(text, lines.first).body
    except SyntaxError as error:
        return _broken(error, lines)
    except ValueError as error:
        return BrokenStatement(Position(lines.first, 1), str(error), is_syntax=False)
    except (RecursionError, MemoryError):
        return BrokenStatement(Position(lines.first, 1), "nested too deeply", is_syntax=False)


def _broken(error: SyntaxError, lines: StatementLines) -> BrokenStatement:
    line = min(max(error.lineno or 1, lines.first), lines.last)
    return BrokenStatement(Position(line, max(error.offset or 1, 1)), error.msg)


def _parse_changed(source: Source, lines: StatementLines, known: _Statements | None) -> Found:
    """Like ``_parse_lines``, given what was found in another text that began at the same line."""
    old, found = known or ("", [])
    if len(found) != 1:
        return _parse_lines(source, lines)
    text = source.lines(*lines)
    changed = None if too_deep_for_ast(text) else reparsed(found[0], old, text, lines.first, _parse)
    if isinstance(changed, SyntaxError):
        return _broken(changed, lines)
    return [changed] if changed is not None else _parse_lines(source, lines)


def _parse_older(source: Source, lines: StatementLines) -> list[ast.stmt] | None:
    """Like ``_parse_lines``, for syntax newer than the ``ast`` of this Python; None if that is not the problem."""
    if not may_hold_newer_syntax(source.lines(*lines)):
        return None
    older = in_older_syntax(source, *lines)
    if older is None or too_deep_for_ast(older) is not None:
        return None
    try:
        return _parse(older, lines.first).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


class ParsedPieces:
    """The parsed pieces of the last two versions of each of some files, by position and text.

    The editor parses a file at every keystroke, and most of its statements are unchanged. Between two keystrokes, it
    parses the text with fixes applied.
    """

    def __init__(self, files: int = 4) -> None:
        """Start empty."""
        self.files = files
        self._path: str | None = None
        self._pieces: OrderedDict[str, tuple[_Pieces, _Pieces, dict[int, _Statements]]] = OrderedDict()

    def in_use(self, path: str | None = None) -> AbstractContextManager[None]:
        """During this context, ``parse`` looks up and stores the pieces of one file here, or of every file."""
        self._path = path
        return during(_KEPT, self)

    def has(self, source: Source) -> bool:
        """Whether the pieces of a file are kept."""
        return self._path in (None, source.path)

    def reading(self, source: Source) -> Read:
        """The parser of the lines of a file, reusing known pieces; for one reading of it."""
        last, older, parsed = self._pieces.pop(source.path, ({}, {}, {}))
        now: _Pieces = {}
        by_line = {first: parsed[first] for first, _text in last if first in parsed}  # it may not parse since then
        by_line.update((at, (text, each)) for (at, text), each in last.items() if not isinstance(each, BrokenStatement))
        self._pieces[source.path] = (now, last, by_line)
        while len(self._pieces) > self.files:
            self._pieces.popitem(last=False)

        def read(lines: StatementLines) -> Found:
            key = (lines.first, source.lines(*lines))
            if key not in now:
                before = last if key in last else older
                known = by_line.get(lines.first)
                now[key] = before[key] if key in before else _parse_changed(source, lines, known)
            return now[key]

        return read


_KEPT: ContextVar[ParsedPieces | None] = ContextVar("_KEPT", default=None)


@contextmanager
def during(variable: ContextVar[Kept | None], value: Kept) -> Iterator[None]:
    """During this context, a variable has this value."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)
