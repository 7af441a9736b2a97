"""Notes in the full output."""

from __future__ import annotations

import json
from pathlib import Path

from ctxlint.config.settings import Settings
from ctxlint.report import Report, render
from ctxlint.run.lint_file import check_source
from ctxlint.source.source import Source

_SQUARE = """\
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor):
        ctx.x = x
        return x * x

    @staticmethod
    def backward(ctx, grad):
        print(ctx.x, ctx.x.shape)
        scale = 2 * ctx.x
        shift = 0 * ctx.x
        return grad * scale + shift
"""


def _notes(text: str) -> list[str]:
    report = Report((check_source(Source("a.py", text), Settings()),))
    return [line for line in "".join(render(report, "full")).splitlines() if line.startswith("note: `")]


def test_places_with_the_same_message_are_one_note() -> None:
    assert _notes(_SQUARE) == ["note: `ctx.x` is read here (also on lines 13, 14)"]


def test_places_on_one_line_are_named_once() -> None:
    assert _notes(_SQUARE.replace("2 * ctx.x", "2").replace("0 * ctx.x", "0")) == ["note: `ctx.x` is read here"]
    assert _notes(_SQUARE.replace("0 * ctx.x", "0")) == ["note: `ctx.x` is read here (also on line 13)"]


def test_json_has_the_notes() -> None:
    report = Report((check_source(Source("a.py", _SQUARE), Settings()),))
    (record,) = json.loads("".join(render(report, "json")))
    assert [each["location"]["row"] for each in record["related"]] == [12, 12, 13, 14]
    assert record["related"][0] == {
        "cell": None,
        "end_location": {"column": 20, "row": 12},
        "filename": str(Path("a.py").resolve()),
        "location": {"column": 15, "row": 12},
        "message": "`ctx.x` is read here",
    }
