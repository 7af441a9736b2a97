"""The worker collects garbage between keystrokes, a little at a time."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from functools import partial
from typing import TYPE_CHECKING

import pytest

from ctxlint.editor.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Node:
    """Refers to itself: only the collector frees it."""

    def __init__(self) -> None:
        self.own = self


class Collections:
    """How many objects each collection had to traverse, by generation."""

    def __init__(self) -> None:
        self.sizes: list[tuple[int, int]] = []

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            young = gc.get_count()[0]
            self.sizes.append((info["generation"], young))


@pytest.fixture
def collections() -> Iterator[Collections]:
    enabled, found = gc.isenabled(), Collections()
    gc.collect()
    gc.callbacks.append(found)
    yield found
    gc.callbacks.remove(found)
    gc.unfreeze()
    if enabled:
        gc.enable()


def _is_gone(node: weakref.ref[Node]) -> bool:
    return node() is None


def wait_for(holds: Callable[[], object]) -> bool:
    end = time.monotonic() + 10
    while not holds() and time.monotonic() < end:
        time.sleep(0.01)
    return bool(holds())


def test_what_a_job_leaves_is_collected_in_the_next_pause(collections: Collections) -> None:
    worker = Worker()
    left = worker.submit(lambda: weakref.ref(Node())).result()
    assert wait_for(lambda: left() is None)
    assert [generation for generation, _ in collections.sizes] == [0]


def test_jobs_without_a_pause_are_followed_by_small_collections(collections: Collections) -> None:
    worker, going = Worker(), threading.Event()
    worker.submit(going.wait)
    done = [worker.submit(lambda: [Node() for _ in range(100)]) for _ in range(25)]
    going.set()
    for each in done:
        each.result()
    assert len(collections.sizes) >= 2
    assert all(young < 5_000 for _, young in collections.sizes)


def test_a_document_that_was_opened_is_not_traversed_while_its_reader_types(collections: Collections) -> None:
    worker, kept = Worker(), list[object]()
    worker.submit(lambda: kept.append([[] for _ in range(200_000)])).result()
    time.sleep(0.1)
    worker.submit(lambda: None).result()
    time.sleep(0.1)
    assert all(young < 50_000 for _, young in collections.sizes)


def test_everything_is_collected_in_a_longer_pause(collections: Collections) -> None:
    for _attempt in range(5):
        collections.sizes.clear()
        worker = Worker()
        node = worker.submit(Node).result()
        gone = weakref.ref(node)
        time.sleep(0.1)
        is_too_late = 2 in [generation for generation, _ in collections.sizes]
        del node  # it was alive when the young objects were collected
        # Unless the machine stood still until the longer pause, or the worker of an earlier test has frozen the node.
        if not is_too_late and wait_for(partial(_is_gone, gone)):
            break
    else:
        pytest.fail("never collected")
    assert 2 in [generation for generation, _ in collections.sizes]
    assert wait_for(gc.get_freeze_count)
