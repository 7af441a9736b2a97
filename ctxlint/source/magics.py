"""IPython syntax in a cell that is not Python: ``%time x``, ``!ls``, ``x = !ls``, ``x?``, ``%%bash``."""

from __future__ import annotations

import re

from ctxlint.patterns import pattern

PLACEHOLDER = pattern(r"(?<!\w)__+(?!\w)")
"""The replacement: a name of the same length that is otherwise unused."""

_PYTHON_CELL_MAGICS = ("capture", "prun", "time", "timeit")
"""Cell magics whose cell runs as part of the notebook; the cell of any other may be anything."""

_CELL_MAGIC = pattern(r"\s*%%(\S*)")
_TOKEN = pattern(
    r"""
    (?P<string> \"\"\"(?:[^\\]|\\.)*?(?:\"\"\"|\Z) | '''(?:[^\\]|\\.)*?(?:'''|\Z)
              | "(?:[^"\\\n]|\\.)*"? | '(?:[^'\\\n]|\\.)*'? )
    | (?P<comment> \#[^\n]* )
    | (?P<open> [(\[{] )
    | (?P<close> [)\]}] )
    | (?P<escape> \\. )
    | (?P<newline> \n )
    | (?P<question> \?(?=\s*(?:\n|\Z)) )
    """,
    re.VERBOSE | re.DOTALL,
)
_LINE_MAGIC = pattern(r"[ \t]*(?P<magic>[%!?])")
_ASSIGNED = pattern(
    r"""[ \t]*[^\W\d](?:[\w.,* \t]|\[[^\]\n]*\])*(?::[^=\n'"#]*)?=[ \t]*(?P<magic>!|%(?=[^\W\d]))""",
)
_BINDING = pattern(r"^[ \t]*%{1,2}(?:run|store|pylab|capture[ \t]+\w)", re.MULTILINE)
_TO_LINE_END = pattern(r"(?:[^\\\r\n]|\\(?:\r\n|.))*", re.DOTALL)
"""The rest of a line, and of the continuation lines after backslashes."""


def is_python(cell: str) -> bool:
    """Whether the cell, except for single lines, is Python code of the notebook."""
    magic = _CELL_MAGIC.match(cell)
    if magic is not None:
        return magic[1] in _PYTHON_CELL_MAGICS
    first = next((line for line in cell.split("\n") if line.strip() and not line.lstrip().startswith("#")), "")
    return not first.startswith((" ", "\t"))


def binds_names(cell: str) -> bool:
    """Whether a magic in a cell may bind names that the cell does not show."""
    return _BINDING.search(cell) is not None


def without_magics(cell: str) -> str:
    """``cell`` with placeholders for everything that is not Python; all other characters keep their positions."""
    pieces = []
    at = 0
    while at < len(cell):
        found = _LINE_MAGIC.match(cell, at) or _ASSIGNED.match(cell, at)
        start = found.start("magic") if found else None
        if start is not None:
            line = _TO_LINE_END.match(cell, start)
            end = line.end() if line else len(cell)
        else:
            start, end = _python_or_help(cell, at)
        pieces += [cell[at:start], _placeholder(cell[start:end])]
        at = end
    return "".join(pieces)


def _python_or_help(cell: str, at: int) -> tuple[int, int]:
    """The end of the logical line at ``at``, twice; or the start and end of a request for help."""
    depth = 0
    for token in _TOKEN.finditer(cell, at):
        kind = token.lastgroup
        if kind == "open":
            depth += 1
        elif kind == "close":
            depth = max(depth - 1, 0)
        elif kind == "newline" and depth == 0:
            return token.end(), token.end()
        elif kind == "question" and "\n" not in cell[at : token.start()]:
            line = cell[at : token.end()]
            return at + len(line) - len(line.lstrip()), token.end()
    return len(cell), len(cell)


def _placeholder(magic: str) -> str:
    """A name as long as ``magic``; its further lines are left empty."""
    first, _, below = magic.partition("\n")
    return "_" * len(first) + magic[len(first) : len(first) + 1] + re.sub(r"[^\r\n]", " ", below)
