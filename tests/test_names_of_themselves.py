"""A name whose only assignment reads the name itself, as in code that is being typed, is followed once."""

from __future__ import annotations

import pytest

from tests.linting import lint_everything

CLASS = """\
import torch


class Fn(torch.autograd.Function):
    @staticmethod
    def forward({inputs}):
        {forward}
        return {output}
{setup}
    @staticmethod
    def backward(ctx, g):
        {backward}
        return {gradient}
"""
SETUP = """
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
"""
USUAL = {
    "inputs": "ctx, x",
    "forward": "ctx.save_for_backward(x)",
    "output": "x**2",
    "setup": "",
    "backward": "(x,) = ctx.saved_tensors",
    "gradient": "g * 2 * x",
}
CASES = {
    "gradient": {"backward": "for _ in range(ctx.n):\n            grad = grad * 2", "gradient": "grad"},
    "two gradients": {"backward": "grad = other * 2\n        other = grad * 2", "gradient": "grad"},
    "gradient of a mean": {"output": "x.mean()", "backward": "grad = grad * 2", "gradient": "grad"},
    "output": {"forward": "out = out * 2", "output": "out.mean()", "gradient": "g"},
    "size": {
        "inputs": "x",
        "forward": "rows = rows * 2",
        "output": "(x**2).sum() / rows",
        "setup": SETUP,
        "gradient": "2 * x / x.shape[0]",
    },
    "loss": {
        "forward": "with torch.enable_grad():\n            loss = loss * 2\n            torch.autograd.backward(torch.tanh(loss).sum())",
    },
}


@pytest.mark.parametrize("case", CASES)
def test_a_name_is_followed_once(case: str) -> None:
    codes = {each.code for each in lint_everything(CLASS.format(**{**USUAL, **CASES[case]}))}
    assert codes.isdisjoint({"CTX901", "CTX903"})
    assert "CTX210" in codes
