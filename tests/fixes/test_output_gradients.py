"""CTX205's fix: parameters of backward come and go with the outputs."""

from __future__ import annotations

import pytest

from tests.fixes.mending import assert_mended, mended_by

_CLASS = """import torch


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
        ("x * 1, x * 2", "ctx, g", "ctx, g, _"),
        ("x * 1, x * 2", "ctx, g, ", "ctx, g, _, "),
        ("x * 1, x * 2, x * 3", "ctx, g", "ctx, g, _1, _2"),
        ("x * 1, x * 2, x * 3", "ctx, g, _", "ctx, g, _, _1"),
        ("x * 1, x * 2", "ctx, g: torch.Tensor, **k", "ctx, g: torch.Tensor, _, **k"),
        (
            "x * 1, x * 2",
            "\n        ctx,\n        g,  # of x\n    ",
            "\n        ctx,\n        g,  # of x\n        _,\n    ",
        ),
        ("x * 1", "ctx, g, h", "ctx, g"),
        ("x * 1", "ctx, g, h, i", "ctx, g"),
        ("x * 1", "ctx, g, h,", "ctx, g,"),
    ],
)
def test_parameters_follow_the_outputs(outputs: str, before: str, after: str) -> None:
    text = _CLASS.format(outputs=outputs, params=before, body="g * 2")
    assert mended_by("CTX205", text) == text
    assert_mended("CTX205", text, _CLASS.format(outputs=outputs, params=after, body="g * 2"), unsafe=True)


def test_a_parameter_that_is_read_stays() -> None:
    text = _CLASS.format(outputs="x * 1", params="ctx, g, h", body="g * 2 + h")
    assert mended_by("CTX205", text, unsafe=True) == text
