"""Makes text from a checkout safe for terminals, logs and CI systems.

Non-printable characters could move the cursor, hide or reorder text, or begin a line; and a line can be a command to
GitHub Actions (``::name``, ``##[name]``) or to Azure Pipelines (``##vso[name]``). They are replaced by a visible
substitute. In JSON and XML they are escaped, which preserves their meaning.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctxlint.diagnostic import Diagnostic
    from ctxlint.result import FileResult

TAB = " " * 4
# Compiled at first use: few texts contain what they might match.
_CONTROL = "[\0-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
_COMMAND = r"#(?=#(?:vso)?\[)"
_COMMAND_AT_START = r"^(\s*):(?=:)"


def visible(text: str) -> str:
    """``text`` on one line: tabs as spaces, a substitute for whatever is not printable or begins a command."""
    if not text.isprintable():
        text = "".join(map(_visible, text))
    if "::" in text:
        text = re.sub(_COMMAND_AT_START, "\\1\u2236", text)
    return re.sub(_COMMAND, "\u266f", text) if "##" in text else text


def _visible(char: str) -> str:
    if char == "\t":
        return TAB
    if char < " ":
        return chr(0x2400 + ord(char))
    if char == "\x7f":
        return "\u2421"
    return char if char.isprintable() else "\ufffd"


def is_active(text: str) -> bool:
    """Whether ``text``, a line without its end, is more than printable text."""
    return visible(text) != text.replace("\t", TAB)


def is_command(text: str) -> bool:
    """Whether ``text``, a line of a list for programs, is several lines, or commands a terminal or a CI system."""
    return any(re.search(found, text) for found in (_CONTROL, _COMMAND, _COMMAND_AT_START))


def visible_result(result: FileResult) -> FileResult:
    """``result`` with names and messages made visible, each on one line."""
    return result._replace(path=visible(result.path), diagnostics=tuple(map(_diagnostic, result.diagnostics)))


def _diagnostic(diagnostic: Diagnostic) -> Diagnostic:
    from dataclasses import replace  # start-up: a run without findings does not need it

    fix = diagnostic.fix
    return replace(
        diagnostic,
        path=visible(diagnostic.path),
        message=one_line(diagnostic.message),
        related=tuple(
            replace(each, message=one_line(each.message), path=visible(each.path)) for each in diagnostic.related
        ),
        fix=None if fix is None else replace(fix, message=one_line(fix.message)),
    )


def one_line(message: str) -> str:
    """A message on one line, after ``visible``."""
    return visible(" ".join(message.splitlines()))


def in_json(text: str) -> str:
    """A JSON text in which non-printable characters are escaped."""
    return _escaped(text, lambda char: "".join(f"\\u{unit:04x}" for unit in _units(char)))


def in_xml(text: str) -> str:
    """An XML text in which non-printable characters are references."""
    return _escaped(text, lambda char: f"&#{ord(char)};")


def _escaped(text: str, escape: Callable[[str], str]) -> str:
    if not text.replace("\n", "").isprintable():
        text = "".join(char if char.isprintable() or char == "\n" else escape(char) for char in text)
    return re.sub(_COMMAND, lambda found: escape(found[0]), text) if "##" in text else text


def _units(char: str) -> tuple[int, ...]:
    """The code units of UTF-16."""
    data = char.encode("utf-16-be", "surrogatepass")
    return tuple(int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2))
