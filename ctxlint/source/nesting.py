"""Text that would kill the process: nesting that overruns the C stack of LibCST's parser, or of CPython's own.

Both parsers recurse in C. LibCST 1.9 has no limit and crashes with a segmentation fault; ``ast.parse`` does the same in
threads with a small stack, and on Python 3.10 everywhere. No exception is raised, so the text is measured
first: how much stack would be in use at the deepest point? The costs were determined by experiment in a thread with 512
KiB, the smallest stack in practice. Little is lost by refusing: at these sizes a visitor ends in RecursionError.
Blocks cost LibCST the most: text with more of them than the usual stack allows is parsed in a thread with a larger one.

The measure is an upper bound, for broken text too. It uses no grammar, only brackets, indentation, strings, and what
makes a chain longer: an operator, an attribute, a call, adjacent strings.
"""

from __future__ import annotations

import math
import re
import sys
import threading
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from ctxlint.named_tuples import NamedTuple
from ctxlint.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Callable

    Handler = Callable[[re.Match[str]], int | None]

Parsed = TypeVar("Parsed")

_STACK = 450.0
"""How much stack a parser may need, in KiB; the rest of the 512 is for its callers."""

_BLOCKS = 3_000.0
"""How much more stack LibCST may need for the blocks around a statement, in KiB: Python allows 100 blocks."""

_LARGE_STACK = 4 << 20
"""The stack of the thread in which LibCST parses such text, in bytes."""


class _Costs(NamedTuple):
    """What a parser needs for one more of each, in KiB.

    ``parameters`` are those of a lambda, which may contain lambdas as defaults. ``link`` is one more of what makes a
    chain longer. ``word`` is a name, a number or a keyword that makes a chain longer; such a keyword takes three
    characters with its required neighbours (``1or``), so no word needs more than its length in ``character`` either.
    """

    block: float
    bracket: float
    parameters: float
    link: float
    string: float
    word: float
    character: float


_LIBCST = _Costs(block=29.0, bracket=8.7, parameters=16.0, link=1.6, string=0.95, word=1.35, character=0.45)
_AST = _Costs(block=0.5, bracket=1.85, parameters=0.6, link=0.25, string=0.0, word=0.24, character=0.08)

_PATTERN_BRACKETS = 7
"""The maximum nesting of brackets in a ``case`` or ``del``: LibCST takes 0.1 s for eight, minutes for fourteen."""

_MARK = pattern(
    r"""
    [()\[\]{},;:.\\\r\n\#"'+\-*/%@&|^~l]
    (?: (?<=[^"'\r\n\#l\\])
      | (?<=[\r\n]) (?:[ \t\f]*(?:\#[^\r\n]*)?[\r\n])* (?P<indent>[ \t\f]*) (?P<word>(?:elif|else|case|del)\b)?
      | (?<=") (?:""[^"\\]*(?:(?:\\[\s\S]|"(?!""))[^"\\]*)*"{3} | [^"\\\r\n]*(?:\\(?:\r\n|[\s\S])[^"\\\r\n]*)*")?
      | (?<=') (?:''[^'\\]*(?:(?:\\[\s\S]|'(?!''))[^'\\]*)*'{3} | [^'\\\r\n]*(?:\\(?:\r\n|[\s\S])[^'\\\r\n]*)*')?
      | (?<=\#) [^\r\n]*
      | (?<=l) (?<![^\W\d]l)ambda\b
      | (?<=\\) (?:\r\n|[\s\S])?
    )""",
    re.VERBOSE,
)
_FORMATTED = pattern(r"(?<!\w)(?:[fFtT][rR]?|[rR][fFtT])\Z")
_LITERAL = {
    quote: pattern(rf"\\(?:\r\n|[^{{}}])|\{{\{{|\{{|{quote}" + (r"|[\r\n]" if len(quote) == 1 else ""))
    for quote in ('"', "'", '"""', "'''")
}
_SPECIFICATION = pattern(r"[{}]")


class _Depth(NamedTuple):
    """Why LibCST must not parse a text, and whether it needs a larger stack than the usual one."""

    reason: str | None
    is_deep: bool


def too_deep(text: str) -> str | None:
    """Why LibCST must not parse ``text``, as half a sentence; None if a stack suffices."""
    return _depth_of(text).reason


@lru_cache(maxsize=2048)
def part_too_deep(text: str) -> bool:
    """Like ``too_deep``, for a part of a text that is often measured again."""
    return _depth_of.__wrapped__(text).reason is not None


