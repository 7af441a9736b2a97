"""Moving tensors from ctx into ``save_for_backward``, in odd layouts and where it must not be done."""

from __future__ import annotations

import pytest

from ctxlint.config.settings import Selection, Settings
from tests.fixes.fixing import assert_fixed, fixed_by
from tests.linting import apply_fixes

HEAD = "import torch\n\n\nclass Fn(torch.autograd.Function):\n"


def function(forward: str, backward: str, inputs: str = "x, y", more: str = "") -> str:
    """A Function with these bodies, which are indented by eight spaces already."""
    return (
        f"{HEAD}    @staticmethod\n    def forward(ctx, {inputs}):\n{forward}\n"
        f"    @staticmethod\n    def backward(ctx, grad):\n{backward}{more}"
    )


def test_tabs_and_crlf() -> None:
    text = (
        "import torch\r\nclass Fn(torch.autograd.Function):\r\n\t@staticmethod\r\n\tdef forward(ctx, x):\r\n"
        "\t\tctx.x = x\r\n\t\treturn x * x\r\n\t@staticmethod\r\n\tdef backward(ctx, grad):\r\n"
        "\t\t'''Zwei é 語'''\r\n\r\n\t\treturn 2 * grad * ctx.x\r\n"
    )
    expected = text.replace("ctx.x = x", "ctx.save_for_backward(x)").replace(
        "\t\treturn 2 * grad * ctx.x", "\t\t(x,) = ctx.saved_tensors\r\n\t\treturn 2 * grad * x"
    )
    assert_fixed("CTX301", text, expected)


def test_the_last_statement_of_a_line() -> None:
    before = function(
        "        ctx.save_for_backward(x); ctx.y = y\n        return x * y\n",
        "        x, = ctx.saved_tensors; y = ctx.y\n        return grad * y, grad * x\n",
    )
    after = function(
        "        ctx.save_for_backward(x, y)\n        return x * y\n",
        "        x, y = ctx.saved_tensors\n        return grad * y, grad * x\n",
    )
    assert_fixed("CTX301", before, after)


def test_a_continued_line() -> None:
    before = function(
        "        ctx.save_for_backward(x)\n        ctx.y = \\\n            y  # é\n        return x * y\n",
        "        x, = \\\n            ctx.saved_tensors\n        return grad * ctx.y, grad * x\n",
    )
    after = function(
        "        ctx.save_for_backward(x, y)\n        # é\n        return x * y\n",
        "        x, y = \\\n            ctx.saved_tensors\n        return grad * y, grad * x\n",
    )
    assert_fixed("CTX301", before, after)


def test_displays_over_several_lines_keep_their_layout() -> None:
    before = function(
        "        ctx.save_for_backward(\n            x\n        )\n        ctx.y = y\n        return x * y\n",
        "        (\n            x,  # the first\n        ) = ctx.saved_tensors\n        return grad * ctx.y, grad * x\n",
    )
    after = function(
        "        ctx.save_for_backward(\n            x,\n            y\n        )\n        return x * y\n",
        "        (\n            x,  # the first\n            y,\n        ) = ctx.saved_tensors\n"
        "        return grad * y, grad * x\n",
    )
    assert_fixed("CTX301", before, after)


def test_a_save_moves_down_where_the_tensor_does_not_exist_yet() -> None:
    before = function(
        "        ctx.save_for_backward(x)  # input\n        out = x.exp() * y\n        ctx.out = out\n        return out\n",
        "        (x,) = ctx.saved_tensors\n        return grad * ctx.out, grad * x.exp()\n",
    )
    after = function(
        "        # input\n        out = x.exp() * y\n        ctx.save_for_backward(x, out)\n        return out\n",
        "        x, out = ctx.saved_tensors\n        return grad * out, grad * x.exp()\n",
    )
    assert_fixed("CTX301", before, after)


def test_a_variable_with_another_meaning_is_left_alone() -> None:
    before = function(
        "        ctx.y = y\n        ctx.save_for_backward(x)\n        return x * y\n",
        "        y, = ctx.saved_tensors\n        return grad * ctx.y, grad * y\n",
    )
    after = function(
        "        ctx.save_for_backward(x, y)\n        return x * y\n",
        "        y, saved_y = ctx.saved_tensors\n        return grad * saved_y, grad * y\n",
    )
    assert_fixed("CTX301", before, after)


