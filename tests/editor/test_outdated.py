"""Checks of texts that are outdated meanwhile end soon, and leave nothing half-done."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from lsprotocol import types as lsp

from ctxlint.editor import session as sessions
from ctxlint.editor.checking import Checker
from ctxlint.editor.documents import Document
from ctxlint.editor.language_server import create
from ctxlint.editor.workspace import Workspace
from tests.editor.client import SECONDS
from tests.editor.texts import HEAD, ONE, TWO, missing_none

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.editor.conftest import Start


class Ended(BaseException):
    """What ends a check."""


def ending_after(calls: int) -> Callable[[], None]:
    left = [calls]

    def go_on() -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Ended

    return go_on


@pytest.mark.parametrize("newer", [TWO, f"\n{TWO}", TWO.replace("* ctx.scale", "* ctx.scale * 2")])
def test_the_next_check_after_one_that_was_ended_finds_the_same(newer: str) -> None:
    def checker() -> Checker:
        return Checker(Workspace(print))

    known, expected = Document("untitled:a.py", TWO), checker().check(Document("untitled:a.py", newer))
    assert len(expected.diagnostics) == 2
    for calls in (*range(8), 20, 50, 100, 200):
        checks = checker()
        for document in (known, Document("untitled:a.py", newer)):
            with suppress(Ended):  # what is known already is not worked on
                checks.check(document, ending_after(calls))
        assert checks.check(Document("untitled:a.py", newer)).diagnostics == expected.diagnostics


def test_a_check_goes_on_until_its_text_is_outdated(monkeypatch: pytest.MonkeyPatch) -> None:
    session = create()
    item = lsp.TextDocumentItem("untitled:a.py", lsp.LanguageKind.Python, 1, ONE)
    newer = lsp.VersionedTextDocumentIdentifier(2, item.uri)
    go_on = session._while_current(session.documents.open(item))
    go_on()
    assert session.documents.change(newer, [lsp.TextDocumentContentChangeWholeDocument(TWO)]) is not None
    go_on()  # it has only begun
    monkeypatch.setattr(sessions, "_SECONDS_OF_A_CHECK", -1.0)
    with pytest.raises(sessions._Outdated):
        go_on()
    go_on = session._while_current(session.documents.open(item))
    go_on()
    session.documents.close(item.uri)
    with pytest.raises(sessions._Outdated):
        go_on()


def test_a_small_text_does_not_wait_for_the_large_one_that_it_replaces(start: Start, tmp_path: Path) -> None:
    client = start()
    large = HEAD + "".join(missing_none(f"Layer{number}").removeprefix(HEAD) for number in range(400))
    begun = time.monotonic()
    uri = client.open((tmp_path / "a.py").as_uri(), large)
    client.pushed(uri, version=1)
    whole = time.monotonic() - begun
    client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    other = client.open((tmp_path / "b.py").as_uri(), large.replace("Layer", "Other"))
    time.sleep(0.3)
    begun = time.monotonic()
    client.change(other, ONE, 2)
    assert len(client.pushed(other, version=2)) == 1
    assert time.monotonic() - begun < max(whole, SECONDS / 2)
