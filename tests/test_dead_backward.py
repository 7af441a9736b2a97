"""Findings about backward are reported only if autograd may run it: some output can have a gradient."""

from __future__ import annotations

import textwrap

import pytest

from ctxlint.rules import all_rules
from tests.linting import lint

CLASS = """\
import torch


class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor, weight: torch.Tensor):
{forward}
        return {output}

    @staticmethod
    def backward(ctx, {parameters}):
{backward}
"""

DEFECTS = {
    "CTX201": ("", "g", "return g"),
    "CTX202": ("", "g", "return g, g, g * 2"),
    "CTX205": ("", "g, h", "return g, h"),
    "CTX207": ("", "g", "g = g * 2"),
    "CTX208": ("", "g", "return g if ctx.needs_input_grad[2] else None, g"),
    "CTX209": (
        "",
        "g",
        "dx = dw = None\nif ctx.needs_input_grad[0]:\n    dx = g * 2\n    dw = g * 3\nreturn dx, dw",
    ),
    "CTX210": ("", "g", "if ctx.needs_input_grad[0]:\n    dx = g * 2\nreturn dx, g"),
    "CTX212": ("ctx.save_for_backward(x)", "g", "(x,) = ctx.saved_tensors\nreturn x * 2, x * 3"),
    "CTX213": ("", "g", "return [g, g]"),
    "CTX223": ("", "g", "return g * x, g"),
    "CTX226": (
        "ctx.save_for_backward(x)",
        "g",
        "(x,) = ctx.saved_tensors\nwith torch.enable_grad():\n    y = x * 2\ny.backward(g)\nreturn x.grad, g",
    ),
    "CTX233": ("", "g", "with torch.inference_mode():\n    dx = g * 2\nreturn dx, g"),
    "CTX234": (
        "x = torch.nn.functional.pad(x, [0, 3])\nctx.save_for_backward(x)",
        "g",
        "(x,) = ctx.saved_tensors\nreturn torch.ones_like(x), g",
    ),
    "CTX235": ("", "g", "grad_x = g * 2\nreturn None, grad_x, None"),
    "CTX242": ("ctx.save_for_backward(x)", "g", "(x,) = ctx.saved_tensors\ndx = g * x\nreturn dx * g, g"),
    "CTX238": ("", "g", "if ctx.needs_input_grad[0]:\n    g * 2, g * 3\nreturn None, None"),
    "CTX248": ("ctx.weight = weight", "g", "return g, None"),
    "CTX256": (
        "ctx.save_for_backward(x, weight)",
        "g",
        "weight, x = ctx.saved_tensors\nreturn g * weight, g * x",
    ),
    "CTX301": ("ctx.x = x", "g", "return g * ctx.x, g"),
    "CTX305": ("ctx.save_for_backward(x)", "g", "x, weight = ctx.saved_tensors\nreturn g * weight, g * x"),
    "CTX306": ("", "g", "return g * ctx.scale, g"),
    "CTX307": (
        "if x.requires_grad:\n    ctx.save_for_backward(x)",
        "g",
        "(x,) = ctx.saved_tensors\nreturn g * x, g * 2",
    ),
    "CTX309": (
        "ctx.save_for_backward(x)",
        "g",
        "(x,) = ctx.saved_tensors\n(y,) = ctx.saved_tensors\nreturn g * x, g * y",
    ),
    "CTX310": ("ctx.save_for_backward(x)", "g", "x = ctx.saved_tensors\nreturn g * x.exp(), g"),
    "CTX311": ("ctx.save_for_backward(x)\nctx.x = x", "g", "(x,) = ctx.saved_tensors\nreturn g * ctx.x, g * x"),
    "CTX313": ("ctx.save_for_backward(x)", "g", "(x,) = ctx.saved_tensors\nreturn x.mul_(2) * g, g"),
    "CTX322": ("x.scale = 2.0\nctx.save_for_backward(x)", "g", "(x,) = ctx.saved_tensors\nreturn g * x.scale, g"),
    "CTX324": ("ctx.save_for_backward(x.data)", "g", "(x,) = ctx.saved_tensors\nreturn g * x, g * x"),
    "CTX404": ("", "g", "return g.mul_(2), g"),
}


def _found(code: str, output: str) -> bool:
    forward, parameters, backward = DEFECTS[code]
    text = CLASS.format(
        forward=textwrap.indent(forward or "pass", " " * 8),
        output=output,
        parameters=parameters,
        backward=textwrap.indent(backward, " " * 8),
    )
    return code in {each.code for each in lint(text)}


@pytest.mark.parametrize("code", DEFECTS)
def test_a_backward_that_never_runs_is_not_judged(code: str) -> None:
    assert _found(code, "x * weight")
    assert not _found(code, "(x * weight).argmax()")
    assert not _found(code, "torch.cuda.IntTensor(3)")


def test_every_such_rule_is_tried() -> None:
    """The other rules need a larger Function or are off by default; their fixtures cover them."""
    rest = {
        "CTX106",
        "CTX117",
        "CTX203",
        "CTX204",
        "CTX206",
        "CTX211",
        "CTX214",
        "CTX302",
        "CTX315",
        "CTX317",
        "CTX221",
        "CTX222",
        "CTX224",
        "CTX228",
        "CTX230",
        "CTX231",
        "CTX232",
        "CTX236",
        "CTX239",
        "CTX243",
        "CTX245",
        "CTX246",
        "CTX249",
        "CTX250",
        "CTX253",
        "CTX251",
        "CTX254",
        "CTX255",
        "CTX257",
        "CTX258",
        "CTX259",
        "CTX260",
        "CTX270",
        "CTX273",
        "CTX237",
        "CTX318",
        "CTX410",
        "CTX411",
        "CTX501",
        "CTX502",
        "CTX503",
        "CTX506",
        "CTX323",
        "CTX325",
        "CTX326",
        "CTX327",
        "CTX328",
    }
    assert {rule.code for rule in all_rules() if rule.about_backward} == (
        set(DEFECTS) - {"CTX208", "CTX210", "CTX223", "CTX306"}
    ) | rest
