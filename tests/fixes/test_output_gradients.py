"""CTX205's fix: parameters of backward are added and removed to match the outputs."""

from __future__ import annotations

import pytest

from tests.fixes.fixing import assert_fixed, fixed_by
from tests.linting import lint

_CLASS = """import torch
from elsewhere import a, b, body, c, grad_body, loss, lse, out, output, scores, x1, x2


class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return {outputs}

    @staticmethod
    def backward({params}):
        return {body}
"""


@pytest.mark.parametrize(
    ("outputs", "before", "after"),
    [
        ("x * 1, x * 2", "ctx, g", "ctx, g, grad_output_2"),
        ("x * 1, lse", "ctx, g", "ctx, g, grad_lse"),
        ("out, lse", "ctx, dout", "ctx, dout, dlse"),
        ("out, lse", "ctx, out", "ctx, out, grad_lse"),
        ("lse, lse", "ctx, g", "ctx, g, grad_lse"),
        ("x, lse, lse", "ctx, g", "ctx, g, grad_lse, grad_lse_"),
        ("x, None", "ctx, g", "ctx, g, grad_output_2"),
        ("x, body", "ctx, g", "ctx, g, grad_body_"),
        ("x * 1, x * 2", "ctx, g, ", "ctx, g, grad_output_2, "),
        ("x * 1, x * 2, x * 3", "ctx, g", "ctx, g, grad_output_2, grad_output_3"),
        ("x * 1, x * 2, x * 3", "ctx, g0, g1", "ctx, g0, g1, g2"),
        ("x * 1, x * 2, x * 3", "ctx, grad_1", "ctx, grad_1, grad_2, grad_3"),
        ("x * 1, x * 2, x * 3", "ctx, g, _", "ctx, g, _, grad_output_3"),
        ("x * 1, x * 2", "ctx, g: torch.Tensor, **k", "ctx, g: torch.Tensor, grad_output_2: torch.Tensor, **k"),
        (
            "x * 1, x * 2",
            "\n        ctx,\n        g,  # of x\n    ",
            "\n        ctx,\n        g,  # of x\n        grad_output_2,\n    ",
        ),
        ("x * 1", "ctx, g, h", "ctx, g"),
        ("x * 1", "ctx, g, h, i", "ctx, g"),
        ("x * 1", "ctx, g, h,", "ctx, g,"),
    ],
)
def test_parameters_follow_the_outputs(outputs: str, before: str, after: str) -> None:
    text = _CLASS.format(outputs=outputs, params=before, body="torch.mul(grad_body, 2)")
    assert fixed_by("CTX205", text) == text
    assert_fixed(
        "CTX205", text, _CLASS.format(outputs=outputs, params=after, body="torch.mul(grad_body, 2)"), unsafe=True
    )


@pytest.mark.parametrize(
    ("outputs", "before", "after"),
    [
        ("out, lse", "ctx, grad_lse", "ctx, grad_out, grad_lse"),
        ("x * 1, lse", "ctx, dlse", "ctx, doutput_1, dlse"),
        ("out, scores, lse", "ctx, dlse", "ctx, dout, dscores, dlse"),
        ("out, scores, lse", "ctx, dout, dlse", "ctx, dout, dscores, dlse"),
        ("out, scores, lse", "ctx, dscores", "ctx, dout, dscores, dlse"),
        ("out, scores, lse", "ctx, g, dlse", None),
        ("out, scores, lse", "ctx, g, dscores", "ctx, g, dscores, dlse"),
        ("out, scores, lse", "ctx, scores_grad", "ctx, grad_out, scores_grad, grad_lse"),
        ("loss, output", "ctx, grad_output", None),
        ("a, b", "ctx, gb", "ctx, ga, gb"),
        ("x1, x2", "ctx, dx2", "ctx, dx1, dx2"),
        ("x * 1, x * 2", "ctx, g2", "ctx, g1, g2"),
        ("x * 1, x * 2, x * 3", "ctx, g2, g3", "ctx, g1, g2, g3"),
        ("x * 1, x * 2, x * 3", "ctx, g2", None),
        ("a, b, c", "ctx, gc, ga", None),
        ("out, lse", "ctx, *, grad_lse", None),
        ("out, lse", "ctx, grad_lse: Tensor", "ctx, grad_out: Tensor, grad_lse: Tensor"),
        (
            "out, lse",
            "\n        ctx,\n        dlse,  # of lse\n    ",
            "\n        ctx,\n        dout,\n        dlse,  # of lse\n    ",
        ),
    ],
)
def test_parameters_stand_where_their_outputs_do(outputs: str, before: str, after: str | None) -> None:
    text = _CLASS.format(outputs=outputs, params=before, body="torch.mul(grad_body, 2)")
    if after is None:
        assert fixed_by("CTX205", text, unsafe=True) == text
    else:
        wanted = _CLASS.format(outputs=outputs, params=after, body="torch.mul(grad_body, 2)")
        assert_fixed("CTX205", text, wanted, unsafe=True)


def test_that_the_new_gradient_is_not_used_is_reported() -> None:
    text = _CLASS.format(outputs="x * 1, x.float().norm()", params="ctx, g", body="g * 2")
    fixed = fixed_by("CTX205", text, unsafe=True)
    assert [each.message.partition(",")[0] for each in lint(fixed) if each.code == "CTX211"] == [
        "`backward` of `F` never reads `grad_output_2`"
    ]


def test_a_parameter_that_is_read_stays() -> None:
    text = _CLASS.format(outputs="x * 1", params="ctx, g, h", body="g * 2 + h")
    assert fixed_by("CTX205", text, unsafe=True) == text
