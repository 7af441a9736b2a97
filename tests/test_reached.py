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
    @{static}
    def forward({inputs}):
        {forward}
        return {output}

    @staticmethod{decorator}
    def backward({gradients}):
        {backward}
{consequence}
{call}"""
SETUP = """\
    @staticmethod
    def setup_context({}):
        {}
"""
USUAL = {
    "extra": "",
    "static": "staticmethod",
    "inputs": "ctx, x: torch.Tensor, weight: torch.Tensor",
    "forward": "pass",
    "output": "x * weight",
    "decorator": "",
    "gradients": "ctx, g",
    "backward": "pass",
    "call": "",
}
CALL = "\n\ndef run(x, weight):\n    return {}\n"
NO_CTX = {"inputs": "x: torch.Tensor, weight: torch.Tensor"}

RAISING = {
    "CTX102": NO_CTX,
    "CTX102 class": {"inputs": "ctx, x, weight", "static": "classmethod"},
    "CTX102 self": {"backward": "k = self.k"},
    "CTX102 ctx": {"backward": "n = ctx.n", "gradients": "self, g"},
    "CTX103": {"extra": SETUP.format("ctx, inputs, output", "pass")},
    "CTX104": {"extra": SETUP.format("ctx, inputs", "pass"), **NO_CTX},
    "CTX106": {"decorator": '\n    @torch.amp.custom_bwd(device_type="cpu")'},
    "CTX106 setup": {
        "decorator": '\n    @torch.amp.custom_bwd(device_type="cpu")',
        "static": 'staticmethod\n    @torch.amp.custom_fwd(device_type="cpu")',
        "extra": SETUP.format("ctx, inputs, output", "pass"),
        **NO_CTX,
    },
    "CTX107 keyword": {
        "inputs": "x: torch.Tensor, weight: torch.Tensor, *, k=2",
        "extra": SETUP.format("ctx, inputs, output", "pass"),
    },
    "CTX107": {"extra": "    @staticmethod\n    def vjp(ctx, g):\n        return g, g\n"},
    "CTX111": {"decorator": "\n    @torch.amp.custom_bwd"},
    "CTX113": {"inputs": "ctx, x: torch.Tensor, *, weight: torch.Tensor"},
    "CTX115": {"extra": SETUP.format("ctx, inputs, output", "x, weight, bias = inputs"), **NO_CTX},
    "CTX115 default": {
        "extra": SETUP.format("ctx, inputs, output", "(x,) = inputs"),
        "inputs": "x: torch.Tensor, weight: torch.Tensor = None",
    },
    "CTX205": {"gradients": "ctx, g, h"},
    "CTX205 none": {"gradients": "ctx", "output": "torch.unbind(x.double())"},
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
    "CTX304": {
        "forward": "ctx.save_for_backward(x)\n        ctx.save_for_backward(weight)",
        "backward": "x, weight = ctx.saved_tensors",
    },
    "CTX402": {"forward": "ctx.mark_dirty(x)"},
    "CTX402 list": {"forward": "ctx.mark_dirty([x])"},
    "CTX403": {"forward": "ctx.mark_non_differentiable(3)"},
    "CTX701": {"call": CALL.format("Fn.apply(x)")},
    "CTX701 vmap": {
        "call": CALL.format("Fn.apply(x)"),
        "extra": SETUP.format("ctx, inputs, output", "pass")
        + "\n    @staticmethod\n    def vmap(info, in_dims, x, weight):\n        return Fn.apply(x, weight), 0\n",
        **NO_CTX,
    },
    "CTX702": {"static": "staticmethod\n    @torch.no_grad()", "call": CALL.format("Fn.apply(x, weight=weight)")},
    "CTX703": {"call": CALL.format("Fn()(x, weight)")},
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
CONDITION = re.compile(
    r"if (?:this|that) line runs|if this is evaluated|if `backward` gets that far|if it gets that far|if reached"
)
SIGNATURES = {
    "CTX102": {"gradients": "g"},
    "CTX106": {"decorator": '\n    @torch.amp.custom_bwd(device_type="cpu")'},
    "CTX107": {"extra": "    @staticmethod\n    def vjp(ctx, g):\n        return g, g\n"},
    "CTX205": {"gradients": "ctx, g, h"},
}
"""What keeps torch from calling backward, once it gets there."""
AT_APPLY = [
    each
    for each, parts in RAISING.items()
    if not parts.keys() & {"decorator", "gradients", "backward"} and each != "CTX107"
]


def _program(raising: str, consequence: str) -> str:
    parts = {**USUAL, **RAISING[raising]}
    body = textwrap.indent(CONSEQUENCES[consequence], " " * 8)
    return CLASS.format(**{**parts, "name": re.sub(r"\W", "_", raising.lower()), "consequence": body})


@pytest.mark.parametrize(
    ("raising", "consequence"), [pair for pair in product(RAISING, CONSEQUENCES) if len({*pair}) > 1]
)
def test_no_consequence_is_claimed_behind_what_raises(raising: str, consequence: str) -> None:
    found = lint(_program(raising, consequence))
    reported = not found or raising.partition(" ")[0] in {each.code for each in found}
    assert reported or (raising, consequence) == ("CTX205 none", "CTX207")  # which wants no gradients
    assert all(CONDITION.search(each.message) for each in found if each.code == consequence)


@pytest.mark.parametrize(("raising", "signature"), list(product(AT_APPLY, SIGNATURES)))
def test_backward_is_not_said_to_be_called_behind_an_apply_that_raises(raising: str, signature: str) -> None:
    parts = {**USUAL, **RAISING[raising]}
    own = {key: f"{parts[key]}\n{text}" if key == "extra" else text for key, text in SIGNATURES[signature].items()}
    name = re.sub(r"\W", "_", f"{raising}_{signature}".lower())
    text = CLASS.format(**{**parts, **own, "name": name, "consequence": "        return g, g"})
    found = [each.message for each in lint(text) if each.code == signature and " at backward" in each.message]
    assert all(re.search("if (?:it is called|autograd gets there)", each) for each in found), found


CONTEXTS = {
    "CTX303": ("ctx.save_for_backward(x, 3)", "x * weight"),
    "CTX402": ("ctx.mark_dirty([x])", "x * weight"),
    "CTX403": ("ctx.mark_non_differentiable([x])", "x * weight"),
}
"""What happens once forward has returned."""


@pytest.mark.parametrize("code", CONTEXTS)
def test_what_torch_rejects_after_forward_is_not_claimed_if_that_raises(code: str) -> None:
    forward, output = CONTEXTS[code]
    parts = {
        **USUAL,
        "forward": forward,
        "output": output.replace("weight", "wieght"),
        "name": f"context_{code.lower()}",
    }
    found = [
        each.message for each in lint(CLASS.format(**parts, consequence="        return g, g")) if each.code == code
    ]
    assert len(found) == 1
    assert "if `forward` gets that far" in found[0]


def test_what_apply_returns_is_claimed_with_a_condition_if_it_raises() -> None:
    text = CLASS.format(
        **{**USUAL, "forward": "ctx.mark_dirty([x])", "output": "[x * weight]", "name": "returned"},
        consequence="        return g, g",
    )
    found = {each.code: each.message for each in lint(text)}
    assert "if `forward` gets that far" in found["CTX215"]
    assert "gets that far" not in found["CTX402"]


NEVER_RUN = {
    "no_output": {"output": "1.0"},
    "an_integer": {"output": "(x * weight).long()"},
}


@pytest.mark.parametrize(("reason", "consequence"), list(product(NEVER_RUN, CONSEQUENCES)))
def test_nothing_is_claimed_of_a_backward_that_never_runs(reason: str, consequence: str) -> None:
    parts = {**USUAL, **NEVER_RUN[reason]}
    body = textwrap.indent(CONSEQUENCES[consequence], " " * 8)
    found = lint(CLASS.format(**{**parts, "name": reason, "consequence": body}))
    assert all(CONDITION.search(each.message) for each in found if each.code == consequence)


@pytest.mark.parametrize("raising", RAISING)
def test_it_raises_before(raising: str) -> None:
    """Backward never gets to its last line."""
    names: dict[str, object] = {}
    text = _program(raising, "CTX213").replace("return [g, g]", "raise KeyboardInterrupt")
    if raising == "CTX111":
        with pytest.raises(TypeError, match="device_type"):
            exec(compile(text, "<program>", "exec"), names)
        return
    exec(compile(text, "<program>", "exec"), names)
    x = (torch.ones(2, requires_grad=True) * 1).requires_grad_()
    call = names["run"] if "run" in names else names["Fn"].apply  # type: ignore[attr-defined]
    with pytest.raises(Exception):  # noqa: B017, PT011  (which is another matter)
        call(x, torch.ones(2, requires_grad=True)).sum().backward()  # type: ignore[operator]
