"""Helpers for tests of contracts: code in; rows, hints and places out."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from ctxlint.explain.contract import contracts_of
from ctxlint.explain.inlay_hints import inlay_hints
from ctxlint.source.source import Position
from tests.model.models import read

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ctxlint.explain.contract_rows import Contract, PlaceRow
    from ctxlint.explain.inlay_hints import InlayHint
    from ctxlint.model.function import SourceFile

HEAD = "import torch\nfrom torch.autograd import Function\n\n\n"


def file_of(code: str) -> SourceFile:
    """The model of a file that begins with the usual imports."""
    return read(HEAD + textwrap.dedent(code).strip("\n") + "\n")


def contract_of(code: str, name: str = "") -> Contract:
    """The contract of the one Function of ``code``, or of that with a qualified name."""
    found = [each for each in contracts_of(file_of(code)) if each.qualname == (name or each.qualname)]
    assert len(found) == 1, [each.qualname for each in found]
    return found[0]


def point(file: SourceFile, fragment: str) -> tuple[int, int]:
    """The line and column at the ``|`` of a fragment that the file holds once, without the ``|``."""
    text = fragment.replace("|", "")
    assert file.source.text.count(text) == 1, fragment
    return tuple(file.source.position(file.source.text.index(text) + fragment.index("|")))  # type: ignore[return-value]


def hints_of(file: SourceFile) -> tuple[InlayHint, ...]:
    """All hints of a file."""
    return inlay_hints(file, Position(1, 1), Position(file.source.line_count + 1, 1))


def hinted(file: SourceFile) -> str:
    """The text of the file with its hints as comments, without the usual head."""
    text = file.source.text
    for hint in reversed(hints_of(file)):
        at = file.source.offset(hint.position)
        text = f"{text[:at]} /* {hint.label} */{text[at:]}"
    return text[len(HEAD) :]


def shown(file: SourceFile, places: Iterable[PlaceRow]) -> list[str]:
    """The code at each place, after its line number in the code that the test gives."""
    above = HEAD.count("\n")
    text, offset = file.source.text, file.source.offset
    return [f"{each.line - above}: {text[offset(each.span.start) : offset(each.span.end)]}" for each in places]
