"""Positions and layout found from a part of a statement equal those that LibCST gives for all of it."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import libcst as cst
import pytest

import ctxlint
from ctxlint.config.settings import Settings
from ctxlint.model.index import bare_nodes
from ctxlint.model.index.ast_places import AstPlaces
from ctxlint.model.index.bare_nodes import BareLayout
from ctxlint.model.index.from_ast import NotMade, statement_from_ast
from ctxlint.model.index.layout_pieces import nodes_in
from ctxlint.model.syntax import FIELDS_OF_CODE
from ctxlint.run.lint_file import lint_source
from ctxlint.source.positions import Places
from ctxlint.source.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROOT = Path(ctxlint.__file__).parent
_ODD = """
@(a)
@b.c(
    1,  # why
)
class A(B, metaclass=(C)):

    # above
    @staticmethod
    async def f(x, /, y=(1), *args: int, z: str = "a" "b", **more) -> None:
        if (x): return (x), (y)
        elif (y) and not (z):  # é
            x = 1; y = (2)
        elif z:
            a[b, c:(d)], e = (f, (g)), h(*l, j=(k), **(i))
        else:
            return (yield (x))
        with a(x) as b, (c):
            del a, b[(c)]
        for a, (b) in ((c), d): x += (1)
        while (n := f"{x!r:>{(y)}}" "é"):
            pass
        try:
            raise (E) from (e)
        except (A, B) as e:
            assert (x), ("é", x)
        finally:
            x = lambda a, *b: (a), [i for (i) in j if (i)], (i for i in j), {(a): (b), **c}
        é = ((x)).y((z for z in x), not (a), a if (b) else (c))
        x: (int) = \\
            3
"""


def _statements(text: str) -> Iterator[tuple[cst.CSTNode, BareLayout, str, list[str]]]:
    """The statements of a text that can be made from ``ast``, with what is asked of LibCST about all of one."""
    source, asked = Source("f.py", text), list[str]()
    for node in ast.parse(text).body:
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
        made_from: dict[int, ast.AST] = {}
        try:
            top = statement_from_ast(node, source, made_from)
        except NotMade:
            continue
        part = source.lines(first, node.end_lineno or node.lineno)

        def parse(part: str = part) -> cst.Module:
            asked.append(part)
            return cst.parse_module(part)

        yield top, BareLayout(top, parse, AstPlaces(part, first, made_from)), part, asked


def _pairs(one: cst.CSTNode, other: cst.CSTNode) -> Iterator[tuple[cst.CSTNode, cst.CSTNode]]:
    yield one, other
    for name in FIELDS_OF_CODE[type(one)]:
        for here, there in zip(nodes_in(getattr(one, name)), nodes_in(getattr(other, name))):
            yield from _pairs(here, there)


def _same(one: object, other: object) -> bool:
    if isinstance(one, cst.CSTNode):
        return isinstance(other, cst.CSTNode) and one.deep_equals(other)
    if isinstance(one, (tuple, list)):
        return isinstance(other, (tuple, list)) and len(one) == len(other) and all(map(_same, one, other))
    return one == other


def _compare(text: str) -> int:
    """Compare all places, and the parentheses of expressions; gives how many places were known."""
    known = 0
    for top, layout, part, _asked in _statements(text):
        module = cst.parse_module(part)
        places = Places(module, part)
        for bare, read in list(_pairs(top, module.body[0])):
            span = layout.span(bare)
            known += span is not None
            assert span in (None, places.span(read)), (bare, part)
            if not isinstance(read, cst.BaseExpression) or isinstance(read, cst.ConcatenatedString):
                continue
            for name in ("lpar", "rpar"):
                assert _same(getattr(bare, name), getattr(read, name)), (read, part)
                for ours, theirs in zip(getattr(bare, name), getattr(read, name)):
                    assert layout.span(ours) in (None, places.span(theirs))
    return known


@pytest.mark.parametrize("path", sorted(_ROOT.glob("model/analyses/[a-z]*.py")), ids=lambda path: path.stem)
def test_places_and_parentheses_of_this_package(path: Path) -> None:
    assert _compare(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("text", [_ODD, textwrap.indent(_ODD, "    ").replace("\n", "\nif 1:\n", 1), "é = 1\n" + _ODD])
def test_places_and_parentheses_of_odd_code(text: str) -> None:
    _compare(text)
    _compare(text.replace("\n", "\r\n"))


def test_the_condition_of_a_branch_is_read_without_its_class() -> None:
    text = "class A:\n    def f(x):\n        if (x and\n            (y)):\n            return (x)\n        return x\n"
    [(top, layout, _, asked)] = _statements(text)
    [test] = [each.test for each, _ in _pairs(top, top) if isinstance(each, cst.If)]
    assert cst.Module([]).code_for_node(test) == "(x and\n    (y))"  # less what all lines begin with
    [opening] = test.lpar
    found = layout.span(opening)
    assert found is not None
    assert tuple(found.start) == (3, 12)
    assert asked == []
    assert layout.module.code == text
    assert asked == [text]


_LAUNCHES = """
import torch
import triton
from torch.autograd import Function


@triton.jit
def _copy(x, y, n):
    pass


def launch(x, y):
    y.view(-1)
    grid = (1,)
    _copy[grid](x, y, y.numel())
    return y


class Copy(Function):
    @staticmethod
    def forward(ctx, x):
        grid = lambda meta: (1,)
        y = torch.empty_like(x)
        _copy[grid](x, y, x.numel())
        return launch(x, y)

    @staticmethod
    def backward(ctx, grad):
        return launch(grad, torch.empty_like(grad))
"""


def test_launches_without_findings_need_no_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cst.Module, "code_for_node", lambda *_: pytest.fail("code was written"))
    monkeypatch.setattr(bare_nodes, "read_piece", lambda *_: pytest.fail("a piece was parsed"))
    assert lint_source(Source("a.py", _LAUNCHES), Settings()) == []
