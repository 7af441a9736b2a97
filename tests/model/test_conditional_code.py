"""When code of a method runs: always, or only if a condition does not skip it."""

from __future__ import annotations

from textwrap import indent

import libcst as cst
import pytest

from ctxlint.model.analyses.conditional_code import Runs, runs
from tests.model.models import forward_of


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("here\n", Runs.ALWAYS),
        ("if here: a\n", Runs.ALWAYS),
        ("x = here or a\n", Runs.ALWAYS),
        ("for i in a: here\n", Runs.ALWAYS),
        ("with a: here\n", Runs.ALWAYS),
        ("if a: b\nhere\n", Runs.ALWAYS),
        ("f = lambda y: a\nhere\n", Runs.ALWAYS),
        ("def f():\n    return a\nhere\n", Runs.ALWAYS),
        ("if a: here\n", Runs.STATEMENT),
        ("if a: b\nelse: here\n", Runs.STATEMENT),
        ("if a: b\nelif here: a\n", Runs.STATEMENT),
        ("if a: return x\nhere\n", Runs.STATEMENT),
        ("try: a\nexcept ValueError: here\n", Runs.STATEMENT),
        ("f = lambda y: here\n", Runs.STATEMENT),
        ("def f():\n    return here\n", Runs.STATEMENT),
        ("x = a and here\n", Runs.OPERAND),
        ("x = a if b else here\n", Runs.OPERAND),
        ("x = a < b < here\n", Runs.OPERAND),
    ],
)
def test_when_a_name_is_read(body: str, expected: Runs) -> None:
    forward = forward_of(f"x, a, b:\n{indent(body, '    ')}\n    return x")
    (node,) = (each for each in forward.nodes_of(cst.Name) if each.value == "here")
    assert runs(forward, node) is expected
