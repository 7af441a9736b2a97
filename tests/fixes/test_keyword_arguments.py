"""CTX702's fix: arguments of `apply` by position."""

from __future__ import annotations

import pytest

from tests.fixes.fixing import assert_fixed, fixed_by

_CLASS = """import torch


class F(torch.autograd.Function):
    @staticmethod
    def forward({signature}):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2, None, None


def call(x, n, rest, options):
    return {call}
"""


def _class(call: str, signature: str = "ctx, x, n=None, flag=-1.5") -> str:
    return _CLASS.format(call=call, signature=signature)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("F.apply(x, n=n)", "F.apply(x, n)"),
        ("'\u00fc', F.apply(x, n = 1, flag =(yes))", "'\u00fc', F.apply(x, 1, (yes))"),
        ("F.apply(x=x)", "F.apply(x)"),
        ("F.apply(x, flag=2)", "F.apply(x, None, 2)"),
        ("F.apply(flag=2, x=x)", "F.apply(x, None, 2)"),
        ("F.apply(flag=-2, n=n, x=x.y.z)", "F.apply(x.y.z, n, -2)"),
        ("F.apply(x, n=lambda x: x, flag=(i for i in x),)", "F.apply(x, lambda x: x, (i for i in x),)"),
        (
            "F.apply(\n        x,  # x\n        n=  # n\n            f(),\n    )",
            "F.apply(\n        x,  # x\n        # n\n            f(),\n    )",
        ),
        ("F.apply(F.apply(x, n=1), n=F.apply(x, n=2))", "F.apply(F.apply(x, 1), F.apply(x, 2))"),
        ("F().apply(x, n=1)", "F().apply(x, 1)"),
    ],
)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_names_go(before: str, after: str, ending: str) -> None:
    assert_fixed("CTX702", _class(before).replace("\n", ending), _class(after).replace("\n", ending))


@pytest.mark.parametrize(
    ("call", "signature"),
    [
        ("F.apply(*rest, n=n)", "ctx, x, n=None"),
        ("F.apply(x, n=n, **options)", "ctx, x, n=None"),
        ("F.apply(x, x=x)", "ctx, x, n=None"),
        ("F.apply(x, other=x)", "ctx, x, n=None"),
        ("F.apply(x, n=x)", "ctx, x, *, n=None"),
        ("F.apply(x, n=x)", "ctx, x, **n"),
        ("F.apply(x=x, n=x)", "ctx, x, /, n=None"),
        ("F.apply(flag=f(), n=g(), x=x)", "ctx, x, n=None, flag=-1.5"),
        ("F.apply(x, flag=(1), n=n)", "ctx, x, n=None, flag=-1.5"),
        ("F.apply(x, flag=1, n=n  # n\n        )", "ctx, x, n=None, flag=-1.5"),
        ("F.apply(x, flag=1, # flag\n        n=n)", "ctx, x, n=None, flag=-1.5"),
        ("F.apply(x, flag=2)", "ctx, x, n=N, flag=-1.5"),
        ("F.apply(x, flag=2)", "ctx, x, n, flag=-1.5"),
        ("F.apply(x, n\n        =n)", "ctx, x, n=None"),
        ("F.apply(x, \ufb01=n)", "ctx, x, fi=None"),
    ],
)
def test_what_is_not_plain_stays(call: str, signature: str) -> None:
    assert fixed_by("CTX702", _class(call, signature), unsafe=True) == _class(call, signature)


def test_a_decorator_of_unknown_make_may_change_the_signature() -> None:
    text = _class("F.apply(x, n=n)").replace("    def forward", "    @changed\n    def forward")
    assert fixed_by("CTX702", text, unsafe=True) == text
