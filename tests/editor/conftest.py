"""Servers that are stopped after the test that started them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.editor.client import Client

if TYPE_CHECKING:
    from collections.abc import Iterator

Start = Callable[..., Client]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a server; takes what Client.initialize takes."""
    clients: list[Client] = []

    def begin(**options: object) -> Client:
        client = Client()
        clients.append(client)
        return client.initialize(**options)  # type: ignore[arg-type]

    yield begin
    for client in clients:
        client.close()


@pytest.fixture(scope="session")
def client() -> Iterator[Client]:
    """A server that tests share: without folders, in utf-16, with findings pushed."""
    shared = Client()
    yield shared.initialize()
    shared.close()


@pytest.fixture(scope="session")
def pulling() -> Iterator[Client]:
    """A server that tests share, whose client asks for findings."""
    shared = Client()
    yield shared.initialize(capabilities={"textDocument": {"diagnostic": {}}})
    shared.close()
