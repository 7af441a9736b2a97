"""No text makes ctxlint fail: generated Python, mutated and mixed programs, and noise.

Each test lints through the public API with every rule on. A rule or the model that raises is an internal error, and
fails. `HYPOTHESIS_PROFILE=long pytest tests/test_fuzz.py` tries a hundred times as many texts.
"""

from __future__ import annotations

import warnings

import hypothesmith
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.fixture_reader import programs, rule_fixtures
from tests.linting import lint_everything

PROGRAMS = [program.marked.text for folder in ("clean", "broken") for program in programs(folder)]
CASES = [case.marked.text for fixture in rule_fixtures() for case in fixture.cases]
TEXTS = PROGRAMS + CASES

# Pieces of Functions, and characters that are hard for tokenizers.
TOKENS = st.sampled_from([
    "(", ")", "[", "]", "{", "}", ":", ",", "=", "*", "**", "->", ":=", "@", ".", ";", "\\", "#", '"', "'", '"""',
    "f'{", "\n", "\r", "\r\n", "\t", "\f", "\v", " ", "    ", "\x00", "\x1c", "\u2028", "\ufeff", "é",
    "\U0001f600", "\ud800",
    "0", "1", "None", "ctx", "self", "cls", "args", "grad_output", "lambda", "return", "yield", "await", "async ",
    "def f():", "class A:", "if x:", "else:", "for x in y:", "while x:", "try:", "except:", "finally:", "with x:",
    "match x:", "case _:", "del x", "global x", "nonlocal x", "raise", "import torch", "from x import *",
    "ctx.save_for_backward(x)", "ctx.saved_tensors", "ctx.needs_input_grad[0]", "ctx.mark_dirty(x)", "ctx.x = x",
    "setattr(ctx, 'x', x)", "@staticmethod", "super().forward(ctx)", "torch.autograd.Function", "Function",
    "(None,) * 3", "*args", "# noqa", "# ctxlint: ignore[CTX101]",
])  # fmt: skip


@st.composite
def torn(draw: st.DrawFn) -> str:
    """A fixture with random changes: a range deleted, doubled, moved or replaced by a token."""
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 60)))
        stretch = text[start:end]
        change = draw(st.sampled_from(["drop", "double", "move", "replace", "cut"]))
        if change == "drop":
            text = text[:start] + text[end:]
        elif change == "double":
            text = text[:end] + stretch + text[end:]
        elif change == "move":
            rest = text[:start] + text[end:]
            place = draw(st.integers(0, len(rest)))
            text = rest[:place] + stretch + rest[place:]
        elif change == "replace":
            text = text[:start] + draw(TOKENS) + text[end:]
        else:
            text = text[:start]
    return text


@st.composite
def stirred(draw: st.DrawFn) -> str:
    """A range of lines of one fixture, inserted into another one."""
    first, second = (draw(st.sampled_from(TEXTS)).split("\n") for _ in range(2))
    start, end = sorted(draw(st.tuples(st.integers(0, len(first)), st.integers(0, len(first)))))
    place = draw(st.integers(0, len(second)))
    return "\n".join(second[:place] + first[start:end] + second[place:])


@given(torn())
def test_torn_programs(text: str) -> None:
    lint_everything(text)


@given(stirred())
def test_stirred_programs(text: str) -> None:
    lint_everything(text)


@given(st.lists(TOKENS, max_size=60).map("".join))
def test_noise(text: str) -> None:
    lint_everything(f"import torch.autograd.Function\n{text}")


@given(st.text(max_size=200))
@example("")
@example("\ufeffclass F(torch.autograd.Function): pass")
@example("class F(torch.autograd.Function):")
@example("\x00torch.autograd.Function")
def test_any_text(text: str) -> None:
    lint_everything(text)
    lint_everything(f"# torch.autograd.Function\n{text}")


def _in_a_function(body: str) -> str:
    indented = "".join(f"        {line}\n" for line in body.split("\n"))
    return (
        "import torch\n\n\nclass Made(torch.autograd.Function):\n"
        f"    @staticmethod\n    def forward(ctx, x, *args):\n{indented}        return x * 2\n\n"
        f"    @staticmethod\n    def backward(ctx, grad):\n{indented}        return grad * 2\n"
    )


@given(st.deferred(hypothesmith.from_grammar))  # not when tests are collected: it builds a parser for seconds
def test_any_python(text: str) -> None:
    lint_everything(f"{text}\n# torch.autograd.Function\n")
    lint_everything(_in_a_function(text))


@settings(max_examples=settings().max_examples // 4)  # such a text takes long to make up
@given(hypothesmith.from_node())
def test_any_python_as_libcst_makes_it(text: str) -> None:
    lint_everything(f"# torch.autograd.Function\n{text}")
    lint_everything(_in_a_function(text))


@pytest.mark.parametrize("text", PROGRAMS)
def test_every_beginning_of_a_program(text: str) -> None:
    """A file while it is typed: cut at regular offsets."""
    for end in range(0, len(text), 97):
        lint_everything(text[:end])


def test_the_users_warnings_are_not_ours() -> None:
    """Code for which Python's parser warns is linted like any other, even if warnings are errors."""
    text = PROGRAMS[0] + "\nodd = '\\d', 1 is 1\n"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert lint_everything(text) == lint_everything(PROGRAMS[0])
