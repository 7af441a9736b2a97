"""Calls across the edge of a piece of Python's stack do not ask the system for memory each time."""

from __future__ import annotations

import sys

import pytest

from ctxlint.call_stack import with_room

resource = pytest.importorskip("resource")


def calls_at(depth: int) -> None:
    """Many calls of a function at some depth, and at all above it."""
    for _ in range(500):
        abs_of(-1)
    if depth:
        calls_at(depth - 1)


def abs_of(number: int) -> int:
    return abs(number)


def faults_of(work: object) -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    work(400)  # type: ignore[operator]
    found: int = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    return found


def test_the_result_and_the_name_are_those_of_the_function() -> None:
    assert with_room(abs_of)(-3) == 3
    assert with_room(abs_of).__name__ == "abs_of"


@pytest.mark.skipif(sys.version_info < (3, 11) or sys.platform != "linux", reason="there are no pieces")
def test_calls_ask_for_no_memory() -> None:
    assert faults_of(with_room(calls_at)) < 100
