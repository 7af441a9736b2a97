"""LibCST nodes converted from ``ast`` equal those that LibCST parses, except for their layout."""

from __future__ import annotations

import ast
import textwrap
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import libcst as cst
import pytest

import ctxlint
from ctxlint.model.index.bare_nodes import BareLayout, UnlikeLibCST
from ctxlint.model.index.from_ast import NotMade, class_from_ast, function_from_ast, statement_from_ast
from ctxlint.model.index.module_unit import read_unit
from ctxlint.model.syntax import children
from ctxlint.source.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROOT = Path(ctxlint.__file__).parent


def _meaning(node: cst.CSTNode) -> object:
    """A node and what is below it, without layout."""
    if isinstance(node, cst.SimpleString):
        return node.evaluated_value
    if isinstance(node, (cst.ConcatenatedString, cst.FormattedString)):
        return ["string", *map(_meaning, _fields_in(node))]
    if isinstance(node, (cst.Integer, cst.Float)):
        return node.evaluated_value
    kind = "IndentedBlock" if isinstance(node, cst.SimpleStatementSuite) else type(node).__name__
    operator = type(getattr(node, "operator", None)).__name__
    asynchronous = getattr(node, "asynchronous", None) is not None
    words = [value for name in ("value", "star") if isinstance(value := getattr(node, name, None), str)]
    return [
        kind,
        operator,
        asynchronous,
        *([] if isinstance(node, cst.Param) else words),
        *map(_meaning, _code_in(node)),
    ]


