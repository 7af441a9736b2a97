"""The server: a session with all its features, on standard input and output."""

from __future__ import annotations

from ctxlint.editor import actions, diagnostics, hover, inlay, notebooks, synchronisation
from ctxlint.editor import goto as navigation
from ctxlint.editor.session import Session
from ctxlint.editor.stdio import serve

FEATURES = (synchronisation, notebooks, diagnostics, actions, hover, inlay, navigation)


def create() -> Session:
    """A session before the first message."""
    session = Session()
    for feature in FEATURES:
        feature.register(session)
    return session


def run() -> int:
    """Serve one client on standard input and output; returns the exit code."""
    return serve(create())
