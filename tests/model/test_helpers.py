"""Findings that depend on what a helper returns name it, and point into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import ctxlint
from ctxlint.config.settings import Selection, Settings
from tests.linting import lint

if TYPE_CHECKING:
    from pathlib import Path

_CLASS = """\
import torch


{helper}


class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, n: int):
        {forward}

    @staticmethod
    def backward(ctx, g):
        {backward}
"""
_EVERY = Settings()._replace(command_line=Selection(select=("ALL",)))


def _notes(code: str, helper: str, forward: str = "return x * n", backward: str = "return g, None") -> list[str]:
    """The message of the one finding of a rule, and its notes with their lines."""
    text = _CLASS.format(helper=helper, forward=forward, backward=backward)
    (found,) = [each for each in lint(text, settings=_EVERY) if each.code == code]
    assert found.message.count("`helper`") == 1
    return [f"{each.span.start.line}:{each.span.start.column} {each.message}" for each in found.related]


ONE = "def helper(a):\n    return a * 2"
TWO = "def helper(a):\n    if a is None:\n        return a.exp()\n    return a * 2"
PAIR = "def helper(a):\n    return a * 2, a * 3"
LIST = "def helper(a):\n    return [a * 2, a * 3]"
ENDS = "def helper(a):\n    if a.numel() > 3:\n        return a, None"


@pytest.mark.parametrize(
    ("code", "helper", "backward", "note"),
    [
        ("CTX203", ONE, "return helper(g)", "5:5 `helper` returns here"),
        ("CTX203", TWO, "grad = helper(g)\n        return grad", "4:5 `helper` is here"),
        ("CTX204", PAIR, "return helper(g)", "5:5 `helper` returns here"),
        ("CTX204", ONE, "return g, helper(g)", "5:5 `helper` returns here"),
        ("CTX202", "def helper(a):\n    return a, None, a * 2", "return helper(g)", "5:5 `helper` returns here"),
        ("CTX206", "def helper(a):\n    return a, None, None", "return helper(g)", "5:5 `helper` returns here"),
        ("CTX213", LIST, "return helper(g)", "5:5 `helper` returns here"),
        ("CTX201", ENDS, "return helper(g)", "4:5 `helper` ends without `return` when `a.numel() > 3` is false"),
        (
            "CTX201",
            ENDS,
            "r = helper(g)\n        return r",
            "4:5 `helper` ends without `return` when `a.numel() > 3` is false",
        ),
    ],
)
def test_of_backward(code: str, helper: str, backward: str, note: str) -> None:
    assert _notes(code, helper, backward=backward) == [note]


@pytest.mark.parametrize(
    ("code", "helper", "forward", "note"),
    [
        ("CTX205", PAIR, "return helper(x)", "5:5 `helper` returns here"),
        ("CTX215", LIST, "return helper(x)", "5:5 `helper` returns here"),
        ("CTX303", LIST, "ctx.save_for_backward(helper(x))\n        return x * n", "5:5 `helper` returns here"),
    ],
)
def test_of_forward(code: str, helper: str, forward: str, note: str) -> None:
    assert _notes(code, helper, forward=forward) == [note]


def test_what_does_not_rest_on_a_helper_has_no_note() -> None:
    text = _CLASS.format(helper=ONE, forward="return x * n", backward="return helper(g), None, helper(g)")
    (found,) = [each for each in lint(text) if each.code == "CTX202"]
    assert "helper" not in found.message
    assert not found.related


def test_a_helper_has_the_name_that_the_call_uses(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / f"{name}.py").write_text("def call(a):\n    return [a * 2, a * 3]\n")
    text = _CLASS.format(
        helper="from first import call as split_first\nfrom second import call as split_second",
        forward="if n:\n            return split_first(x)\n        return split_second(x)",
        backward="return g, None",
    )
    (tmp_path / "main.py").write_text(text)
    messages = [each.message for each in ctxlint.lint_paths(tmp_path) if each.code == "CTX215"]
    for name in ("split_first", "split_second"):
        assert any(f"as returned by `{name}`" in each for each in messages)


def test_a_lambda_is_called_so() -> None:
    text = _CLASS.format(
        helper="def helper(f, a):\n    return f(a)",
        forward="return x * n",
        backward="return helper(lambda t: t.view(-1), g), None",
    )
    (found,) = [each for each in lint(text, settings=_EVERY) if each.code == "CTX502"]
    assert [each.message for each in found.related] == [
        "`helper` passes `a` to `lambda` here",
        "`lambda` calls `t.view` here",
    ]