def test_only_the_method_itself_may_read_the_attribute() -> None:
    forward = "        ctx.x = x\n        return x * y\n"
    for backward in (
        "        return grad, grad * (lambda: ctx.x)()\n",
        "        return grad, grad * getattr(ctx, 'x') * ctx.x\n",
        "        ctx.x = ctx.x.double()\n        return grad, grad * ctx.x\n",
    ):
        text = function(forward, backward)
        assert fixed_by("CTX301", text) == text
    text = function(forward, "        return grad, grad * ctx.x\n", more="\n\nprint(Fn.apply(1, 2).grad_fn.x)\n")
    assert fixed_by("CTX301", text) == text


@pytest.mark.parametrize(
    "forward",
    [
        "        if flag:\n            ctx.x = x\n        return x * y\n",
        "        ctx.x = x\n        ctx.x = x\n        return x * y\n",
        "        if flag:\n            return x\n        ctx.x = x\n        return x * y\n",
        "        for _ in range(2):\n            ctx.x = x\n        return x * y\n",
        "        ctx.x = x\n        x.mul_(2)\n        return x * y\n",
    ],
)
def test_an_attribute_that_is_not_set_once_on_every_path_stays(forward: str) -> None:
    text = function(forward, "        return grad, grad * ctx.x, None\n", inputs="x, y, flag")
    assert fixed_by("CTX301", text) == text


def test_a_read_before_the_unpacking_stays() -> None:
    text = function(
        "        ctx.save_for_backward(x)\n        ctx.y = y\n        return x * y\n",
        "        grad_x = grad * ctx.y\n        (x,) = ctx.saved_tensors\n        return grad_x, grad * x\n",
    )
    assert fixed_by("CTX301", text) == text


def test_a_comment_inside_what_goes_makes_the_fix_unsafe() -> None:
    text = function(
        "        ctx.y = (  # the second\n            y\n        )\n        ctx.save_for_backward(x)\n        return x * y\n",
        "        (x,) = ctx.saved_tensors\n        return grad * ctx.y, grad * x\n",
    )
    assert fixed_by("CTX301", text) == text
    assert "ctx.save_for_backward(x, y)" in fixed_by("CTX301", text, unsafe=True)


_EARLY = """        ctx.x = x
        x = x.contiguous()
        ctx.e = (x * y).exp()
        return x * y
"""
_EARLY_MENDED = """        saved_x = x
        x = x.contiguous()
        ctx.save_for_backward(saved_x, (x * y).exp())
        return x * y
"""
_LATE = """        e = (x * y).exp()
        ctx.e = e
        e = e * 2
        ctx.save_for_backward(x)
        return e
"""
_LATE_MENDED = """        e = (x * y).exp()
        saved_e = e
        e = e * 2
        ctx.save_for_backward(x, saved_e)
        return e
"""


@pytest.mark.parametrize(
    ("before", "unpacked", "after"),
    [(_EARLY, "", _EARLY_MENDED), (_LATE, "        (x,) = ctx.saved_tensors\n", _LATE_MENDED)],
)
def test_an_input_and_an_intermediate_in_one_run(before: str, unpacked: str, after: str) -> None:
    """One ``save_for_backward`` saves both, even if their names are rebound later."""
    x, inputs = "x" if unpacked else "ctx.x", "x: torch.Tensor, y: torch.Tensor"
    text = function(before, f"{unpacked}        return grad * {x} * ctx.e, grad * ctx.e\n", inputs)
    settings = Settings(command_line=Selection(select=("CTX301", "CTX302")))
    fixed = apply_fixes(text, "example.py", settings, unsafe=True)
    assert fixed == function(after, "        x, e = ctx.saved_tensors\n        return grad * x * e, grad * e\n", inputs)
    assert apply_fixes(fixed, "example.py", settings, unsafe=True) == fixed


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "        y = ctx.y\n        (x,) = ctx.saved_tensors\n        y = y.contiguous()\n",
            "        x, y = ctx.saved_tensors\n        y = y.contiguous()\n",
        ),
        (
            "        (x,) = ctx.saved_tensors\n        y = ctx.y\n        if y.dim() == 0:\n            y = y.new(x.size())\n",
            "        x, y = ctx.saved_tensors\n        if y.dim() == 0:\n            y = y.new(x.size())\n",
        ),
        (
            "        y = grad.sum()\n        (x,) = ctx.saved_tensors\n        grad = grad * y\n        y = ctx.y\n",
            "        y = grad.sum()\n        x, saved_y = ctx.saved_tensors\n        grad = grad * y\n        y = saved_y\n",
        ),
    ],
)
def test_a_name_that_is_bound_again(before: str, after: str) -> None:
    ending = "        return grad * y, grad * x\n"
    text = function("        ctx.y = y\n        ctx.save_for_backward(x)\n        return x * y\n", before + ending)
    saved = "        ctx.save_for_backward(x, y)\n        return x * y\n"
    assert_fixed("CTX301", text, function(saved, after + ending))
