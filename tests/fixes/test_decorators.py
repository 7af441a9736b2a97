"""The fixes that put decorators on a method and move them, in all layouts that a class may have."""

from __future__ import annotations

import pytest

from tests.fixes.fixing import assert_fixed, fixed_by

_HEAD = "import torch\nfrom torch.autograd.function import once_differentiable\n\n\n"


def _class(body: str) -> str:
    return f"{_HEAD}class F(torch.autograd.Function):\n{body}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("    def forward(ctx, x): return x * 2\n", "    @staticmethod\n    def forward(ctx, x): return x * 2\n"),
        ("  def forward(ctx, x):\n    return x\n", "  @staticmethod\n  def forward(ctx, x):\n    return x\n"),
        ("\tdef forward(ctx, x):\n\t\treturn x\n", "\t@staticmethod\n\tdef forward(ctx, x):\n\t\treturn x\n"),
        (
            "    # doubles\n\n    # and more\n    def forward(ctx, x):\n        return x * 2\n",
            "    # doubles\n\n    # and more\n    @staticmethod\n    def forward(ctx, x):\n        return x * 2\n",
        ),
        (
            "    # a\n    @torch.no_grad()  # b\n    # c\n    def forward(ctx, x): return x\n",
            "    # a\n    @staticmethod\n    @torch.no_grad()  # b\n    # c\n    def forward(ctx, x): return x\n",
        ),
        (
            "    def forward(self, ctx, x):\n        return x\n",
            "    @staticmethod\n    def forward(ctx, x):\n        return x\n",
        ),
        (
            "    def forward(self, ctx): return ctx.x\n",
            "    @staticmethod\n    def forward(ctx): return ctx.x\n",
        ),
        (
            "    def forward(\n        self,\n        ctx,\n        x,\n    ):\n        return x\n",
            "    @staticmethod\n    def forward(\n        ctx,\n        x,\n    ):\n        return x\n",
        ),
        (
            "    def forward(self,  # nobody\n                ctx, x):\n        return x\n",
            "    @staticmethod\n    def forward(  # nobody\n                ctx, x):\n        return x\n",
        ),
        (
            "    def forward(self, /, ctx, x):\n        return self\n",
            "    def forward(self, /, ctx, x):\n        return self\n",
        ),
    ],
)
def test_staticmethod_is_added(before: str, after: str) -> None:
    fixed = fixed_by("CTX101", _class(before))
    assert fixed == _class(after)


@pytest.mark.parametrize("ending", ["\r\n", "\n"])
def test_two_methods_at_once_whatever_the_line_ending(ending: str) -> None:
    body = "    def forward(ctx, x):\n        return x * 2\n    def backward(ctx, g):\n        return g * 2"
    text = _class(body).replace("\n", ending)
    expected = text.replace("    def ", f"    @staticmethod{ending}    def ")
    assert_fixed("CTX101", text, expected)


def test_a_receiver_that_is_used_stays() -> None:
    text = _class("    def forward(self, ctx, x):\n        return self.scale(x)\n")
    assert fixed_by("CTX101", text, unsafe=True) == text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("    @once_differentiable\n    @staticmethod\n", "    @staticmethod\n    @once_differentiable\n"),
        (
            "    # of the method\n    @once_differentiable  # a\n    # b\n    @staticmethod  # c\n",
            "    # of the method\n    # b\n    @staticmethod  # c\n    @once_differentiable  # a\n",
        ),
        (
            "    @torch.no_grad(\n    )\n\n    # b\n    @once_differentiable\n    @staticmethod\n    # d\n",
            "    @staticmethod\n    @torch.no_grad(\n    )\n\n    # b\n    @once_differentiable\n    # d\n",
        ),
    ],
)
def test_staticmethod_moves_up_with_its_comments(before: str, after: str) -> None:
    rest = "    def backward(ctx, g):\n        return g\n"
    for ending in ("\n", "\r\n"):
        text, expected = (_class(each + rest).replace("\n", ending) for each in (before, after))
        assert_fixed("CTX105", text, expected)


def test_decorators_of_unknown_make_move_only_where_that_is_asked_for() -> None:
    text = _class("    @wrap\n    @staticmethod\n    def backward(ctx, g):\n        return g\n")
    assert fixed_by("CTX105", text) == text
    assert_fixed("CTX105", text, text.replace("@wrap\n    @staticmethod", "@staticmethod\n    @wrap"), unsafe=True)
