"""Marking inputs and copying gradients in odd layouts; reading saved tensors once."""

from __future__ import annotations

from tests.fixes.fixing import assert_fixed, fixed_by

HEAD = "import torch\n\n\nclass Fn(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
MIDDLE = "    @staticmethod\n    def backward(ctx, grad):\n"


def test_a_mark_in_front_of_a_comment_and_with_crlf() -> None:
    forward = "        # é\n        x.mul_(2)\n        return x\n"
    text = (HEAD + forward + MIDDLE + "        return grad * 2\n").replace("\n", "\r\n")
    expected = text.replace("        # é", "        ctx.mark_dirty(x)\r\n        # é")
    assert_fixed("CTX401", text, expected, unsafe=True)


def test_an_input_that_was_rebound_is_not_marked() -> None:
    text = HEAD + "        x = x.view(-1)\n        x.mul_(2)\n        return x\n" + MIDDLE + "        return grad * 2\n"
    assert fixed_by("CTX401", text, unsafe=True) == text


def test_an_input_that_another_object_holds_is_not_marked() -> None:
    text = HEAD + "        x.mul_(2)\n        return x\n" + MIDDLE + "        return grad * 2\n"
    for given, marked in {"y.data": False, "y.weights": False, "y.T": True, "y * 2": True}.items():
        called = f"{text}\n\ndef run(y):\n    x = {given}\n    return Fn.apply(x)\n"
        assert ("mark_dirty" in fixed_by("CTX401", called, unsafe=True)) is marked, given


def test_a_gradient_that_may_be_none_is_copied_where_it_is_changed() -> None:
    forward = "        ctx.set_materialize_grads(False)\n        return x * 2\n"
    text = HEAD + forward + MIDDLE + "        if grad is None:\n            return None\n        grad.mul_(2)\n"
    text += "        return grad\n"
    assert fixed_by("CTX404", text, unsafe=True) == text


def test_semicolons_and_safe_fixes_leave_gradients_alone() -> None:
    body = "        a = 1; grad.mul_(2); return grad\n"
    text = HEAD + "        return x * 2\n" + MIDDLE + body
    assert fixed_by("CTX404", text) == text
    expected = text.replace("a = 1; grad.mul_", "a = 1; grad = grad.clone(); grad.mul_")
    assert_fixed("CTX404", text, expected, unsafe=True)


def test_reads_in_one_statement_over_several_lines() -> None:
    forward = "        ctx.save_for_backward(x, x)\n        return x * 2\n"
    body = "        # both\n        return (\n            grad * ctx.saved_tensors[0]  # one\n            * ctx.saved_tensors[1]\n        )\n"
    text = HEAD + forward + MIDDLE + body
    expected = text.replace("        # both", "        saved_tensors = ctx.saved_tensors\n        # both")
    expected = expected.replace("* ctx.saved_tensors[", "* saved_tensors[")
    assert_fixed("CTX309", text, expected)


def test_an_elif_and_a_function_inside() -> None:
    forward = "        ctx.save_for_backward(x)\n        return x * 2\n"
    body = (
        "        if ctx.saved_tensors[0] is None:\n            pass\n"
        "        elif len(ctx.saved_tensors) == 1:\n            grad = grad * 2\n        return grad\n"
    )
    text = HEAD + forward + MIDDLE + body
    expected = text.replace("        if ctx", "        saved_tensors = ctx.saved_tensors\n        if ctx")
    expected = expected.replace("if ctx.saved_tensors[", "if saved_tensors[").replace("len(ctx.s", "len(s")
    assert_fixed("CTX309", text, expected)
    nested = "        f = lambda: ctx.saved_tensors[0]\n        print(ctx.saved_tensors, ctx.saved_tensors)\n        return f()\n"
    text = HEAD + forward + MIDDLE + nested
    assert fixed_by("CTX309", text) == text
