"""Positions for programs that only support lines of files.

A line of a cell is not a line of the file. As in ruff, a finding in a notebook is located at the start of the file;
unlike there, its message contains the cell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.result import locate
from ctxlint.source.source import WHOLE_FILE

if TYPE_CHECKING:
    from ctxlint.diagnostic import Diagnostic
    from ctxlint.source.source import Source, Span


def span_in_file(diagnostic: Diagnostic, source: Source | None) -> Span:
    """The span of a finding; the start of the file if it is in a cell."""
    return diagnostic.span if locate(diagnostic, source).cell is None else WHOLE_FILE


def message_with_cell(diagnostic: Diagnostic, source: Source | None) -> str:
    """The message of a finding, prefixed with its position if that is in a cell."""
    located = locate(diagnostic, source)
    return diagnostic.message if located.cell is None else f"{located.place}: {diagnostic.message}"
