"""The positions of the nodes of a LibCST module.

``MetadataWrapper.resolve(PositionProvider)`` computes the same, at three times the cost: it walks the tree once more
for unused providers, searches every token for line ends, and always covers the whole module.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst
from libcst._nodes.internal import CodegenState

from ctxlint.named_tuples import NamedTuple
from ctxlint.records import record
from ctxlint.source.source import Position, Span, line_starts

if TYPE_CHECKING:
    from collections.abc import Iterator

Definition = cst.FunctionDef | cst.ClassDef


class Places:
    """The positions of the nodes of one module, computed on demand.

    Code generation costs about half of what parsing did. So callers who need only nodes of one function call ``write``
    first, and the rest of the module is not generated.
    """

    def __init__(self, module: cst.Module, text: str = "") -> None:
        """Take a module, and the text that it was parsed from, as far as that is known; computes nothing yet."""
        self._module = module
        self._given = _Text(text)
        self._whole: _Written | None = None
        self._functions: dict[cst.FunctionDef, _Written | None] = {}
        self._requested = False

    @property
    def text(self) -> str:
        """The text that LibCST generates for the module."""
        return self._all().text.text

    def span(self, node: cst.CSTNode) -> Span:
        """The span of a node in ``text``, without surrounding whitespace.

        Raises:
            KeyError: The node belongs to another module.
        """
        for function in self._functions.values():
            if function is not None and id(node) in function.places:
                return function.span(node)
        if self._whole is None and not self._requested:
            # Most modules get one request, often for the name of a class: no more is generated than that needs.
            self._requested = True
            written = _write(self._module, until=node)
            self._whole = written if written.whole else None
            return written.span(node)
        return self._all().span(node)

    def _all(self) -> _Written:
        if self._whole is None:
            self._whole = _write(self._module)
        return self._whole

    # Without the whole module

    def span_of_name(self, definition: Definition) -> Span:
        """Like ``span`` for the name of a function or class that is defined in the module."""
        found = self._head(definition)
        if found is None:
            return self.span(definition.name)
        return self._given.span(found.name, found.name + len(definition.name.value))

    def write(self, function: cst.FunctionDef, *, head: bool = False) -> bool:
        """Compute the positions in a function, if that is possible without the rest of the module.

        With ``head``, only its decorators and its name. True only if LibCST reproduces their text exactly.
        """
        written = self._functions.get(function)
        if function not in self._functions or (not head and written is not None and not written.whole):
            written = self._functions[function] = self._alone(function, until=function.name if head else None)
        return written is not None

    def _alone(self, function: cst.FunctionDef, until: cst.CSTNode | None) -> _Written | None:
        found = self._head(function)
        if found is None:
            return None
        tokens = _Tokens(self._module, until)
        tokens.increase_indent(found.indentation)
        whole = tokens.write(function)
        above = found.name - tokens.places[id(function.name)][0]
        fits = above >= 0 and self._given.text.startswith("".join(tokens.tokens), above)
        return _Written(self._given, tokens.places, whole, above) if fits else None

    def _head(self, definition: Definition) -> _Head | None:
        """The start of a definition in the given text; None if it is ambiguous, or its spacing is unusual."""
        if isinstance(definition, cst.FunctionDef):
            keyword, space = "def ", definition.whitespace_after_def
        else:
            keyword, space = "class ", definition.whitespace_after_class
        if space.value != " ":
            return None
        heads = list(_heads(self._given.text, keyword, definition.name.value))
        return heads[0] if len(heads) == 1 else None


class _Head(NamedTuple):
    """The start of a definition: its indentation, and the offset of its name."""

    indentation: str
    name: int


def _heads(text: str, keyword: str, name: str) -> Iterator[_Head]:
    """What looks like the start of a definition, including those in strings."""
    words = keyword + name
    at = text.find(words)
    while at >= 0:
        line = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1
        before = text[line:at]
        bare = before.lstrip(_BLANK)
        if bare.rstrip(_BLANK) in ("", "async") and text[at + len(words) : at + len(words) + 1] in _AFTER_NAME:
            yield _Head(before[: len(before) - len(bare)], at + len(keyword))
        at = text.find(words, at + 1)


_BLANK = " \t\f"
_AFTER_NAME = frozenset(" \t\f\r\n\\(:[")


class _Text:
    """A text, and the offsets of its lines."""

    def __init__(self, text: str) -> None:
        self.text = text

    def span(self, start: int, end: int) -> Span:
        return Span(self._position(start), self._position(end))

    def _position(self, offset: int) -> Position:
        line = bisect_right(self._line_starts, offset)
        return Position(line, offset - self._line_starts[line - 1] + 1)

    @cached_property
    def _line_starts(self) -> list[int]:
        return line_starts(self.text)


@record
class _Written:
    """A text and the offsets of the nodes in it, or in its beginning; offsets count from ``above``."""

    text: _Text
    places: dict[int, tuple[int, int]]
    whole: bool
    above: int = 0

    def span(self, node: cst.CSTNode) -> Span:
        start, end = self.places[id(node)]
        return self.text.span(start + self.above, end + self.above)


def _write(module: cst.Module, until: cst.CSTNode | None = None) -> _Written:
    """Generate the code of a module, or its beginning up to the end of a node."""
    tokens = _Tokens(module, until)
    whole = tokens.write(module)
    return _Written(_Text("".join(tokens.tokens)), tokens.places, whole)


class _Reached(Exception):
    """The requested node is complete."""


class _Tokens(CodegenState):
    """Writes tokens and records, for each node, its offsets.

    If a node has a syntactic position in LibCST's sense, that is recorded, like in ``PositionProvider``. The public
    way, ``MetadataWrapper``, copies or checks the whole tree, computes lines for every node, and cannot stop at a node.
    Hence the private names ``CodegenState`` and ``_codegen``; because of them, the requirement has an upper bound.
    """

    def __init__(self, module: cst.Module, until: cst.CSTNode | None = None) -> None:
        super().__init__(module.default_indent, module.default_newline)
        self.places: dict[int, tuple[int, int]] = {}  # by identity: LibCST computes the hash of a node in Python
        self._until = until
        self.offset = 0
        self._starts: list[int] = []

    def write(self, node: cst.CSTNode) -> bool:
        """Write a node; False if the text ended before it, at the requested node."""
        try:
            node._codegen(self)  # noqa: SLF001  (what `Module.code` calls, with a state of its own)
        except _Reached:
            return False
        return True

    def add_indent_tokens(self) -> None:
        super().add_indent_tokens()
        self.offset += sum(map(len, self.indent_tokens))

    def add_token(self, value: str) -> None:
        self.tokens.append(value)
        self.offset += len(value)

    def before_codegen(self, node: cst.CSTNode) -> None:  # noqa: ARG002  (LibCST passes it)
        self._starts.append(self.offset)

    def after_codegen(self, node: cst.CSTNode) -> None:
        start = self._starts.pop()
        self.places.setdefault(id(node), (start, self.offset))
        if node is self._until:
            raise _Reached

    def record_syntactic_position(  # type: ignore[override]
        self, node: cst.CSTNode, *, start_node: cst.CSTNode | None = None, end_node: cst.CSTNode | None = None
    ) -> _Recording:
        return _Recording(self, node, start_node, end_node)


class _Recording:
    """Records the position of a node, once it is written."""

    __slots__ = ("end_node", "node", "start", "start_node", "tokens")

    def __init__(
        self, tokens: _Tokens, node: cst.CSTNode, start_node: cst.CSTNode | None, end_node: cst.CSTNode | None
    ) -> None:
        self.tokens = tokens
        self.node = node
        self.start_node = start_node
        self.end_node = end_node

    def __enter__(self) -> None:
        self.start = self.tokens.offset

    def __exit__(self, kind: type[BaseException] | None, *_exception: object) -> None:
        if kind is not None:
            return
        places = self.tokens.places
        places[id(self.node)] = (
            self.start if self.start_node is None else places[id(self.start_node)][0],
            self.tokens.offset if self.end_node is None else places[id(self.end_node)][1],
        )
