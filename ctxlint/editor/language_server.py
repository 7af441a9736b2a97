"""The server: a session with all its features, on standard input and output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.editor import actions, diagnostics, hover, inlay, notebooks, synchronisation
from ctxlint.editor import goto as navigation
from ctxlint.editor.session import Session
from ctxlint.editor.stdio import serve

if TYPE_CHECKING:
    from ctxlint.run.second_process import SecondProcess

FEATURES = (synchronisation, notebooks, diagnostics, actions, hover, inlay, navigation)


def create(second: SecondProcess | None = None) -> Session:
    """A session before the first message."""
    session = Session(second)
    for feature in FEATURES:
        feature.register(session)
    return session


def run(second: SecondProcess | None = None) -> int:
    """Serve one client on standard input and output; returns the exit code."""
    return serve(create(second))
