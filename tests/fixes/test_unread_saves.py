"""Removing saved tensors that are never read: in odd layouts, several at once, and where that is not certain."""

from __future__ import annotations

import pytest

from tests.fixes.fixing import assert_fixed, fixed_by

CODE = "CTX312"


def fn(saving: str, taking: str, gradient: str = "grad * b") -> str:
    """A Function that saves in ``saving`` and unpacks in ``taking``; both are statements on any number of lines."""
    return f"""import torch


class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, c):
        d = a * b * c
        {saving}
        return d

    @staticmethod
    def backward(ctx, grad):
        {taking}
        return {gradient}, None, None
"""


BOTH = ("ctx.save_for_backward(a, b)", "a, b = ctx.saved_tensors")
LAYOUTS = [
    (*BOTH, "ctx.save_for_backward(b)", "(b,) = ctx.saved_tensors"),
    ("ctx.save_for_backward(b, a)", "b, a = ctx.saved_tensors", "ctx.save_for_backward(b)", "(b,) = ctx.saved_tensors"),
    (
        "ctx.save_for_backward(b, a,)",
        "[b, a] = ctx.saved_tensors",
        "ctx.save_for_backward(b,)",
        "[b] = ctx.saved_tensors",
    ),
    (
        "ctx.save_for_backward(a, b); d = d * 1",
        "(a, b,) = ctx.saved_tensors; grad = grad * 1",
        "ctx.save_for_backward(b); d = d * 1",
        "(b,) = ctx.saved_tensors; grad = grad * 1",
    ),
    (
        "ctx.save_for_backward(a, b, c)",
        "_, b, _ = ctx.saved_tensors",
        "ctx.save_for_backward(b)",
        "(b,) = ctx.saved_tensors",
    ),
    (
        "ctx.save_for_backward(\n            a,\n            b\n        )",
        "(\n            a,\n            b  # the second\n        ) = ctx.saved_tensors",
        "ctx.save_for_backward(\n            b\n        )",
        "(\n            b,  # the second\n        ) = ctx.saved_tensors",
    ),
    (
        "ctx.save_for_backward(\n            b,\n            a\n        )",
        "(\n            b,  # the second\n            a\n        ) = ctx.saved_tensors",
        "ctx.save_for_backward(\n            b,\n        )",
        "(\n            b,  # the second\n        ) = ctx.saved_tensors",
    ),
    (
        "ctx.save_for_backward(a, b,\n                              c)",
        "(a, b,\n         _) = ctx.saved_tensors",
        "ctx.save_for_backward(b)",
        "(b,) = ctx.saved_tensors",
    ),
    (
        "ctx.save_for_backward(b, a,\n                              c)",
        "(b, a,\n         c) = ctx.saved_tensors",
        "ctx.save_for_backward(b,\n                              c)",
        "(b,\n         c) = ctx.saved_tensors",
    ),
    (
        "ctx.save_for_backward(b,  # first\n                              a)  # second",
        "(b,  # first\n         a) = ctx.saved_tensors  # second",
        "ctx.save_for_backward(b,  # first\n                              )  # second",
        "(b,  # first\n         ) = ctx.saved_tensors  # second",
    ),
    ("if True: ctx.save_for_backward(a)", "(a,) = ctx.saved_tensors", "if True: pass", None),
]


@pytest.mark.parametrize(("saving", "taking", "saved", "taken"), LAYOUTS)
def test_layouts(saving: str, taking: str, saved: str, taken: str | None) -> None:
    gradient = "grad * b * c" if "c)" in saved else "grad" if taken is None else "grad * b"
    expected = fn(saved, taken or "gone", gradient).replace("        gone\n", "")
    assert_fixed(CODE, fn(saving, taking, gradient), expected, unsafe=True)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("indent", ["    ", "\t"])
def test_line_endings_and_tabs_stay(end: str, indent: str) -> None:
    saving = "ctx.save_for_backward(\n            a,\n            b,\n        )"
    text, expected = (
        each.replace("    ", indent).replace("\n", end)
        for each in (
            fn(saving, "a, b = ctx.saved_tensors"),
            fn(saving.replace("            a,\n", ""), "(b,) = ctx.saved_tensors"),
        )
    )
    assert_fixed(CODE, text, expected, unsafe=True)


def test_not_without_unsafe_fixes() -> None:
    assert fixed_by(CODE, fn(*BOTH)) == fn(*BOTH)


@pytest.mark.parametrize(
    ("saving", "taking"),
    [
        ("ctx.save_for_backward(a.mul_(2), b)", BOTH[1]),
        ("ctx.save_for_backward(e := a * 2, b)", BOTH[1]),
        (BOTH[0], "a, b = ctx.saved_tensors\n        del a"),
        (BOTH[0], "a, b = ctx.saved_tensors\n        a = None"),
        (BOTH[0], "a, b = both = ctx.saved_tensors"),
        (BOTH[0], "a, \\\n        b = ctx.saved_tensors"),
        (BOTH[0], "(a, b), c = ctx.saved_tensors, 1"),
        (BOTH[0], BOTH[1] + "\n        print(d.grad_fn)"),
    ],
)
def test_no_fix(saving: str, taking: str) -> None:
    """More than a tensor would be lost, the name has another use, the tuple is shared, or the node is inspected."""
    text = fn(saving, taking)
    assert fixed_by(CODE, text, unsafe=True) == text
