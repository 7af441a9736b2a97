"""Which class an apply call refers to, and what is known about its place."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.model.models import read

FUNCTION = """
import torch, pytest

class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2
"""


def calls(code: str) -> list[str]:
    """How the calls of ``Fn`` in ``code`` are made, each with its line in ``code``."""
    file = read(FUNCTION + dedent(code))
    above = FUNCTION.count("\n")
    return [f"{call.span.start.line - above}: {call.how}" for call in file.calls]


@pytest.mark.parametrize(
    ("code", "found"),
    [
        pytest.param("Fn.apply(1)", ["1: apply"], id="by its name"),
        pytest.param("Fn()(1)", ["1: construct-call"], id="an instance is called"),
        pytest.param("Fn().apply(1)", ["1: construct-apply"], id="apply of an instance"),
        pytest.param("Fn.forward(None, 1)", ["1: direct"], id="forward by hand"),
        pytest.param("f = Fn.apply; g = f; g(1)", ["1: apply"], id="an alias of an alias"),
        pytest.param("F = Fn; F.apply(1)", ["1: apply"], id="an alias of the class"),
        pytest.param("f = Fn.apply\ndef f(x): pass\nf(1)", [], id="an alias bound anew"),
        pytest.param("def g(Fn): Fn.apply(1)", [], id="hidden by a parameter"),
        pytest.param("if c: f = Fn.apply\nelse: f = len\nf(1)", [], id="an alias by condition"),
        pytest.param("try: f = Fn.apply\nexcept NameError: f = None\nf(1)", ["3: apply"], id="a stand-in"),
        pytest.param("Fn.apply(1)\nfrom extension import Fn\nFn.apply(2)", ["1: apply"], id="bound anew below"),
        pytest.param("def g(): Fn.apply(1)\nfrom extension import Fn", [], id="called before or after"),
        pytest.param("with given() as Fn:\n    Fn.apply(1)", [], id="bound anew by with"),
        pytest.param("for Fn in given():\n    Fn.apply(1)", [], id="bound anew by a loop"),
        pytest.param("f = Fn; f.g = Fn.apply; h = f; h(1); f.apply(2)", ["1: apply", "1: construct"], id="aliases"),
        pytest.param("Fn = Fn.apply\nFn(1)", ["2: apply"], id="the class gives its name to apply"),
    ],
)
def test_calls(code: str, found: list[str]) -> None:
    assert sorted(calls(code)) == found


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param("Fn.apply(1)", False, id="plain"),
        pytest.param("with pytest.raises(TypeError): Fn.apply(1)", True, id="with"),
        pytest.param("pytest.raises(TypeError, lambda: Fn.apply(1))", True, id="lambda"),
        pytest.param("with torch.no_grad(): Fn.apply(1)", False, id="another with"),
        pytest.param("with pytest.raises(TypeError):\n    def f(): Fn.apply(1)", False, id="only defined there"),
    ],
)
def test_expected_errors(code: str, expected: bool) -> None:
    (call,) = read(FUNCTION + code).calls
    assert call.expects_error is expected
