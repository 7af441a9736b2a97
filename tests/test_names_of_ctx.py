"""Messages, notes and fixes use the user's name for ctx."""

from __future__ import annotations

import io
import re
import tokenize
from typing import TYPE_CHECKING

import pytest

from tests.fixture_reader import Fixture, rule_fixtures
from tests.linting import every_rule, findings_in, lint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ctxlint.diagnostic import Diagnostic

NAME = "ctx_"
"""It is a usual name for it, which the rules recognize; so the lines are as long as before, but for one character."""

ABOUT_THE_NAME = {"CTX102", "CTX108", "CTX109", "CTX910"}
"""The rules about the name of the parameter, those that need the usual name, and those about other rules."""


def renamed(text: str) -> str | None:
    """The program with another name for ctx; None if it cannot be read, or does not mention it."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return None
    places = [each.start for each in tokens if each.type == tokenize.NAME and each.string == "ctx"]
    lines = text.splitlines(keepends=True)
    for line, column in reversed(places):
        lines[line - 1] = f"{lines[line - 1][:column]}{NAME}{lines[line - 1][column + len('ctx') :]}"
    return "".join(lines) if places else None


def with_name(text: str) -> str:
    """The message about the original program, as expected for the renamed one."""
    return re.sub(r"`[^`]*`", lambda found: re.sub(r"\bctx\b", NAME, found[0]), text)


def told(diagnostics: Iterable[Diagnostic], name: str) -> Iterator[tuple[object, ...]]:
    """The messages, notes and fixes of findings, with their lines; those about ctx with another ``name`` for it."""
    for each in diagnostics:
        if each.code in ABOUT_THE_NAME:
            continue
        texts = [each.message, *(note.message for note in each.related)]
        if each.fix is not None:
            texts.append(each.fix.message)
            yield each.code, *(re.sub(r"(?<![-\w])ctx\b", name, edit.content) for edit in each.fix.edits)
        yield each.span.start.line, each.code, *(with_name(text) if name == NAME else text for text in texts)
        yield each.code, *(note.span.start.line for note in each.related)


@pytest.mark.parametrize(
    "fixture", [each for each in rule_fixtures() if each.code not in ABOUT_THE_NAME], ids=lambda each: each.code
)
def test_messages_use_the_name_of_the_parameter(fixture: Fixture) -> None:
    for case in fixture.cases:
        other = renamed(case.marked.text) if case.suffix == ".py" else None
        if other is None or "register_autograd" in other:  # torch passes ctx by keyword
            continue
        found = findings_in(case)
        if all(each.code != "CTX102" for each in found):
            assert list(told(lint(other, case.path, every_rule(case.options)), "ctx")) == list(told(found, NAME)), (
                case.place
            )
