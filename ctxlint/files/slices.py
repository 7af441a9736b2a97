"""Statements cut out of a file and parsed by LibCST, with positions that map back to the file's own lines.

LibCST costs ten times what ``ast`` costs for a line, and its position provider twice that again. So only top-level
statements that matter are parsed, and positions are worked out only for a slice that has something to report.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, cast

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from ctxlint.files.source import Position, Source, Span

if TYPE_CHECKING:
    from collections.abc import Mapping

    from libcst.metadata import CodeRange

_REFUSALS = (cst.CSTValidationError, getattr(cst, "CSTLogicError", cst.CSTValidationError))
"""LibCST reads the code and will not build the tree: ``await (a)if(b)else c``, a string beside a t-string."""


@dataclass(frozen=True)
class Slice:
    """One top-level statement of ``source``, from the 1-based ``first_line`` on, parsed with its indentation kept."""

    source: Source
    first_line: int
    last_line: int
    module: cst.Module

    @cached_property
    def faithful(self) -> bool:
        """Whether LibCST gives back the very text it was given; where it does not, no fix may be offered.

        LibCST 1.9 loses a form feed that stands directly before a statement.
        """
        return self.module.code == self.source.lines(self.first_line, self.last_line)

    @cached_property
    def _ranges(self) -> Mapping[cst.CSTNode, CodeRange]:
        wrapper = MetadataWrapper(self.module, unsafe_skip_copy=True)
        return cast("Mapping[cst.CSTNode, CodeRange]", wrapper.resolve(PositionProvider))

    def span(self, node: cst.CSTNode) -> Span:
        """Where ``node`` stands in the file. Raises KeyError for a node of another slice."""
        place = self._ranges[node]
        above = self.first_line - 1
        return Span(
            Position(place.start.line + above, place.start.column + 1),
            Position(place.end.line + above, place.end.column + 1),
        )


def parse_slice(source: Source, first_line: int, last_line: int) -> Slice:
    """Parse the lines ``first_line`` to ``last_line`` of ``source``.

    Raises ``libcst.ParserSyntaxError`` when LibCST cannot read them and ``RecursionError`` on very long chains. The
    caller has asked ``too_deep`` first: LibCST 1.9 kills the process on deep nesting.
    """
    text = source.lines(first_line, last_line)
    try:
        module = cst.parse_module(text)
    except _REFUSALS as error:
        lines = text.split("\n")
        raise cst.ParserSyntaxError(str(error), lines=lines, raw_line=1, raw_column=0) from error
    return Slice(source, first_line, last_line, module)