def with_room(text: str, parse: Callable[[], Parsed]) -> Parsed:
    """The result of ``parse``, in which LibCST reads ``text``: in a thread with a larger stack if it needs one."""
    if not _depth_of(text).is_deep:
        return parse()
    results: list[Parsed] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(parse())
        except BaseException as error:  # noqa: BLE001  (raised again below)
            errors.append(error)

    thread = threading.Thread(target=run, name="ctxlint-parser")
    with _STARTING:
        before = threading.stack_size(_LARGE_STACK)
        try:
            thread.start()
        finally:
            threading.stack_size(before)
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


_STARTING = threading.Lock()


@lru_cache(maxsize=16)
def _depth_of(text: str) -> _Depth:
    """The depth of a text, kept for the parser, which is called right after ``too_deep``."""
    reason: str | None = None
    for by_word in (False, True):
        measure = _Measure("\n" + text, _LIBCST, by_word=by_word, blocks_room=_BLOCKS)
        reason = measure.run()
        if reason is None:
            return _Depth(None, measure.most > _STACK)
    return _Depth(reason, is_deep=True)


def too_deep_for_ast(text: str) -> str | None:
    """Why ``ast.parse`` must not parse ``text``, as half a sentence; None if the stack suffices.

    Since Python 3.11, it guards itself well enough in the main thread: it raises RecursionError or MemoryError.
    """
    is_large = _THREAD.has_large_stack or threading.current_thread() is threading.main_thread()
    return None if is_large and sys.version_info >= (3, 11) else _measure(text, _AST)


class _Thread(threading.local):
    has_large_stack = False


_THREAD = _Thread()


def note_large_stack() -> None:
    """Record that the stack of this thread is larger than that of the main thread."""
    _THREAD.has_large_stack = True


def _measure(text: str, costs: _Costs) -> str | None:
    """First with words counted by their length, which is fast but too high; then, if that refuses, one by one."""
    return _Measure("\n" + text, costs).run() and _Measure("\n" + text, costs, by_word=True).run()


@dataclass
class _Block:
    """Statements of one indentation. ``chain`` is the cost of the ``elif`` branches before the next statement."""

    width: int
    base: float
    chain: float = 0.0


class _Open(NamedTuple):
    """Something open: the need outside of it, and the quote of the f-string that contains a field.

    Kinds are ``bracket``, ``lambda`` (within its parameters), ``field`` (the braces in an f-string) and ``nested``
    (braces in the format specification of a field).
    """

    kind: str
    need: float
    element: float
    quote: str = ""


