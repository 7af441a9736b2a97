"""Where the nodes of a LibCST module stand.

``MetadataWrapper.resolve(PositionProvider)`` says the same, for three times the price: it walks the tree once more for
providers that nobody asked for, searches every token for line ends, and always goes to the end.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from contextlib import contextmanager
from typing import TYPE_CHECKING

from libcst._nodes.internal import CodegenState

from ctxlint.files.source import Position, Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    import libcst as cst

_LINE_END = re.compile(r"\r\n|\r|\n")


class Places:
    """The places of the nodes of one module, worked out when they are asked for."""

    def __init__(self, module: cst.Module) -> None:
        """Take a module; nothing is done yet."""
        self._module = module
        self._whole: _Written | None = None
        self._asked = False

    @property
    def text(self) -> str:
        """The text that LibCST gives back for the module."""
        return self._all().text

    def span(self, node: cst.CSTNode) -> Span:
        """Where a node stands in ``text``, without the space around it. Raises KeyError for another module's node."""
        if self._whole is None and not self._asked:
            # Most modules are asked for one thing, often the name of a class: no more is written than that takes.
            self._asked = True
            written = _Written(self._module, until=node)
            self._whole = written if written.whole else None
            return written.span(node)
        return self._all().span(node)

    def _all(self) -> _Written:
        if self._whole is None:
            self._whole = _Written(self._module)
        return self._whole


class _Written:
    """The text of a module or its beginning, up to the end of the node ``until``, and what was written where."""

    def __init__(self, module: cst.Module, until: cst.CSTNode | None = None) -> None:
        state = _Tokens(module, until)
        self.whole = True
        try:
            module._codegen(state)  # noqa: SLF001  (what `Module.code` calls, with a state of its own)
        except _Reached:
            self.whole = False
        self.text = "".join(state.tokens)
        self._places = state.places
        self._line_starts = [0, *(end.end() for end in _LINE_END.finditer(self.text))]

    def span(self, node: cst.CSTNode) -> Span:
        start, end = self._places[node]
        return Span(self._position(start), self._position(end))

    def _position(self, offset: int) -> Position:
        line = bisect_right(self._line_starts, offset)
        return Position(line, offset - self._line_starts[line - 1] + 1)


class _Reached(Exception):
    """The node that was asked for is written."""


class _Tokens(CodegenState):
    """Writes tokens and keeps, for each node, the offsets between which it came to stand.

    What LibCST calls the syntactic position is kept where a node has one, as ``PositionProvider`` does.
    """

    def __init__(self, module: cst.Module, until: cst.CSTNode | None) -> None:
        super().__init__(module.default_indent, module.default_newline)
        self.places: dict[cst.CSTNode, tuple[int, int]] = {}
        self._until = until
        self._offset = 0
        self._starts: list[int] = []

    def add_indent_tokens(self) -> None:
        super().add_indent_tokens()
        self._offset += sum(map(len, self.indent_tokens))

    def add_token(self, value: str) -> None:
        self.tokens.append(value)
        self._offset += len(value)

    def before_codegen(self, node: cst.CSTNode) -> None:  # noqa: ARG002  (LibCST passes it)
        self._starts.append(self._offset)

    def after_codegen(self, node: cst.CSTNode) -> None:
        start = self._starts.pop()
        self.places.setdefault(node, (start, self._offset))
        if node is self._until:
            raise _Reached

    @contextmanager
    def record_syntactic_position(
        self, node: cst.CSTNode, *, start_node: cst.CSTNode | None = None, end_node: cst.CSTNode | None = None
    ) -> Iterator[None]:
        start = self._offset
        yield
        self.places[node] = (
            self.places[start_node][0] if start_node is not None else start,
            self.places[end_node][1] if end_node is not None else self._offset,
        )
