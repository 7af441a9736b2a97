"""Where torch cannot call a method, or something certainly raises, no message claims what never comes after it."""

from __future__ import annotations

import re
import textwrap
from itertools import product

import pytest
import torch

from tests.linting import lint

CLASS = """\
import torch


@torch.library.custom_op("reached::{name}", mutates_args=())
def operator(x: torch.Tensor, scale: float) -> torch.Tensor:
    return x * scale


class Fn(torch.autograd.Function):
{extra}
    @staticmethod
    def forward({inputs}):
        {forward}
        return {output}

    @staticmethod{decorator}
    def backward({gradients}):
        {backward}
{consequence}
"""
SETUP = """\
    @staticmethod
    def setup_context({}):
        {}
"""
USUAL = {
    "extra": "",
    "inputs": "ctx, x: torch.Tensor, weight: torch.Tensor",
    "forward": "pass",
    "output": "x * weight",
    "decorator": "",
    "gradients": "ctx, g",
    "backward": "pass",
}
NO_CTX = {"inputs": "x: torch.Tensor, weight: torch.Tensor"}

RAISING = {
    "CTX102": NO_CTX,
    "CTX103": {"extra": SETUP.format("ctx, inputs, output", "pass")},
    "CTX104": {"extra": SETUP.format("ctx, inputs", "pass"), **NO_CTX},
    "CTX106": {"decorator": '\n    @torch.amp.custom_bwd(device_type="cpu")'},
    "CTX107": {"extra": "    @staticmethod\n    def vjp(ctx, g):\n        return g, g\n"},
    "CTX115": {"extra": SETUP.format("ctx, inputs, output", "x, weight, bias = inputs"), **NO_CTX},
    "CTX205": {"gradients": "ctx, g, h"},
    "CTX223": {"extra": SETUP.format("ctx, inputs, output", "ctx.save_for_backward(x)"), **NO_CTX},
    "CTX320": {
        "extra": SETUP.format("ctx, inputs, output", "ctx.save_for_backward(inputs[0])"),
        "output": "x",
        **NO_CTX,
    },
    "CTX208": {"backward": "flag = ctx.needs_input_grad[2]"},
    "CTX220": {"backward": "dx = torch.autograd.grad(g * 2, g)"},
    "CTX249": {"backward": "assert g is None"},
    "CTX303": {"forward": "ctx.save_for_backward(x, 3)"},
    "CTX402": {"forward": "ctx.mark_dirty(x)"},
    "CTX706": {"backward": "g = operator(g)"},
}
CONSEQUENCES = {
    "CTX201": "return g",
    "CTX202": "return g, g, g",
    "CTX207": "dx = g",
    "CTX213": "return [g, g]",
    "CTX223": "return undefined(g), g",
    "CTX306": "return g * ctx.scale, g",
    "CTX314": "ctx.save_for_backward(g)\nreturn g, g",
    "CTX404": "return g.mul_(2), g",
    "CTX408": "g.mul(2)\nreturn g, g",
}
CONDITION = re.compile(r"if (?:this|that) line runs|if `backward` gets that far")


def _program(raising: str, consequence: str) -> str:
    parts = {**USUAL, **RAISING[raising]}
    body = textwrap.indent(CONSEQUENCES[consequence], " " * 8)
    return CLASS.format(**{**parts, "name": raising.lower(), "consequence": body})


@pytest.mark.parametrize(
    ("raising", "consequence"), [pair for pair in product(RAISING, CONSEQUENCES) if len({*pair}) > 1]
)
def test_no_consequence_is_claimed_behind_what_raises(raising: str, consequence: str) -> None:
    found = lint(_program(raising, consequence))
    assert not found or raising in {each.code for each in found}
    assert all(CONDITION.search(each.message) for each in found if each.code == consequence)


@pytest.mark.parametrize("raising", RAISING)
def test_it_raises_before(raising: str) -> None:
    """Backward never gets to its last line."""
    names: dict[str, object] = {}
    text = _program(raising, "CTX213").replace("return [g, g]", "raise KeyboardInterrupt")
    exec(compile(text, "<program>", "exec"), names)
    x = (torch.ones(2, requires_grad=True) * 1).requires_grad_()
    with pytest.raises(Exception):  # noqa: B017, PT011  (which is another matter)
        names["Fn"].apply(x, torch.ones(2, requires_grad=True)).sum().backward()  # type: ignore[attr-defined]