class _Measure:
    """One pass over a text. ``need`` is the stack use of a parser at the current position, in KiB.

    ``element`` is the need after the last opening bracket, or else at the start of the statement: a comma resets to it.
    ``open`` is the stack of open constructs, innermost last.
    """

    def __init__(self, text: str, costs: _Costs, *, by_word: bool = False, blocks_room: float = 0.0) -> None:
        self.text = text
        self.costs = costs
        self.by_word = by_word
        self.blocks_room = blocks_room
        self.most = 0.0
        self.need = self.element = self.statement = 0.0
        self.open: list[_Open] = []
        self.blocks = [_Block(0, 0.0)]
        self.in_pattern = False

    def run(self) -> str | None:
        """Why the text is too deep, as half a sentence, or None."""
        handlers = self._handlers()
        character = self.costs.character
        at: int | None = 0
        last = 0
        while at is not None:
            last, at = at, None
            for mark in _MARK.finditer(self.text, last):
                self.need += self._words(last, mark.start()) if self.by_word else (mark.start() - last) * character
                if self.need > _STACK and self._is_too_much():
                    return self._reason()
                last = mark.end()
                at = handlers[mark[0][0]](mark)
                if at is not None:
                    break
        self.need += self._words(last, len(self.text))
        return self._reason() if self.need > _STACK and self._is_too_much() else None

    def _is_too_much(self) -> bool:
        """Whether it is too much for the larger stack, too."""
        self.most = max(self.most, self.need)
        return self.need > _STACK + min(self.blocks[-1].base, self.blocks_room)

    def _handlers(self) -> dict[str, Handler]:
        return {
            **dict.fromkeys("\r\n", self._line),
            **dict.fromkeys(".+-*/%@&|^~", self._link),
            **dict.fromkeys("([{", self._opening),
            **dict.fromkeys(")]}", self._closing),
            **dict.fromkeys("\"'", self._string),
            **dict.fromkeys(",;", self._separator),
            **dict.fromkeys("#\\", self._nothing),
            ":": self._colon,
            "l": self._lambda,
        }

    def _reason(self) -> str:
        """The greatest contribution to the need."""
        brackets = self.costs.bracket * sum(each.kind != "lambda" for each in self.open)
        if self.need == math.inf or brackets > self.need / 2:
            return "brackets are nested too deeply"
        if self.statement > self.need / 2:
            return "blocks are nested too deeply"
        return "a chain of operators, calls or strings is too long"

    def _words(self, start: int, end: int) -> float:
        """The need for everything between two tokens, in which each word may be a keyword."""
        words = self.text[start:end].split()
        return min(len(words) * self.costs.word, (end - start) * self.costs.character)

    # Handlers of tokens. They return the position to continue at if that is not the end of the token.

    def _nothing(self, _mark: re.Match[str]) -> None:
        """A comment, or a line continuation."""

    def _link(self, _mark: re.Match[str]) -> None:
        self.need += self.costs.link

    def _separator(self, _mark: re.Match[str]) -> None:
        self.need = self.element

    def _line(self, mark: re.Match[str]) -> None:
        if self.open:
            if any(each.kind != "lambda" for each in self.open):
                return
            self.open.clear()
        word = mark["word"]
        self.in_pattern = word in ("case", "del")
        self.need = self.element = self.statement = self._statement(len(mark["indent"].expandtabs()), word)

    def _statement(self, width: int, word: str | None) -> float:
        """The need before the first token of a statement with this indentation and first word."""
        while self.blocks[-1].width > width:
            self.blocks.pop()
        block = self.blocks[-1]
        if width > block.width:
            self.blocks.append(_Block(width, block.base + block.chain + self.costs.block))
            block = self.blocks[-1]
        elif word == "elif":
            block.chain += self.costs.link
        elif word != "else":
            block.chain = 0.0
        return block.base + block.chain

    def _opening(self, _mark: re.Match[str]) -> None:
        self._enter("bracket", self.costs.bracket)
        if self.in_pattern and len(self.open) > _PATTERN_BRACKETS:
            self.need = math.inf

    def _lambda(self, _mark: re.Match[str]) -> None:
        self._enter("lambda", self.costs.parameters)

    def _enter(self, kind: str, cost: float, quote: str = "") -> None:
        self.open.append(_Open(kind, self.need, self.element, quote))
        self.need += cost
        self.element = self.need

    def _leave(self) -> _Open:
        left = self.open.pop()
        self.need, self.element = left.need, left.element
        return left

    def _closing(self, mark: re.Match[str]) -> int | None:
        while self.open and self.open[-1].kind == "lambda":
            self.open.pop()
        return self._close(mark.end()) if self.open else None

    def _close(self, at: int) -> int | None:
        left = self._leave()
        if left.kind == "field":
            return self._literal(at, left.quote)
        if left.kind == "nested":
            return self._specification(at)
        self.need += self.costs.link
        return None

    def _colon(self, mark: re.Match[str]) -> int | None:
        kind = self.open[-1].kind if self.open else ""
        if kind == "lambda":
            self._leave()
            self.need += 2 * self.costs.link
        elif kind in ("field", "nested"):
            return self._specification(mark.end())
        return None

    def _string(self, mark: re.Match[str]) -> int | None:
        self.need += self.costs.string
        start = mark.start()
        if self.text[start - 1] not in "fFtTrR" or not _FORMATTED.search(self.text, max(start - 3, 0), start):
            return None
        quote = self.text[start : start + 3]
        if quote not in _LITERAL:
            quote = quote[0]
        return self._literal(start + len(quote), quote)

    def _literal(self, at: int, quote: str) -> int:
        """Skip the text of an f-string, to its end or into its next field."""
        while True:
            found = _LITERAL[quote].search(self.text, at)
            if found is None:
                return len(self.text)
            at = found.end()
            if found[0] == "{":
                self._enter("field", self.costs.bracket, quote)
                return at
            if found[0] == quote:
                return at
            if found[0] in "\r\n":
                return found.start()

    def _specification(self, at: int) -> int | None:
        """Skip the format specification of a field, to the field's end or into a field in it."""
        found = _SPECIFICATION.search(self.text, at)
        if found is None:
            return len(self.text)
        if found[0] == "{":
            self._enter("nested", self.costs.bracket)
            return found.end()
        return self._close(found.end())
