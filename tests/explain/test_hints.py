"""Inlay hints: the file as an editor shows it."""

from __future__ import annotations

import textwrap

from tests.explain.contracts import file_of, hinted


def _shows(code: str, wanted: str) -> None:
    assert hinted(file_of(code)) == textwrap.dedent(wanted).strip("\n") + "\n"


def test_gradients_saved_tensors_and_outputs() -> None:
    _shows(
        """
        class Fn(Function):
            @staticmethod
            def forward(ctx, x, weight, shape):
                y = x * weight
                ctx.save_for_backward(x, weight, y * 2)
                return y, y.sum()

            @staticmethod
            def backward(ctx, grad, grad_sum):
                x, w, doubled = ctx.saved_tensors
                return (grad * w), (
                    grad
                    * x
                ), None
        """,
        """
        class Fn(Function):
            @staticmethod
            def forward(ctx, x, weight, shape):
                y = x * weight
                ctx.save_for_backward(x, weight, y * 2)
                return y, y.sum()

            @staticmethod
            def backward(ctx, grad /* y */, grad_sum /* output 1 */):
                x, w /* weight */, doubled /* y * 2 */ = ctx.saved_tensors
                return (grad * w) /* x */, (
                    grad
                    * x
                ) /* weight */, None /* shape */
        """,
    )


def test_one_none_for_several_inputs() -> None:
    _shows(
        """
        class Fn(Function):
            @staticmethod
            def forward(ctx, x, a, b, c, d, e):
                return x.clone()

            @staticmethod
            def backward(ctx, grad):
                return (grad,) + (None,) * 5
        """,
        """
        class Fn(Function):
            @staticmethod
            def forward(ctx, x, a, b, c, d, e):
                return x.clone()

            @staticmethod
            def backward(ctx, grad):
                return (grad /* x */,) + (None /* a ... e */,) * 5
        """,
    )


def test_surplus_and_unknown_slots_get_no_hint() -> None:
    code = """
        class Fn(Function):
            @staticmethod
            def forward(ctx, x):
                return extension(x)

            @staticmethod
            def backward(ctx, *grads):
                if len(grads) > 1:
                    return grads[0], None
                return extension(*grads)
        """
    _shows(code, code.replace("return grads[0], None", "return grads[0] /* x */, None"))


def test_inherited_methods_are_hinted_where_they_are_written() -> None:
    _shows(
        """
        class Base(Function):
            @staticmethod
            def forward(ctx, x):
                return x.clone()

            @staticmethod
            def backward(ctx, grad):
                return grad


        class Child(Base):
            @staticmethod
            def forward(ctx, other):
                return other.exp()
        """,
        """
        class Base(Function):
            @staticmethod
            def forward(ctx, x):
                return x.clone()

            @staticmethod
            def backward(ctx, grad):
                return grad /* x */


        class Child(Base):
            @staticmethod
            def forward(ctx, other):
                return other.exp()
        """,
    )


def test_what_a_name_says_is_not_said_again() -> None:
    code = """
        class Fn(Function):
            @staticmethod
            def forward(ctx, x, weight, bias):
                y = x * weight + bias
                return y, y.sum()

            @staticmethod
            def backward(ctx, grad_y, grad_sum):
                dx = grad_y * 2
                weight_grad = grad_y * 3
                g = grad_y * 4
                return dx, weight_grad, g
        """
    wanted = code.replace("grad_sum)", "grad_sum /* output 1 */)").replace("grad, g", "grad, g /* bias */")
    _shows(code, wanted)
