"""Fixes keep a formatted file formatted."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from ctxlint.config.settings import Selection, Settings
from ctxlint.fixes.wrapping import laid_out
from tests.fixture_reader import rule_fixtures
from tests.linting import apply_fixes, lint

if TYPE_CHECKING:
    from pathlib import Path

FIXED = [fixed for fixture in rule_fixtures() for fixed in fixture.fixed if fixed.case.suffix == ".py"]
WITH_COMMENTS = ("CTX304-repeated-ctx-call", "CTX702-apply-keyword")
"""Here arguments with comments between them move."""


def _is_formatted(text: str, width: int = 88) -> bool:
    """Whether ``ruff format`` does not change a text."""
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--no-cache", f"--line-length={width}", "-"]
    run = subprocess.run(command, input=text, capture_output=True, encoding="utf-8", check=False)
    return run.returncode == 0 and run.stdout == text


def test_the_fixtures_stay_formatted(tmp_path: Path) -> None:
    """A ``fixed`` block is formatted if the block that it fixes is."""
    for at, each in enumerate(FIXED):
        (tmp_path / f"before{at}.py").write_text(each.case.marked.text, encoding="utf-8")
        (tmp_path / f"after{at}.py").write_text(each.text, encoding="utf-8")
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--no-cache", "--check", str(tmp_path)]
    run = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    off = {name for line in run.stdout.splitlines() for name in re.findall(r"(?:before|after)\d+", line)}
    passed = [at for at in range(len(FIXED)) if f"before{at}" not in off]
    assert len(passed) > len(FIXED) // 2
    failed = [str(FIXED[at].place) for at in passed if f"after{at}" in off]
    assert [each for each in failed if not each.startswith(WITH_COMMENTS)] == []
    assert len(failed) <= 2


STATEMENTS = (
    "ctx.save_for_backward(input_of_the_layer, weight_of_the_layer, bias_of_the_layer, out)",
    "ctx.save_for_backward(input_of_the_layer.contiguous(), weight_of_the_layer.contiguous(), bias_of_the_layer, out, mean)",
    "first_tensor, second_tensor, third_tensor, fourth_tensor, fifth_tensor = ctx.saved_tensors",
    "first_tensor, second_tensor, third_tensor, fourth_tensor, fifth_tensor, sixth_tensor_of_all = ctx.saved_tensors",
    "return gradient_of_the_input, gradient_of_the_weight, gradient_of_the_bias, None, None, None",
    "return gradient_of_the_input.to(input_of_the_layer.dtype).reshape(ctx.shape_of_input), None",
    "grad_input = compute_the_gradient(grad_output, weight_of_the_layer, bias_of_the_layer, None)",
    "grad_input = compute_the_gradient_of_the_input(grad_output, bias_of_the_layer).view(ctx.shape)",
    "grad_bias = grad_output.reshape(-1, weight_of_the_layer.shape[0]).sum(0) if ctx.with_bias else None",
    "grad_weight = torch.mm(gradient_of_the_output_transposed, input_of_the_layer) if ctx.needs_input_grad[1] else None",
    "(gradient_of_the_input,) = torch.autograd.grad(output_of_the_layer, input_of_the_layer, grad_out)",
    "return (gradient_of_the_input, gradient_of_the_weight, gradient_of_the_bias, None, None, None)",
    "shape_of_the_input_of_the_layer = shape_of_the_output_of_the_layer = input_of_the_layer_itself",
    "x = 1",
)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_is_laid_out_as_ruff_does(statement: str) -> None:
    found = laid_out(statement, "    ", 88)
    if found is None:  # no layout is better than one that may be wrong
        assert statement.startswith("shape_of")
        return
    assert _is_formatted(f"def f():\n{found}\n"), found


@pytest.mark.parametrize(
    "text",
    [
        "f(\n    a,  # the first\n    b,\n)",
        'x = """a\nb"""',
        "x = a + \\\n    b",
        "f(\n    a,\n)",
        "if x:",
        "x = 1; y = 2",
        "",
        "f((",
        "x = '",
    ],
)
def test_what_has_a_layout_of_its_own_is_left(text: str) -> None:
    assert laid_out(text, "", 88) is None


_LONG = """import torch


class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input_of_the_layer: torch.Tensor, weight_of_the_layer: torch.Tensor):
        ctx.save_for_backward(input_of_the_layer, weight_of_the_layer)

        ctx.product_of_both_of_these = input_of_the_layer * weight_of_the_layer

        return torch.exp(ctx.product_of_both_of_these)

    @staticmethod
    def backward(ctx, grad_output):
        input_of_the_layer, weight_of_the_layer = ctx.saved_tensors
        product = ctx.product_of_both_of_these
        grad = grad_output * product
        return grad * weight_of_the_layer, grad * input_of_the_layer
"""


@pytest.mark.parametrize("width", [60, 72, 79, 88, 100, 120])
@pytest.mark.parametrize("code", ["CTX110", "CTX301,CTX302", "ALL"])
def test_what_is_written_keeps_to_the_line_length(code: str, width: int) -> None:
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--no-cache", f"--line-length={width}", "-"]
    written = _LONG
    if code == "CTX110":
        product = "input_of_the_layer * weight_of_the_layer"
        written = _LONG.replace(f"        ctx.product_of_both_of_these = {product}\n\n", "")
        written = written.replace("ctx.product_of_both_of_these)", f"{product})")
    text = subprocess.run(command, input=written, capture_output=True, encoding="utf-8", check=True).stdout
    settings = Settings(command_line=Selection(select=tuple(code.split(","))), line_length=width)
    result = apply_fixes(text, "example.py", settings, unsafe=True)
    assert result != text
    assert _is_formatted(result, width), result
    assert apply_fixes(result, "example.py", settings, unsafe=True) == result


def test_the_layout_of_an_author_who_uses_no_formatter_stays() -> None:
    text = _LONG.replace("ctx.save_for_backward(input_of_the_layer,", "ctx.save_for_backward(input_of_the_layer, \n  ")
    settings = Settings(command_line=Selection(select=("CTX301", "CTX302")))
    result = apply_fixes(text, "example.py", settings, unsafe=True)
    assert "ctx.save_for_backward(input_of_the_layer, \n   weight_of_the_layer, product" in result, result


def test_half_typed_code_above() -> None:
    """A fix has the same layout while a bracket above the class is open."""
    function = """
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, first, second, times: int):
        return first * 2, second * 2

    @staticmethod
    def backward(ctx, of_first_output, of_second_output):
        return of_first_output.clone().contiguous(), of_second_output.clone().float()
"""
    found = [
        [each.content for edit in lint(text) if edit.code == "CTX203" and edit.fix for each in edit.fix.edits]
        for text in (function, f"x = ({function}")
    ]
    assert found[0] == found[1]
    assert "\n            None,\n" in found[0][0]
