"""Statements extracted from a file and parsed by LibCST, with positions that map back to the file's own lines.

For a line, LibCST costs ten times what ``ast`` costs, and its positions as much again. So only relevant top-level
statements are parsed, and positions are computed only for slices with findings. Repeated parsing of similar texts
reuses results in ``ParsedStatements``.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import libcst as cst

from ctxlint.effort import spend
from ctxlint.profiling import stage
from ctxlint.records import entity, record
from ctxlint.source.nesting import with_room
from ctxlint.source.positions import Places

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from ctxlint.source.source import Source, Span

Parsed = TypeVar("Parsed")

_REFUSALS = (cst.CSTValidationError, getattr(cst, "CSTLogicError", cst.CSTValidationError), UnicodeEncodeError)
"""LibCST parses the code but does not build the tree: ``await (a)if(b)else c``, a string next to a t-string.

Or it cannot parse it at all: it needs UTF-8, which has no surrogates. The text of an editor may contain one.
"""


@entity
class Statement:
    """The text of a top-level statement, independent of its position, and its LibCST tree."""

    text: str
    parse: Callable[[], cst.Module]
    find: Callable[[cst.CSTNode], Span | None] | None = None
    """The span of an ``ast`` node, with lines counted from the first one; None if only LibCST knows it."""
    replaces: Statement | None = None
    """The version with other comments whose nodes it has, if it is the next one after it."""

    released = False
    """Whether some of its nodes are those of a later version now."""

    @cached_property
    def module(self) -> cst.Module:
        """The statement as a LibCST module."""
        return self.parse()

    @cached_property
    def faithful(self) -> bool:
        """Whether LibCST reproduces the text exactly; nodes created from ``ast`` lose nothing."""
        return self.find is not None or self.places.text == self.text

    @cached_property
    def places(self) -> Places:
        """The positions of its nodes, with lines counted from its first one."""
        return Places(self.module, self.text)

    def gives_back(self, function: cst.FunctionDef, *, head: bool = False) -> bool:
        """Whether LibCST reproduces the text of a function exactly, without anything that it is known to lose."""
        if self.find is not None:
            return True
        return ("\f" not in self.text.lstrip("\f") and self.places.write(function, head=head)) or self.faithful

    def known(self, node: cst.CSTNode) -> Span | None:
        """The span of a node, if it is known without LibCST."""
        return self.find(node) if self.find is not None else None


@record
class Slice:
    """One top-level statement of ``source``, from the 1-based ``first_line`` on, parsed with its indentation kept."""

    source: Source
    first_line: int
    last_line: int
    statement: Statement

    @property
    def module(self) -> cst.Module:
        """The statement as a LibCST module."""
        return self.statement.module

    @property
    def faithful(self) -> bool:
        """Whether LibCST reproduces the text exactly; otherwise no fix may be offered.

        LibCST 1.9 loses a form feed directly before a statement.
        """
        return self.statement.faithful

    def gives_back(self, function: cst.FunctionDef, *, head: bool = False) -> bool:
        """Like ``faithful``, for a fix that affects one function of the slice; or only what is above its name."""
        return self.statement.gives_back(function, head=head)

    def span(self, node: cst.CSTNode) -> Span:
        """The span of ``node`` in the file.

        Raises:
            KeyError: The node belongs to another slice.
        """
        spend(4)
        return (self.statement.known(node) or self.statement.places.span(node)).moved(self.first_line - 1)

    def span_in(self, function: cst.FunctionDef, node: cst.CSTNode, *, head: bool = False) -> Span:
        """Like ``span``, at less cost, for a node in a function of the slice, or even above its name."""
        if self.statement.known(node) is None:
            self.statement.places.write(function, head=head)
        return self.span(node)

    def span_of_name(self, definition: cst.FunctionDef | cst.ClassDef) -> Span:
        """Like ``span``, at less cost, for the name of a function or class that is defined in the slice."""
        found = self.statement.known(definition.name) or self.statement.places.span_of_name(definition)
        return found.moved(self.first_line - 1)


def parse_slice(source: Source, first_line: int, last_line: int) -> Slice:
    """Parse the lines ``first_line`` to ``last_line`` of ``source``.

    The caller has to check ``too_deep`` first: LibCST 1.9 kills the process on deep nesting.

    Raises:
        libcst.ParserSyntaxError: LibCST cannot parse them.
        RecursionError: A chain is very long.
    """
    text = source.lines(first_line, last_line)
    return Slice(source, first_line, last_line, kept_statement(parse_statement, text))


def kept_statement(parse: Callable[..., Parsed], text: str, *more: object) -> Parsed:
    """The statement with this text, parsed with the other arguments if no earlier reading of the file did."""
    statements = _KEPT.get()
    return parse(text, *more) if statements is None else statements.statement(parse, text, *more)


def replaced_statement(parse: Callable[..., Parsed], text: str, name: Hashable) -> Parsed | None:
    """The statement with this name that is replaced by the one with this text; see ``ParsedStatements.replaced``."""
    kept = _KEPT.get()
    return None if kept is None else kept.replaced(parse, text, name)


def parse_statement(text: str) -> Statement:
    """Parse a statement; raises the same as ``parse_slice``."""
    module = parse_text(text)
    return Statement(text, lambda: module)


@stage("parse")
def parse_text(text: str) -> cst.Module:
    """The LibCST module of a text; raises the same as ``parse_slice``."""
    try:
        return with_room(text, lambda: cst.parse_module(text))
    except _REFUSALS as error:
        lines = text.split("\n")
        raise cst.ParserSyntaxError(str(error), lines=lines, raw_line=1, raw_column=0) from error


_NAMES_KEPT = 64


class ParsedStatements:
    """The parsed statements, and pieces of them, of the last ``readings`` readings of a file, by text.

    Up to ``limit`` characters in all.

    The editor parses a file at every keystroke, and most of its statements are unchanged.
    """

    def __init__(self, readings: int = 16, limit: int = 300_000) -> None:
        """Start empty."""
        self.readings = readings
        self.limit = limit
        self._reading = 0
        self._replaces = False
        self._size = 0
        self._statements: OrderedDict[tuple[Callable[..., Any], str], tuple[int, Any]] = OrderedDict()
        self._latest: OrderedDict[Hashable, tuple[Callable[..., Any], str]] = OrderedDict()

    @contextmanager
    def in_use(self, *, replaces: bool = False) -> Iterator[None]:
        """During this context, ``parse_slice`` looks up and stores statements here. For one reading of one file.

        With ``replaces``, the text is the next version of the file: see ``replaced``.
        """
        self._replaces = replaces
        self._reading += 1
        token = _KEPT.set(self)
        try:
            yield
        finally:
            _KEPT.reset(token)
            self._evict()

    def statement(self, parse: Callable[..., Parsed], text: str, *more: object) -> Parsed:
        """The statement with this text, parsed if necessary; raises what ``parse`` raises.

        A text that occurs twice in one reading is parsed twice: the model distinguishes nodes by identity.
        """
        key = (parse, text)
        reading, statement = self._statements.get(key, (0, None))
        if reading == self._reading or statement is None:
            statement = parse(text, *more)
        if key not in self._statements:
            self._size += len(text)
        if reading != self._reading:
            self._statements[key] = (self._reading, statement)
            self._statements.move_to_end(key)
        return statement  # type: ignore[no-any-return]

    def replaced(self, parse: Callable[..., Parsed], text: str, name: Hashable) -> Parsed | None:
        """The last statement with a name, unless it is in use; the one with this text is the last one now.

        It is dropped, so that its nodes can be used for the new statement.
        """
        if not self._replaces:
            return None
        before = self._latest.pop(name, None)
        self._latest[name] = (parse, text)
        while len(self._latest) > _NAMES_KEPT:
            self._latest.popitem(last=False)
        if before is None or self._statements.get(before, (self._reading, None))[0] == self._reading:
            return None
        self._size -= len(before[1])
        return self._statements.pop(before)[1]  # type: ignore[no-any-return]

    def _evict(self) -> None:
        """Evict what was not used recently, and what exceeds the limit.

        The last statement with a name stays: while it is half typed, it may not parse for many readings.
        """
        last = set(self._latest.values())
        while self._statements:
            key, (reading, statement) = next(iter(self._statements.items()))
            if self._size <= self.limit and reading > self._reading - self.readings:
                return
            if self._size <= self.limit and key in last:
                self._statements[key] = (self._reading, statement)
                self._statements.move_to_end(key)
            else:
                del self._statements[key]
                self._size -= len(key[1])


_KEPT: ContextVar[ParsedStatements | None] = ContextVar("_KEPT", default=None)
