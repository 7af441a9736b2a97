"""The fixes that rename, add and remove the ctx parameter: which names refer to it, and layouts of signatures."""

from __future__ import annotations

import pytest

from tests.fixes.fixing import assert_fixed, fixed_by

_HEAD = "import torch\n\n\nclass F(torch.autograd.Function):\n"
_REST = "\n    @staticmethod\n    def backward(ctx, g):\n        return g\n"


def _forward(text: str) -> str:
    return f"{_HEAD}    @staticmethod\n    def forward({text}{_REST}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("self, x): self.n = 2; return x\n", "ctx, x): ctx.n = 2; return x\n"),
        (
            "self, x):\n        return x * self.self(self=self)  # self\n",
            "ctx, x):\n        return x * ctx.self(self=ctx)  # self\n",
        ),
        ("self, x):\n        return f'{self} self' + 'self'\n", "ctx, x):\n        return f'{ctx} self' + 'self'\n"),
        (
            "self, x):\n        f = lambda self: self.x\n        return f(self)\n",
            "ctx, x):\n        f = lambda self: self.x\n        return f(ctx)\n",
        ),
        (
            "self, x):\n        def f(a=self, *self):\n            return self\n        return f()\n",
            "ctx, x):\n        def f(a=ctx, *self):\n            return self\n        return f()\n",
        ),
        (
            "self, x):\n        def f():\n            return self.n\n        self.n = 1\n        return x * f()\n",
            "ctx, x):\n        def f():\n            return ctx.n\n        ctx.n = 1\n        return x * f()\n",
        ),
        (
            "self, x):\n        return x, [self for self in self.all], [self.n for i in x]\n",
            "ctx, x):\n        return x, [self for self in ctx.all], [ctx.n for i in x]\n",
        ),
        (
            "self: object, x):\n        del self\n        return x\n",
            "ctx: object, x):\n        del ctx\n        return x\n",
        ),
    ],
)
def test_self_is_renamed(before: str, after: str) -> None:
    assert_fixed("CTX102", _forward(before), _forward(after))


@pytest.mark.parametrize(
    "text",
    [
        "self, x, ctx):\n        self.n = 1\n        return x\n",
        "self, x):\n        ctx = self\n        return x\n",
        "self, x):\n        class A:\n            n = self.n\n        return x\n",
        "self, x):\n        f = lambda ctx: self.n\n        return x\n",
        "self, x):\n        self.n = 1\n        print(locals())\n        return x\n",
    ],
)
def test_where_the_new_name_is_taken_nothing_changes(text: str) -> None:
    assert fixed_by("CTX102", _forward(text), unsafe=True) == _forward(text)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x):\n        ctx.n = 1\n        return x * 2\n", "ctx, x):\n        ctx.n = 1\n        return x * 2\n"),
        (
            "\n        x,  # the input\n        n=1,\n    ):\n        ctx.n = n\n        return x * n\n",
            "\n        ctx,\n        x,  # the input\n        n=1,\n    ):\n        ctx.n = n\n        return x * n\n",
        ),
    ],
)
def test_ctx_is_added_where_it_is_used(before: str, after: str) -> None:
    assert fixed_by("CTX102", _forward(before)) == _forward(after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("self, ctx, x):\n        return x * 2\n", "ctx, x):\n        return x * 2\n"),
        ("self ,\n                ctx, x):\n        return x * 2\n", "ctx, x):\n        return x * 2\n"),
        ("self, ctx, x):\n        return x * self.n\n", "self, ctx, x):\n        return x * self.n\n"),
    ],
)
def test_a_second_receiver_goes(before: str, after: str) -> None:
    call = "\n\ndef call(x):\n    return F.apply(x)\n"
    assert fixed_by("CTX102", _forward(before) + call).replace("(\n                ", "(") == _forward(after) + call


_SETUP = "\n    @staticmethod\n    def setup_context(ctx, inputs, output):\n        pass\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("ctx, x):\n        return x * 2\n", "x):\n        return x * 2\n"),
        (
            "\n        ctx,\n        x,\n    ):\n        return x * 2\n",
            "\n        x,\n    ):\n        return x * 2\n",
        ),
        (
            "\n        ctx,  # not used\n        x,\n    ):\n        return x * 2\n",
            "\n        x,\n    ):\n        return x * 2\n",
        ),
        ("ctx: object, x):\n        return x * 2\n", "x):\n        return x * 2\n"),
        ("ctx, /, x):\n        return x * 2\n", "ctx, /, x):\n        return x * 2\n"),
    ],
)
def test_forward_loses_a_ctx_that_it_does_not_use(before: str, after: str) -> None:
    assert fixed_by("CTX103", _forward(before) + _SETUP) == _forward(after) + _SETUP


def test_another_name_for_the_ctx() -> None:
    before = _forward("context, x):\n        context.context = x\n        return x * 2\n")
    assert_fixed("CTX109", before, before.replace("(context", "(ctx").replace(" context.", " ctx."))


def test_a_ctx_that_is_passed_by_its_name_is_not_renamed() -> None:
    text = _forward("context, x):\n        return x\n")
    assert fixed_by("CTX109", text) != text
    called = f"{text}\n\ndef f(x):\n    return F.forward(context=None, x=x)\n"
    assert fixed_by("CTX109", called) == called
