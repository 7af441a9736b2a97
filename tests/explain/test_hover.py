"""Hover text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from markdown_it import MarkdownIt

from ctxlint.explain.contract import contract_of
from ctxlint.explain.hover_text import hover
from ctxlint.explain.inlay_hints import inlay_hints
from ctxlint.explain.markdown import code
from ctxlint.source.source import Position
from tests.explain.contracts import HEAD, file_of, point

if TYPE_CHECKING:
    from ctxlint.explain.contract_rows import Contract
    from ctxlint.model.function import FunctionClass

FILE = file_of("""
class Scaled(Function):
    @staticmethod
    def forward(ctx, x, mode="a|b"):
        ctx.save_for_backward(x.exp())
        ctx.mode = mode
        y = x * 2
        return y

    @staticmethod
    def backward(ctx, grad_y):
        (exponential,) = ctx.saved_tensors
        grad_x = None
        if ctx.needs_input_grad[0]:
            grad_x = grad_y * exponential if ctx.mode else grad_y
        return grad_x, None
""")


def _said(fragment: str) -> str:
    found = hover(FILE, *point(FILE, fragment))
    assert found is not None
    return found.markdown


def test_the_class_shows_the_whole_contract() -> None:
    assert _said("class Sca|led") == _said("def for|ward") == _said("def back|ward")
    assert _said("class Sca|led") == (
        "**Scaled**: contract with autograd\n\n"
        "|  | input | kind | gradient | only if |\n"
        "| --- | --- | --- | --- | --- |\n"
        "| 0 | `x` | tensor | `grad_x or None` | `ctx.needs_input_grad[0]` |\n"
        "| 1 | `mode` | non-tensor | `None` |  |\n\n"
        "|  | output | its gradient is passed as |  |\n"
        "| --- | --- | --- | --- |\n"
        "| 0 | `y` | `grad_y` | differentiable |\n\n"
        "|  | saved | read back as |\n"
        "| --- | --- | --- |\n"
        "| 0 | `x.exp()` | `exponential` (line 15) |\n\n"
        "- `ctx.mode`: set to `mode` (line 9); read in backward (line 18)"
    )


def test_each_of_several_returns_has_a_column() -> None:
    file = file_of("""
        class Either(Function):
            @staticmethod
            def forward(ctx, x, mode):
                ctx.mode = mode
                return x.exp()

            @staticmethod
            def backward(ctx, grad):
                if ctx.mode:
                    return grad * 2, None
                return grad, None
    """)
    found = hover(file, *point(file, "class Ei|ther"))
    assert found is not None
    assert "<br>" not in found.markdown
    above = HEAD.count("\n")
    assert (
        f"|  | input | kind | gradient, line {above + 10} | gradient, line {above + 11} |\n"
        "| --- | --- | --- | --- | --- |\n"
        "| 0 | `x` | tensor | `grad * 2` | `grad` |\n"
        "| 1 | `mode` | unknown | `None` | `None` |\n"
    ) in found.markdown


def test_an_input_says_what_it_is_and_why() -> None:
    assert _said("def forward(ctx, |x") == (
        "**input 0** of `Scaled`: `x`, tensor\n"
        "- `backward` returns a gradient for it (line 19)\n"
        "- `.exp()` is called (line 8)\n\n"
        "gradient: `grad_x or None` (line 19)\n\n"
        "- `grad_x = grad_y * exponential if ctx.mode else grad_y` (line 18)\n"
        "computed only if `ctx.needs_input_grad[0]`"
    )


def test_a_slot_says_whose_gradient_it_is() -> None:
    assert _said("return grad|_x, None") == (
        "gradient for **input 0**, `x` (tensor)\n\n"
        "`grad_x or None`\n\n"
        "- `grad_x = grad_y * exponential if ctx.mode else grad_y` (line 18)\n\n"
        "computed only if `ctx.needs_input_grad[0]`"
    )
    assert _said("return grad_x, No|ne") == "gradient for **input 1**, `mode` (non-tensor)\n\n`None`"


def test_parameters_of_backward_saved_tensors_and_attributes() -> None:
    assert _said("def backward(ctx, grad|_y") == "gradient of **output 0** of `Scaled`: `y` (line 11)\n\ndifferentiable"
    assert _said("(expo|nential,)") == (
        "**saved tensor 0**: `x.exp()` (line 8), by `save_for_backward`\n\nread back: `exponential` (line 15)"
    )
    assert _said("if ctx.mo|de else") == "`ctx.mode`: set to `mode` (line 9); read in backward (line 18)"


def test_other_code_says_nothing() -> None:
    assert hover(FILE, *point(FILE, "y = x |* 2")) is None


def test_only_the_contract_at_the_position_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "(Function):\n    @staticmethod\n    def forward(ctx, x):\n        return x * 2\n\n\n"
    file = file_of(f"class First{body}class Second{body}class Third{body}")
    computed: list[str] = []

    def counted(fn: FunctionClass) -> Contract:
        computed.append(fn.name)
        return contract_of(fn)

    monkeypatch.setattr("ctxlint.explain.contract.contract_of", counted)
    assert hover(file, *point(file, "class Sec|ond")) is not None
    start, end = (Position(*point(file, fragment)) for fragment in ("class Sec|ond", "class Th|ird"))
    inlay_hints(file, start, end)
    assert computed == ["Second", "Second", "Third"]


@pytest.mark.parametrize("ticks", [1, 2, 3, 5, 13])
def test_code_stays_code_whatever_it_holds(ticks: int) -> None:
    """A string with as many backticks as its fence, before an image that the editor would load."""
    text = f"x['{'`' * ticks} ![a](//x.y) \x1b\u202e']"
    (paragraph,) = (each for each in MarkdownIt().parse(code(text)) if each.type == "inline")
    [only] = paragraph.children or []
    assert (only.type, only.content) == ("code_inline", text.replace("\x1b", "\u241b").replace("\u202e", "\ufffd"))