def _code_in(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The children of a node; statements that share a line have one each."""
    for child in children(node):
        if isinstance(child, cst.SimpleStatementLine):
            yield from child.body
        else:
            yield child


def _fields_in(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    for child in children(node):
        if isinstance(child, cst.FormattedStringExpression):
            yield child.expression
            for part in child.format_spec or ():
                yield from _fields_in(part)
        else:
            yield from _fields_in(child)


def _both(text: str) -> tuple[object, object]:
    """A function as it is made from ``ast``, and as LibCST reads it."""
    read = cst.parse_statement(text)
    assert isinstance(read, cst.FunctionDef)
    made = ast.parse(text).body[0]
    assert isinstance(made, ast.FunctionDef)
    return _meaning(function_from_ast(made, Source("f.py", text))), _meaning(read)


@pytest.mark.parametrize("path", sorted(_ROOT.glob("model/*.py")), ids=lambda path: path.stem)
def test_code_of_this_package(path: Path) -> None:
    """The code of ctxlint's own model is converted correctly."""
    unit = read_unit(Source(str(path), path.read_text(encoding="utf-8")))
    for name, record in unit.index.functions.items():
        read = unit.slices.find_function(name)
        if read is not None:
            assert _meaning(function_from_ast(record.node, unit.source)) == _meaning(read), name
    for name, each in unit.index.classes.items():
        found = unit.slices.find_class(name)
        assert found is not None
        assert _meaning(class_from_ast(each.node, unit.source)) == _meaning(found[0]), name


BODIES = {
    "strings": "a = 'x', \"it's\", r'\\n', '\\n', b'x', u'x', '''x''', 'é', ('x' 'y'), 'x' f'{y}', rb'\\x'",
    "string on two lines": "a = ('x'\n    'y'), '''x\ny''', 'x\\\ny'",
    "strings in brackets": "f('a'), g[\"b\" 'c'], 'é' + 'é' 'x'",
    "f-strings": "a = f'{x}', f'{x!r:>{width}}{{}}', f'', f'{x:.2f}' 'y' f'{z}'",
    "numbers": "a = 1, 0x1F, 1_000, 1.5, 1e5, .5, 1_0.0, True, None, ...",
    "subscripts": "a[1], a[1:2], a[:, ::2, ...], a[()], a[b, c], a[(b)], a[(b, c), d], a[i][j]",
    "tuples in subscripts": "a[(b,)], a[(b),], a[b,], a[(b, c)], a[(b), c], a[(b), (c)], a[((b), c)], a[((b), (c))],"
    " a[(('é'), b)], a[('é'), b,], a[(\n b,\n c\n )], a[(b)(c), d], a[((b, c), d),], a[f(b), c], a[(f(b), c)],"
    " a[(b for b in c), d], a[((b for b in c), d)]",
    "displays": "a = (), (1,), [], [1, *b], {1, 2}, {}, {1: 2, **c}, *d, (e, f)",
    "unpacking": "a, (b, *c) = d\n[e, f] = g\n*h, = i",
    "targets": "a = b = c\na.b += 1\na[0] @= b\na: int\nb: 'x' = 1",
    "calls": "f(), f(a, *b, c, k=1, *d, **e), f(x for x in y), f(a)(b).c()",
    "operators": "a + b - c * d / e // f % g ** h @ i & j | k ^ l << m >> n, -a, +b, ~c, not d",
    "boolean": "a and b and c or d or (e and (f and g)) or (h or i)",
    "comparisons": "a < b <= c > d >= e == f != g, h is i, j is not k, l in m, n not in o",
    "conditional": "a if b else c if d else e",
    "walrus": "if (a := b): pass",
    "lambdas": "lambda: 0, lambda a, /, b=1, *c, d, e=2, **f: a, lambda *, k: k",
    "comprehensions": "[a for a, b in c if d if e for f in g], {a for a in b}, {a: b for a, b in c}, (a for a in b)",
    "yields": "a = yield\nyield b\nyield from c",
    "nested functions": "@d.e\n@f(1)\nasync def g(a: int, /, b: str = 'x', *c, d=1, **e) -> int:\n  async for i in j: k\n"
    "  async with l as m, n: return [o async for o in p]",
    "nested class": "@d\nclass C(A, B[int], metaclass=M, **k):\n  '''text'''\n  x = 1\n  def f(self): nonlocal y",
    "if": "if a: b; c\nelif d:\n  e\nelse:\n  if f: g\n  else: pass",
    "loops": "for a, b in c:\n  break\nelse: d\nwhile e: continue\nelse: f",
    "with": "with a as (b, c), d as e.f, g: pass\nwith a: pass",
    "try": "try: a\nexcept (B, C) as d: e\nexcept F: raise\nexcept: raise G from h\nelse: i\nfinally: j",
    "statements": "global a, b\nassert c, 'd'\nassert e\ndel f\ndel g, h[0]\nraise I(j)\nreturn",
    "imports": "import a, b.c as d\nfrom . import e\nfrom ..f.g import h as i, j\nfrom k import (l)",
}


@pytest.mark.parametrize("name", BODIES)
def test_syntax(name: str) -> None:
    """One body for each kind of syntax."""
    made, read = _both(f"def f(x, y=1, *args: int, z: str, **more) -> None:\n{textwrap.indent(BODIES[name], '    ')}\n")
    assert made == read


@pytest.mark.parametrize("body", ["a[(  # one\n b, c)]", "x = 1j", "x = 1e999", "await x", "x = f'{x=}'"])
def test_left_to_libcst(body: str) -> None:
    """Not converted: what ``ast`` does not distinguish, and what is too rare."""
    with pytest.raises(NotMade):
        _both(f"def f():\n    {body}\n")


FILES = {
    "made from ast": "def helper(x):\n    return x, x * 2\n",
    "left to LibCST": "def helper(x):\n    y = 1j\n    return x, x * 2\n",
    "in a file that is broken": "def helper(x):\n    return x, x * 2\n\nbroken(\n",
}


@pytest.mark.parametrize("name", FILES)
def test_bare_functions_are_found(name: str) -> None:
    """A function is found however it was parsed, and is always the same object."""
    slices = read_unit(Source("f.py", FILES[name])).slices
    found = slices.find_bare_function("helper")
    read = slices.find_function("helper")
    assert found is not None
    assert read is not None
    assert _meaning(found) == _meaning(read)
    assert slices.find_bare_function("helper") in (found, read)


# The layout, when it is asked for


def _statements(text: str) -> Iterator[tuple[cst.CSTNode, str]]:
    """The statements of a text that can be converted, each with its text."""
    source = Source("f.py", text)
    for node in ast.parse(text).body:
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
        with suppress(NotMade):
            yield statement_from_ast(node, source), source.lines(first, node.end_lineno or node.lineno)


@pytest.mark.parametrize("path", sorted(_ROOT.glob("model/*.py")), ids=lambda path: path.stem)
def test_layout_of_this_package(path: Path) -> None:
    """LibCST's whitespace, commas and brackets are filled into the same nodes."""
    for top, text in _statements(path.read_text(encoding="utf-8")):
        layout = BareLayout(top, partial(cst.parse_module, text))
        assert layout.module.body[0] is top
        assert layout.module.code == text


@pytest.mark.parametrize("name", BODIES)
def test_layout_of_syntax(name: str) -> None:
    """All kinds of syntax."""
    body = textwrap.indent(BODIES[name], "    ")
    for top, text in _statements(f"@a\ndef f(x, y=1, *args: int, z: str, **more) -> None:\n{body}\n"):
        assert BareLayout(top, partial(cst.parse_module, text)).module.code == text


def test_layout_comes_when_a_field_of_it_is_read() -> None:
    """Before that, LibCST does not parse."""
    text = "def f(x):\n    return (x +  1)  # why\n"
    [(top, _)] = _statements(text)
    asked: list[str] = []
    layout = BareLayout(top, lambda: asked.append(text) or cst.parse_module(text))  # type: ignore[func-returns-value]
    assert isinstance(top, cst.FunctionDef)
    line = top.body.body[0]
    assert isinstance(line, cst.SimpleStatementLine)
    value = cst.ensure_type(line.body[0], cst.Return).value
    assert isinstance(value, cst.BinaryOperation)
    assert isinstance(value.left, cst.Name)
    assert asked == []
    assert len(value.lpar) == 1
    assert cst.Module([]).code_for_node(value) == "(x +  1)"
    assert asked == [text]
    assert layout.module.code == text


def test_nodes_of_nobody_have_the_usual_layout() -> None:
    """As for a function of another file that is only summarised."""
    text = "def f(x):\n    return (x +  1)\n"
    node = ast.parse(text).body[0]
    assert isinstance(node, ast.FunctionDef)
    made = function_from_ast(node, Source("f.py", text))
    assert cst.Module([made]).code == "def f(x):\n    return x + 1\n"
    with pytest.raises(AttributeError):
        made.nothing  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("other", ["def f(x):\n    return x, x\n", "def f(:\n", "a = 1\nb = 2\n"])
def test_another_statement_is_refused(other: str) -> None:
    """Layout never comes from another statement."""
    [(top, _)] = _statements("def f(x):\n    return x + 1\n")
    with pytest.raises(UnlikeLibCST):
        _ = BareLayout(top, partial(cst.parse_module, other)).module


def test_what_libcst_reads_otherwise_is_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The findings are those of a file that LibCST parsed from the start."""
    text = (Path(__file__).parents[2] / "fixtures/programs/broken").glob("*.py")
    source = next(iter(sorted(text))).read_text(encoding="utf-8")
    before = ctxlint.lint_source(source)
    assert before
    monkeypatch.setattr("ctxlint.model.index.bare_nodes._complete", _refuse)
    assert ctxlint.lint_source(source) == before


def _refuse(*_: object) -> None:
    raise UnlikeLibCST
