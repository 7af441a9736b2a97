"""Newer syntax on an older Python: rewritten for ``ast`` without moving any line or column."""

from __future__ import annotations

import ast
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

from ctxlint.model.index.older_syntax import in_older_syntax, may_hold_newer_syntax
from ctxlint.model.index.parsing import parse
from ctxlint.source.source import Source
from tests.linting import lint

if TYPE_CHECKING:
    from pathlib import Path

_EXCEPT = "try:\n    y = f(x)\nexcept* (ValueError, KeyError) as e:\n    z = g(e)\nexcept *TypeError:\n    pass\n"
_NEWER = {
    "except": _EXCEPT,
    "crlf": _EXCEPT.replace("\n", "\r\n"),
    "stars": "y = x[*a, 1]\ndef f(x, *args: *Ts):\n    return g(x)\n",
    "parameters": "class A[T: (int, str), *Ts](B):\n    def f[\n        T\n    ](x: T) -> T:\n        return g(x)\n",
    "type": "type X[T] = list[T]\ny = X\n",
    "strings": 'y = f"{x["a"]} {f"{g(1)}"}" + h(x)\nz = f"{\n    x\n}"\n',
}


@pytest.mark.parametrize("name", _NEWER)
def test_the_oldest_python_can_read_it_at_the_same_place(name: str) -> None:
    source = Source("a.py", _NEWER[name])
    older = in_older_syntax(source, 1, source.line_count)
    if name != "strings":  # which a newer Python reads as they are
        assert older is not None
        ast.parse(older, feature_version=(3, 10))
    lines = source.text.splitlines()
    module = parse(source)
    assert not module.broken
    for tree in (module.module, ast.parse(older or "")):
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id != "X":  # the name of a type, which moves to the margin
                assert lines[node.lineno - 1][node.col_offset :].startswith(node.id)


@pytest.mark.parametrize(
    "text",
    [
        "x = 1\n",
        "match = f(x)\nprint(match)\n",
        "match x:\n",
        "match x:\n    case 1:\n        pass\n",
        "if x:\n    y = (\n",
        "f'{x}'\n",
    ],
)
def test_what_holds_nothing_newer_or_is_broken_stays(text: str) -> None:
    source = Source("a.py", text)
    assert in_older_syntax(source, 1, source.line_count) is None


_FUNCTION = textwrap.dedent(
    """
    import torch


    class Scale[T](torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor: float, mode):
            match mode:
                case "plain":
                    ctx.x = x
                case _:
                    ctx.x = x
            return x * factor

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * ctx.x


    type Pair = tuple[torch.Tensor, torch.Tensor]
    match torch.__version__:
        case "2.1":
            y = Scale.apply(torch.ones(2), factor=1.0, mode="plain")
        case _:
            z = Scale.apply(torch.ones(2))
    """
)


def test_the_findings_are_those_of_a_newer_python() -> None:
    found = [(each.span.start.line, each.span.start.column, each.code) for each in lint(_FUNCTION)]
    assert found == [(17, 9, "CTX201"), (23, 13, "CTX702"), (25, 13, "CTX701")]


def test_a_file_that_is_wrong_as_well_is_still_said_to_be() -> None:
    found = [(each.span.start.line, each.code) for each in lint(f"{_FUNCTION}\nx = = 1\n")]
    assert found == [(17, "CTX201"), (23, "CTX702"), (25, "CTX701"), (27, "CTX901")]


def test_bare_carriage_returns_and_an_encoding_of_its_own(tmp_path: Path) -> None:
    from ctxlint import lint_paths

    text = "# -*- coding: latin-1 -*-\n# caf\u00e9\n" + _FUNCTION.replace("[T]", "").replace("type Pair = ", "pair = ")
    for ending in ("\r", "\r\n", "\n"):
        file = tmp_path / "latin.py"
        file.write_bytes(text.replace("\n", ending).encode("latin-1"))
        assert [each.code for each in lint_paths([file])] == ["CTX201", "CTX702", "CTX701"]


@pytest.mark.parametrize("text", ["f(['T'], x['t'], 'tr', type(x))", "# the type of x", "x = 'T''T'"])
def test_what_only_looks_newer_costs_no_parse(text: str) -> None:
    assert not may_hold_newer_syntax(text)


@pytest.mark.parametrize(
    ("since", "text"),
    [
        ((3, 12), "type X = int"),
        ((3, 12), "type X[T] = list[T]"),
        ((3, 12), "type \\\n X \\\n = int"),
        ((3, 14), "x = t'a't'b'"),
        ((3, 14), 'x = (rt"a")'),
    ],
)
def test_what_may_be_newer(since: tuple[int, int], text: str) -> None:
    assert may_hold_newer_syntax(text) is (sys.version_info < since)
