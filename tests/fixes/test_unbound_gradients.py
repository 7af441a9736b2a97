"""Binding gradients to None first: in odd layouts, and where None would be another value."""

from __future__ import annotations

import pytest

from tests.fixes.fixing import assert_fixed, fixed_by

HEAD = """import torch


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
"""
TESTS = """        if ctx.needs_input_grad[0]:
            a = grad * y
        if ctx.needs_input_grad[1]:
            b = grad * x
"""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("indent", ["    ", "\t"])
def test_line_endings_and_tabs_stay(end: str, indent: str) -> None:
    text = (HEAD + TESTS + "        return a, b\n").replace("    ", indent).replace("\n", end)
    first = f"{indent * 2}if ctx.needs_input_grad[0]"
    assert_fixed("CTX210", text, text.replace(first, f"{indent * 2}a = b = None{end}{first}"))


def test_the_test_comes_first_after_a_docstring() -> None:
    text = HEAD.replace("        x, y = ctx.saved_tensors\n", '        """Both."""\n\n')
    tests = TESTS.replace("grad * y", "grad").replace("grad * x", "grad") + "        return (a, b)\n"
    assert_fixed("CTX210", text + tests, f"{text}        a = b = None\n{tests}")


def test_returns_in_several_branches() -> None:
    text = HEAD + TESTS + "        if x.dim() > 2:\n            return a, b\n        return a, b, None\n"
    first = "        if ctx.needs_input_grad[0]"
    assert_fixed("CTX210", text, text.replace(first, f"        a = b = None\n{first}"))


def test_one_binding_with_a_condition_of_its_own_and_one_without() -> None:
    tests = """        if ctx.needs_input_grad[0]:
            if y.dim() > 1:
                a = grad * y
            else:
                a = grad * y.clone()
        if ctx.needs_input_grad[1]:
            b = grad * x
        else:
            b = None
        return a, b
"""
    expected = HEAD + "        a = None\n" + tests
    assert_fixed("CTX210", HEAD + tests, expected, unsafe=True)


def test_an_early_return_on_the_way_to_both() -> None:
    tests = "        if x.dim() == 0:\n            return None, None\n" + TESTS + "        return a, b\n"
    first = "        if ctx.needs_input_grad[0]"
    assert_fixed("CTX210", HEAD + tests, HEAD + tests.replace(first, f"        a = b = None\n{first}"))


@pytest.mark.parametrize(
    "rest",
    [
        TESTS + "        return a * 2, b * 2\n",
        TESTS + "        return b, a\n",
        TESTS + "        c = a\n        d = b\n        return c, d\n",
        TESTS + "        return (*[a], b)\n",
        TESTS + "        def result():\n            return a, b\n        return result()\n",
        "        for step in range(2):\n" + TESTS.replace("        ", "            ") + "        return a, b\n",
        "        for step in range(2):\n" + TESTS.replace("        ", "            ") + "            return a, b\n",
        TESTS + "        if x is y:\n            del a, b\n        return a, b\n",
        TESTS + "        global a, b\n        return a, b\n",
    ],
)
def test_no_fix(rest: str) -> None:
    """More than a gradient, another input's, in a loop, in a scope of its own, deleted."""
    text = HEAD + rest
    assert fixed_by("CTX210", text, unsafe=True) == text


@pytest.mark.parametrize(
    "computed",
    [
        "            try:\n                a = grad * y\n            except RuntimeError:\n                pass\n",
        "            with suppress(RuntimeError):\n                a = grad * y\n",
        "            if y.dim():\n                a = grad * y\n",
        "            match y.dim():\n                case 2:\n                    a = grad * y\n",
    ],
)
def test_a_gradient_that_may_stay_none_though_it_is_needed(computed: str) -> None:
    tests = "        b = None\n        if ctx.needs_input_grad[0]:\n" + computed
    tests += "        if ctx.needs_input_grad[1]:\n            b = grad * x\n        return a, b\n"
    text = HEAD.replace("import torch\n", "from contextlib import suppress\n\nimport torch\n", 1) + tests
    assert fixed_by("CTX210", text) == text
    assert fixed_by("CTX210", text, unsafe=True) in (
        text,
        text.replace("        if ctx", "        a = None\n        if ctx", 1),
    )
