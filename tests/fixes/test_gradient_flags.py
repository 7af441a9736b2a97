"""CTX209's fix: blocks that test the wrong flag are split, unless that would be a guess."""

from __future__ import annotations

import pytest

from tests.fixes.fixing import assert_fixed, fixed_by

CODE = "CTX209"


def fn(body: str, returned: str = "dx, dy, dz") -> str:
    """A Function with these lines in backward."""
    lines = "".join(f"        {line}\n" if line else "\n" for line in body.strip("\n").split("\n"))
    return f"""import torch


class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y, z):
        ctx.save_for_backward(x, y)
        return x * y + z

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        dx = dy = dz = None
{lines}        return {returned}
"""


FIRST = "if ctx.needs_input_grad[0]:\n    dx = grad * y\n"
CASES = {
    "the number": (
        FIRST + "if ctx.needs_input_grad[0]:\n    dy = grad * x",
        FIRST + "if ctx.needs_input_grad[1]:\n    dy = grad * x",
    ),
    "another name for the flags": (
        "needs = ctx.needs_input_grad\nif needs[0]: dy = grad * x",
        "needs = ctx.needs_input_grad\nif needs[1]: dy = grad * x",
    ),
    "both": (
        "if ctx.needs_input_grad[1]: dx = grad * y\nif (ctx.needs_input_grad[0]): dy = grad * x",
        "if ctx.needs_input_grad[0]: dx = grad * y\nif (ctx.needs_input_grad[1]): dy = grad * x",
    ),
    "first of a block": (
        "if ctx.needs_input_grad[0]:  # x\n    dy = grad * x\n    dx = grad * y",
        "if ctx.needs_input_grad[1]:  # x\n    dy = grad * x\nif ctx.needs_input_grad[0]:\n    dx = grad * y",
    ),
    "last of a block, in several steps": (
        FIRST
        + "    # for y\n    other = grad * x\n    if x.dim():\n        other = other * 1\n    dy = other\n    dy = dy * 1",
        FIRST
        + "if ctx.needs_input_grad[1]:\n"
        + "    # for y\n    other = grad * x\n    if x.dim():\n        other = other * 1\n    dy = other\n    dy = dy * 1",
    ),
    "two in one block": (
        FIRST + "    dy = grad * x\n    dz = grad * 1",
        FIRST + "if ctx.needs_input_grad[1]:\n    dy = grad * x\nif ctx.needs_input_grad[2]:\n    dz = grad * 1",
    ),
    "an else for None": (
        FIRST + "if ctx.needs_input_grad[0]:\n    dy = grad * x\nelse:\n    dy = None",
        FIRST + "if ctx.needs_input_grad[1]:\n    dy = grad * x\nelse:\n    dy = None",
    ),
    "inside another block": (
        "with X:\n    if ctx.needs_input_grad[0]:\n        dx = grad * y\n        dy = grad",
        "with X:\n    if ctx.needs_input_grad[0]:\n        dx = grad * y\n    if ctx.needs_input_grad[1]:\n        dy = grad",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("indent", ["    ", "\t"])
def test_fixed(case: tuple[str, str], end: str, indent: str) -> None:
    text, expected = (fn(each).replace("    ", indent).replace("\n", end) for each in case)
    assert_fixed(CODE, text, expected, unsafe=True)
    assert fixed_by(CODE, text) == text


def test_one_name_says_nothing_but_the_other_input_has_its_own() -> None:
    text = fn("other = None\nif ctx.needs_input_grad[0]:\n    dx = grad * y\n    other = grad * x", "dx, other, None")
    fixed = text.replace("            other", "        if ctx.needs_input_grad[1]:\n            other")
    assert_fixed(CODE, text, fixed, unsafe=True)


@pytest.mark.parametrize(
    "text",
    [
        fn("if ctx.needs_input_grad[0]: a = grad * y\nif ctx.needs_input_grad[1]: b = grad * x", "b, a, None"),
        fn("if ctx.needs_input_grad[0]: dx = grad * y\nif ctx.needs_input_grad[1]: dy = grad * x", "dy, dx, None"),
        fn(FIRST + "    dy = dx * x"),
        fn(FIRST + "    both = grad * 1\n    dy = both * x\n    dx = both * y"),
        fn(FIRST + "    dx, dy = grad * y, grad * x"),
        fn(FIRST + "    dy = grad * x; dx = dx * 1"),
        fn("if ctx.needs_input_grad[0]: dx = grad * y; dy = grad * x"),
        fn(FIRST + "    dy = grad * x\nelse:\n    dx = dy = None"),
        fn(FIRST + "    dy = grad * x\nelif x.dim():\n    dz = grad"),
        fn("if x.dim():\n    dx = grad * y\nelif ctx.needs_input_grad[0]:\n    dy = grad * x"),
        fn(FIRST + "    dy = grad * x\nif dy is not None:\n    print(dy)"),
        fn(FIRST + "    scale = grad * 1\nif ctx.needs_input_grad[0]:\n    dy = scale * x"),
        fn(FIRST + "    dy = grad * x\n    dx = dx * 1\n    dy = dy * 1"),
    ],
)
def test_no_fix(text: str) -> None:
    """The position may be wrong, or the parts of the block depend on each other."""
    assert fixed_by(CODE, text, unsafe=True) == text
