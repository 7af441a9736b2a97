"""A fix that several findings share, in the full output."""

from __future__ import annotations

from ctxlint.config.settings import Settings
from ctxlint.report import Report, render
from ctxlint.run.lint_file import check_source
from ctxlint.source.source import Source

_EXPONENTIAL = """\
import torch
from torch.cuda.amp import custom_bwd, custom_fwd


class Exp(torch.autograd.Function):
    @staticmethod
    @custom_fwd
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    @custom_bwd
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0]
"""


def _full(*texts: str) -> list[str]:
    results = tuple(check_source(Source(f"{name}.py", text), Settings()) for name, text in enumerate(texts))
    return "".join(render(Report(results), "full")).splitlines()


def _help(lines: list[str]) -> list[str]:
    return [line for line in lines if line.startswith("help: ")]


def test_the_diff_of_a_shared_fix_is_shown_once() -> None:
    lines = _full(_EXPONENTIAL)
    assert _help(lines) == [
        "help: Use `torch.amp.custom_fwd`",
        "help: Use `torch.amp.custom_bwd`: the same fix as on line 7",
    ]
    assert sum(line.endswith("+ from torch.amp import custom_bwd, custom_fwd") for line in lines) == 1
    assert sum(line.startswith("note: This is an unsafe fix") for line in lines) == 1


def test_another_file_shows_its_own() -> None:
    assert _help(_full(_EXPONENTIAL, _EXPONENTIAL)) == _help(_full(_EXPONENTIAL)) * 2
