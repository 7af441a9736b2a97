"""CTX502's fix: gradients of any layout, in all layouts that backward may have."""

from __future__ import annotations

import re

import pytest

from tests.fixes.fixing import assert_fixed, fixed_by

_CLASS = """import torch
from elsewhere import k, n


class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads({materialize})
        return (x * 2).reshape(2, 2, 2)

    @staticmethod
    def backward(ctx, g, h=None):
{body}
"""


def _class(body: str, *, materialize: bool = False) -> str:
    text = _CLASS.format(body=body, materialize="False")
    text = text.replace("    ", "\t") if "\t" in body else text
    return text if materialize else re.sub(r".*set_materialize_grads.*\n", "", text)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("        return g.view(-1)", "        return g.reshape(-1)"),
        ("        return g . view (2, n)", "        return g . reshape (2, n)"),
        (
            "        return (g\n                .view(-1))  # flat",
            "        return (g\n                .reshape(-1))  # flat",
        ),
        ("        return g.view(g.numel())", "        return g.reshape(g.numel())"),
        ("        return g.view((2, -1))", "        return g.reshape((2, -1))"),
        ("        return g.view(-1, *g.shape[2:])", "        return g.reshape(-1, *g.shape[2:])"),
        (
            "        return (  # a\n            g  # b\n            # c\n            .view(2, n)\n        )",
            "        return (  # a\n            g  # b\n            # c\n            .reshape(2, n)\n        )",
        ),
        (
            "        rows = g.view(2, n)\n        assert rows.stride() == (n, 1)\n        return rows",
            "        rows = g.contiguous().view(2, n)\n        assert rows.stride() == (n, 1)\n        return rows",
        ),
        (
            "        def flat():\n            return g.view(-1)\n        return flat() + 1 if g.view(2, n) else 0",
            "        def flat():\n            return g.reshape(-1)\n        return flat() + 1 if g.reshape(2, n) else 0",
        ),
    ],
)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("materialize", [True, False])
def test_view(before: str, after: str, ending: str, materialize: bool) -> None:
    text, expected = (_class(body, materialize=materialize).replace("\n", ending) for body in (before, after))
    assert_fixed("CTX502", text, expected)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "        k(g.data_ptr())\n        return g",
            "        g = g.contiguous()\n        k(g.data_ptr())\n        return g",
        ),
        (
            "\t\tif h:  # why\n\t\t\tk(g.data_ptr(), g.view(-1))\n\t\treturn g.data_ptr()",
            "\t\tg = g.contiguous()\n\t\tif h:  # why\n\t\t\tk(g.data_ptr(), g.view(-1))\n\t\treturn g.data_ptr()",
        ),
        (
            "        g.view(-1)[0] = 0\n        return g",
            "        g = g.contiguous()\n        g.view(-1)[0] = 0\n        return g",
        ),
        (
            "        parts = g.view(-1).chunk(2)\n        parts[0].mul_(2)\n        return g",
            "        g = g.contiguous()\n        parts = g.view(-1).chunk(2)\n        parts[0].mul_(2)\n        return g",
        ),
    ],
)
def test_pointers_and_written_views(before: str, after: str) -> None:
    assert fixed_by("CTX502", _class(before)) == _class(before)
    assert_fixed("CTX502", _class(before), _class(after), unsafe=True)
    maybe_none = _class(before, materialize=True)
    assert fixed_by("CTX502", maybe_none, unsafe=True) == maybe_none


def test_on_one_line() -> None:
    before = _class("        pass").replace(":\n        pass", ": k(g.data_ptr()); return g")
    after = before.replace("k(g", "g = g.contiguous(); k(g")
    assert_fixed("CTX502", before, after, unsafe=True)


def test_a_name_that_means_something_else_inside() -> None:
    text = _class("        k(g.data_ptr(), lambda g: g + 1)\n        return g")
    assert fixed_by("CTX502", text, unsafe=True) == text
