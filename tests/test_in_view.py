"""Rules that are off by default, and report what a use in the project makes certain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctxlint.config.configuration import Configuration
from ctxlint.rules import all_rules
from ctxlint.run.pipeline import lint_paths
from tests.linting import lint, settings_from

OPS = """
import torch
from torch import nn


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(scale)
        return x * scale

    @staticmethod
    def backward(ctx, grad_output):
        (scale,) = ctx.saved_tensors
        return grad_output * scale, None


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.slope = x * 2
        return x.square()

    @staticmethod
    def backward(ctx, grad_output):
        return ctx.slope.mul_(grad_output)
"""

LAYER = """
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))

    def reset_parameters(self):
        nn.init.ones_(self.scale)

    def forward(self, x):
        assert x.shape == self.scale.shape
        return Scaled.apply(x, self.scale)
"""

BARE = """
class Bare(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        return x * scale

    @staticmethod
    def backward(ctx, grad_output):
        return None, None
"""

REQUESTED = """
def gradient():
    x = torch.ones(3, requires_grad=True)
    y = Bare.apply(x, 2.0)
    y.sum().backward()
    return x.grad
"""

TWICE = """
def two_losses(x, weight):
    y = Square.apply(x)
    (y * weight).sum().backward(retain_graph=True)
    loss = y.sum()
    loss.backward()
"""


def _codes(text: str, options: str = "") -> list[str]:
    return sorted(each.code for each in lint(text, settings=settings_from(options)))


def test_a_use_is_needed() -> None:
    assert _codes(OPS) == []
    assert _codes(OPS + LAYER) == ["CTX236"]
    assert _codes(OPS + TWICE) == ["CTX323"]


def test_selectors_mean_the_whole_rule() -> None:
    assert _codes(OPS, 'extend-select = ["CTX236", "CTX323"]') == ["CTX236", "CTX323"]
    assert _codes(OPS + LAYER + TWICE, 'ignore = ["CTX236"]') == ["CTX323"]
    assert _codes(OPS + LAYER + TWICE, 'select = ["CTX101"]') == []


def test_a_gradient_that_the_caller_requests() -> None:
    assert _codes(OPS + BARE) == _codes(OPS + BARE, 'extend-select = ["CTX236"]')[1:] == []
    assert _codes(OPS + BARE + REQUESTED) == ["CTX236"]
    assert _codes(OPS + BARE + REQUESTED.replace("    y.sum().backward()\n", "")) == []
    assert _codes(OPS + BARE + REQUESTED.replace("requires_grad=True", "requires_grad=False")) == []
    assert _codes(OPS + BARE + REQUESTED.replace("return x.grad", "assert x.grad is None")) == []
    assert _codes((OPS + BARE + REQUESTED).replace("Bare", "StopGradient")) == []
    trained = LAYER.replace("Scaled", "Bare")
    assert _codes(OPS + BARE + trained) == ["CTX236"]
    assert _codes(OPS + BARE + trained.replace("def forward(self", "def show(self")) == []


@pytest.mark.parametrize(
    "changed",
    [
        LAYER.replace("return Scaled", "x = x + self.scale\n        return Scaled"),
        LAYER.replace("torch.ones(3))", "torch.ones(3), requires_grad=False)"),
        LAYER.replace("nn.init.ones_(self.scale)", "self.scale.requires_grad = False"),
        LAYER.replace("    def forward(self", "    @torch.no_grad()\n    def forward(self"),
        LAYER.replace("    def reset_parameters(self)", "    def value(self)"),
        TWICE.replace("retain_graph=True", ""),
        TWICE.replace("    loss.backward()\n", ""),
        TWICE.replace("loss = y.sum()", "loss = x.sum()"),
        TWICE.replace("loss = y.sum()", "y = x * 2\n    loss = y.sum()"),
    ],
)
def test_what_may_be_meant_otherwise(changed: str) -> None:
    assert _codes(OPS + changed) == []


def test_a_loop_with_the_result_differentiates_it_again() -> None:
    loop = """
def rows(x):
    y = Square.apply(x)
    for row in range(3):
        (g,) = torch.autograd.grad(y[row], x, retain_graph=True)
    return g
"""
    assert _codes(OPS + loop) == ["CTX323"]
    assert _codes(OPS + loop.replace("retain_graph=True", "retain_graph=False")) == []
    inside = loop.replace("    y = Square.apply(x)\n", "").replace(
        "        (g", "        y = Square.apply(x)\n        (g"
    )
    assert _codes(OPS + inside) == []


def test_uses_in_other_files(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "ops.py").write_text(OPS + BARE, encoding="utf-8")
    imports = "import torch\nfrom torch import nn\n\nfrom ops import Bare, Scaled, Square\n"
    (tmp_path / "train.py").write_text(imports + LAYER + TWICE + REQUESTED, encoding="utf-8")
    for paths in ([tmp_path], [tmp_path / "ops.py"]):
        results = lint_paths(list(map(str, paths)), Configuration())
        found = [(Path(result.path).name, each.code, each.message) for result in results for each in result.diagnostics]
        codes = [(name, code) for name, code, _message in sorted(found)]
        assert codes == [("ops.py", "CTX236"), ("ops.py", "CTX236"), ("ops.py", "CTX323")]
        assert all("of `train.py`" in message for _name, _code, message in found)


def test_only_rules_that_are_off_have_such_findings() -> None:
    assert not [rule.code for rule in all_rules() if rule.default and rule.default_in_view]


ASSERTED = """
import torch

DEBUG, ROWS, SHAPE = False, 1, ()


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = torch.empty_like(x)
        torch.mul(x, 2, out=out)
        return out

    @staticmethod
    def backward(ctx, grad_output):
        assert grad_output.is_contiguous()
        return grad_output * 2
"""


@pytest.mark.parametrize(
    "created",
    [
        "torch.zeros_like(x)",
        "torch.zeros(x.shape)",
        "x.new_empty((4, x.shape[0]))",
        "x.new(4, 3).zero_().view(2, 6)",
        "torch.empty(*x.size(), 1)",
        "torch.empty(x.shape[:-1] + (4,))",
        "torch.full((x.size(0),), 2.0)",
    ],
)
def test_an_assertion_that_fails_after_a_sum(created: str) -> None:
    assert _codes(ASSERTED) == ["CTX502"]
    assert _codes(ASSERTED.replace("torch.empty_like(x)", created)) == ["CTX502"]


@pytest.mark.parametrize(
    "asserted",
    [
        "grad_output.is_cuda and grad_output.is_contiguous()",
        "not DEBUG and ROWS and grad_output.is_contiguous()",
        "grad_output.dim() == 2 and (ROWS and grad_output.is_contiguous())",
    ],
)
def test_an_assertion_that_also_fails_for_another_reason(asserted: str) -> None:
    assert _codes(ASSERTED.replace("grad_output.is_contiguous()", asserted)) == ["CTX502"]


def test_the_sizes_of_an_input_under_other_names() -> None:
    created = ASSERTED.replace("torch.empty_like(x)", "torch.empty(rows, columns)")
    named = created.replace("        out = ", "        rows, columns = x.shape\n        out = ")
    assert _codes(named) == ["CTX502"]
    assert _codes(named.replace("= x.shape", "= x.sum(0).shape")) == []
    copied = named.replace("        rows", "        x = x.contiguous()\n        y = x.detach()\n        rows")
    assert _codes(copied.replace("= x.shape", "= y.shape")) == ["CTX502"]
    assert _codes(copied.replace("x.contiguous()", "x.sum(0)").replace("= x.shape", "= y.shape")) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("torch.empty_like(x)", "torch.empty(1)"),
        ("torch.empty_like(x)", "torch.empty(())"),
        ("torch.empty_like(x)", "x.new()"),
        ("return out", "return out.sum()"),
        ("return out", "return torch.ops.demo.doubled(x)"),
        (".is_contiguous()", '.is_contiguous(), "call .contiguous() after a sum"'),
        ("assert", "grad_output = grad_output.contiguous()\n        assert"),
        ("is_contiguous()", "is_contiguous(memory_format=torch.channels_last)"),
        ("torch.empty_like(x)", "torch.empty(ROWS)"),
        ("torch.empty_like(x)", "torch.empty(2, 0)"),
        ("torch.empty_like(x)", "torch.empty(x.shape[:-1])"),
        ("torch.empty_like(x)", "torch.full(SHAPE, 2)"),
        ("torch.empty_like(x)", "torch.FloatTensor([2])"),
        ("torch.empty_like(x)", "torch.empty_like(x.sum())"),
        ("torch.empty_like(x)", "torch.empty_like(x)[0]"),
        ("forward(ctx, x):\n        out = torch.empty_like(x)", "forward(ctx, x, n=1):\n        out = torch.empty(n)"),
        ("        out = torch.empty_like(x)", "        n = 1\n        out = torch.empty(n, 1)"),
        ("        out = torch.empty_like(x)", "        shape = ()\n        out = torch.empty(shape)"),
        ("        assert", "        if DEBUG:\n            assert"),
        ("        assert", "        if not DEBUG:\n            return grad_output * 2\n        assert"),
        ("assert ", "assert not DEBUG or "),
        ("grad_output.is_contiguous()", "all(each.is_contiguous() for each in (grad_output,) if DEBUG)"),
        ("grad_output.is_contiguous()", "ROWS and (DEBUG or grad_output.is_contiguous())"),
        (
            "        assert grad_output.is_contiguous()",
            "        try:\n            assert grad_output.is_contiguous()\n        except AssertionError:\n            pass",
        ),
    ],
)
def test_an_assertion_that_may_hold(old: str, new: str) -> None:
    assert _codes(ASSERTED.replace(old, new)) == []


@pytest.mark.parametrize("test", ["ctx.needs_input_grad[0]", "grad_output is not None"])
def test_an_assertion_that_runs_at_each_backward(test: str) -> None:
    assert _codes(ASSERTED.replace("        assert", f"        if {test}:\n            assert")) == ["CTX502"]


JOINED = """
import torch


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.half() * 2

    @staticmethod
    def backward(ctx, grad_output):
        assert grad_output.is_contiguous()
        return grad_output.float() * 2


def one_sample(x, first):
    y = Doubled.apply(x.unsqueeze(0))
    return torch.cat([first, y], dim=1)


def promoted(x, others):
    return torch.cat([others.float(), Doubled.apply(x)], dim=1)
"""


def test_a_slice_may_be_contiguous() -> None:
    assert _codes(JOINED) == []
    torch = pytest.importorskip("torch")
    space: dict[str, Any] = {}
    exec(JOINED, space)
    x = torch.ones(4, 3, requires_grad=True)
    for joined, others in ((space["one_sample"], torch.ones(1, 4, 3).half()), (space["promoted"], torch.ones(4, 2))):
        joined(x, others).square().sum().backward()
    assert x.grad.shape == x.shape


PROJECTED = """\
import torch
from kernels import project, project_backward


class Project(torch.autograd.Function):
    @staticmethod
    def forward(ctx, points, translation):
        pixels, valid, pose_t, pose_r = project(points, translation)
        ctx.save_for_backward(points, translation)
        ctx.mark_non_differentiable(valid)
        return pixels, valid, pose_t, pose_r

    @staticmethod
    def backward(ctx, grad_pixels, grad_valid, grad_pose_t, grad_pose_r):
        del grad_valid, grad_pose_t, grad_pose_r
        return project_backward(grad_pixels, *ctx.saved_tensors)
"""


def test_floats_next_to_marked_outputs() -> None:
    assert _codes(PROJECTED) == ["CTX221"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        ctx.mark_non_differentiable(valid)\n", ""),
        ("mark_non_differentiable(valid)", "mark_non_differentiable(valid, pose_t, pose_r)"),
        ("pose", "tiles"),
        ("pose", "pose_index"),
        ("grad_pose", "_grad_pose"),
        ("        del grad", "        # grad_pose_t and grad_pose_r are unused\n        del grad"),
        ("        del grad_valid, grad_pose_t, grad_pose_r\n", "        assert grad_pose_t is grad_pose_r is None\n"),
    ],
)
def test_other_outputs_next_to_marked_ones(old: str, new: str) -> None:
    assert _codes(PROJECTED.replace(old, new)) == []


LAUNCHED = """
import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, scale_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    scale = tl.load(scale_ptr)
    tl.store(x_ptr + at, scale * tl.load(x_ptr + at, mask=at < n), mask=at < n)


class Squares(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, reduce):
        ctx.save_for_backward(x)
        squares = x * x
        return squares.mean() if reduce else squares.view(x.shape)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad_x = 2 * x.contiguous()
        scale_kernel[(x.numel() // 256,)](grad_x, grad_output.contiguous(), x.numel(), BLOCK=256)
        return grad_x, None


def weighted(x, weights):
    return (Squares.apply(x, False) * weights).sum()
"""


def test_a_call_that_takes_the_whole() -> None:
    assert _codes(LAUNCHED) == ["CTX411"]
    assert _codes(LAUNCHED.replace("if reduce else squares.view(x.shape)", "if not reduce else squares")) == []
    assert _codes(LAUNCHED.replace("(x, False)", "(x, True)")) == []
    refused = "if not reduce:\n            raise ValueError\n        squares = x"
    assert _codes(LAUNCHED.replace("squares = x", refused)) == []
    assert _codes(LAUNCHED.replace("(x, False)", "(x, weights is None)")) == []
    assert _codes(LAUNCHED.replace("weighted(x, weights):", "weighted(x, weights):\n  with torch.no_grad():")) == []
    assert _codes(LAUNCHED.replace("squares = x", "reduce = reduce or x.numel() > 9\n        squares = x")) == []
