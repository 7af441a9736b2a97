"""CTX703's fix: `apply` of the class, in all layouts that a call may have."""

from __future__ import annotations

import pytest

from tests.fixes.fixing import assert_fixed, fixed_by

_CLASS = """import torch


class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


def call(x):
    return {call}
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("F().apply(x)", "F.apply(x)"),
        ("(F ( )\n            .apply(x))", "(F\n            .apply(x))"),
        ("'\u00fc', F().apply(F().apply(x))", "'\u00fc', F.apply(F.apply(x))"),
    ],
)
def test_an_instance_that_only_reaches_apply(before: str, after: str) -> None:
    assert_fixed("CTX703", _CLASS.format(call=before), _CLASS.format(call=after))


@pytest.mark.parametrize(
    ("before", "after"),
    [("F()(x)", "F.apply(x)"), ("F(x)", "F.apply(x)"), ("(F)(x)", "(F.apply)(x)"), ("F(*x)", "F.apply(*x)")],
)
def test_other_calls_change_only_where_that_is_asked_for(before: str, after: str) -> None:
    assert fixed_by("CTX703", _CLASS.format(call=before)) == _CLASS.format(call=before)
    assert_fixed("CTX703", _CLASS.format(call=before), _CLASS.format(call=after), unsafe=True)


@pytest.mark.parametrize("call", ["F(x)(x)", "F(x=x)", "F()"])
def test_what_would_lose_arguments_stays(call: str) -> None:
    assert fixed_by("CTX703", _CLASS.format(call=call), unsafe=True) == _CLASS.format(call=call)


def test_what_an_init_is_given_is_no_input() -> None:
    text = _CLASS.replace(
        "    @staticmethod\n", "    def __init__(self, factor):\n        pass\n\n    @staticmethod\n", 1
    )
    assert fixed_by("CTX703", text.format(call="F(2)"), unsafe=True) == text.format(call="F(2)")


_STORED = _CLASS.replace("forward(ctx, x)", "forward(ctx, x{more})").partition("def call")[0]


@pytest.mark.parametrize(
    ("more", "call"),
    [
        ("", "scale = F(0.5)\n    return scale(x)"),
        ("", "scale: F = F(0.5)\n    return scale.apply(x)"),
        ("", "self.scale = F(0.5)\n    return self.scale(x)"),
        (", factor", "return F(0.5)"),
        ("", "return F(x, 0.5)"),
    ],
)
def test_what_the_constructor_is_given_does_not_become_an_input(more: str, call: str) -> None:
    text = _STORED.format(more=more) + f"def call(self, x):\n    {call}\n"
    assert fixed_by("CTX703", text, unsafe=True) == text


def test_a_result_that_is_only_bound_is_fixed() -> None:
    text = _STORED.format(more=", factor=1") + "def call(x):\n    y = {}(x, 2)\n    return y * 2\n"
    assert_fixed("CTX703", text.format("F"), text.format("F.apply"), unsafe=True)
