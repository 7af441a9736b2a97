"""Texts that pass the nesting check do not crash the parser: tried in separate processes, in a thread with a small stack."""

from __future__ import annotations

import ast
import glob
import json
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import libcst as cst
import pytest

from ctxlint.model.index.nested_parts import parts_of
from ctxlint.source.nesting import part_too_deep, too_deep, too_deep_for_ast
from ctxlint.source.slices import parse_slice, parse_text
from ctxlint.source.source import Source
from tests.linting import lint

if TYPE_CHECKING:
    from collections.abc import Callable

PACKAGE = os.path.join(os.path.dirname(__file__), "..", "..", "ctxlint")
SMALL_STACK = 512 * 1024

PARSE_ALL = """
import ast, json, sys, threading, warnings
reader, stack, texts = sys.argv[1], int(sys.argv[2]), json.load(sys.stdin)
warnings.simplefilter("ignore")
if reader == "libcst":
    import libcst
    from ctxlint.source.nesting import with_room

def parse(text):
    if reader == "ast":
        ast.parse(text)
    else:
        module = with_room(text, lambda: libcst.parse_module(text))
        module.visit(libcst.CSTVisitor())
        assert module.code == text

def run():
    for at, text in enumerate(texts):
        print(at, flush=True)
        try:
            parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            pass
        except Exception as error:
            if type(error).__module__.split(".")[0] != "libcst":
                raise
    print("done")

threading.stack_size(stack)
thread = threading.Thread(target=run)
thread.start()
thread.join()
"""


def parse_all(texts: list[str], reader: str) -> None:
    """Parse texts in a thread with a small stack of another process; fails where that process dies."""
    child = subprocess.run(
        [sys.executable, "-c", PARSE_ALL, reader, str(SMALL_STACK)],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    reached = child.stdout.split()
    assert reached, child.stderr
    assert reached[-1] == "done", f"{reader} died of {texts[int(reached[-1])][:300]!r}\n{child.stderr[-500:]}"


def in_thread(function: Callable[[], object]) -> object:
    """The result of ``function`` outside the main thread, where CPython does not check its stack."""
    results: list[object] = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


def refused(text: str, reader: str) -> bool:
    if reader == "libcst":
        return too_deep(text) is not None
    return in_thread(lambda: too_deep_for_ast(text)) is not None


def largest_that_passes(shape: Callable[[int], str], reader: str, most: int = 4000) -> int:
    """Twice as large each time, then by halves: most limits are low, and a large text takes long."""
    passes, fails = 0, 1
    while fails < most and not refused(shape(fails), reader):
        passes, fails = fails, min(2 * fails, most)
    while fails - passes > 1:
        middle = (passes + fails) // 2
        if refused(shape(middle), reader):
            fails = middle
        else:
            passes = middle
    return passes


def around(before: str, inside: str, after: str, statement: str = "x = {}\n") -> Callable[[int], str]:
    return lambda size: statement.format(before * size + inside + after * size)


def blocks(header: str) -> Callable[[int], str]:
    def shape(size: int) -> str:
        lines = [" " * at + line for at in range(size) for line in header.format(pad=" " * at).split("\n")]
        return "\n".join([*lines, " " * size + "pass\n"])

    return shape


# Each kills LibCST at some size, in a thread if not in the main one.
DEADLY: dict[str, Callable[[int], str]] = {
    "parentheses": around("(", "1", ")"),
    "tuples": around("(", "1", ",)"),
    "lists": around("[", "", "]"),
    "dicts": around("{{1: ".replace("{{", "{"), "1", "}"),
    "calls in calls": around("f(", "1", ")"),
    "keyword arguments": around("f(a=", "1", ")"),
    "starred arguments": around("f(*", "a", ")"),
    "subscripts in subscripts": around("a[", "1", "]"),
    "slices": around("a[1:", "1", "]"),
    "unclosed": around("(", "", ""),
    "targets": lambda size: "(" * size + "x" + ")" * size + " = 1\n",
    "targets of for": lambda size: f"for {'(' * size}x{')' * size} in y: pass\n",
    "comprehensions": around("[a for a in ", "b", "]"),
    "assignment expressions": around("(a := ", "1", ")"),
    "yields": around("(yield ", "1", ")"),
    "annotations": lambda size: f"x: {'A[' * size}1{']' * size}\n",
    "nested f-strings": around("f'{", "1", "}'"),
    "brackets in an f-string": lambda size: f"x = f'{{{'(' * size}1{')' * size}}}'\n",
    "format specifications": lambda size: f"x = f'{'{a:' * size}1{'}' * size}'\n",
    "minus": around("-", "1", ""),
    "not": around("not ", "1", ""),
    "attributes": around("", "a", ".b"),
    "calls of calls": around("", "a", "()"),
    "method calls": around("", "a", ".b()"),
    "subscripts of subscripts": around("", "a", "[0]"),
    "sums": around("", "1", " + 1"),
    "powers": around("", "1", " ** -1"),
    "or": around("", "1", " or 1"),
    "or without a space": around("1or ", "1", ""),
    "and over lines": lambda size: "x = (1" + "\nand 1" * size + ")\n",
    "conditionals": around("", "1", " if 1 else 1"),
    "conditionals without a space": around("1if 1else ", "1", ""),
    "lambdas": around("lambda: ", "1", ""),
    "lambdas as defaults": around("lambda a=", "1", ": 1"),
    "lambdas as second defaults": around("lambda a, b=", "1", ": 1"),
    "strings": around("'a' ", "", ""),
    "f-strings": around("f'a' ", "", ""),
    "clauses of a comprehension": lambda size: f"x = [a{' for a in b' * size}]\n",
    "dotted imports": lambda size: f"import a{'.b' * size}\n",
    "elif": lambda size: "if 1: pass\n" + "elif 1: pass\n" * size,
    "if": blocks("if a:"),
    "else": blocks("if a: pass\n{pad}else:"),
    "for": blocks("for a in b:"),
    "with": blocks("with a:"),
    "try": blocks("try: pass\n{pad}except a:"),
    "def": blocks("def f():"),
    "class": blocks("class A:"),
    "everything": around("-(not [lambda: f(a ** ", "1", ")])"),
    "brackets and a chain in each": around("(a.b.c.d + ", "1", ")"),
}


@pytest.mark.parametrize("shape", DEADLY.values(), ids=DEADLY)
def test_what_kills_libcst_is_refused(shape: Callable[[int], str]) -> None:
    assert refused(shape(700), "libcst")


@pytest.mark.parametrize("reader", ["libcst", "ast"])
def test_the_largest_that_passes_kills_nothing(reader: str) -> None:
    parse_all([shape(largest_that_passes(shape, reader)) for shape in DEADLY.values()], reader)


@pytest.mark.parametrize("reader", ["libcst", "ast"])
def test_deep_expressions_in_deep_blocks_kill_nothing(reader: str) -> None:
    texts = []
    for shape in DEADLY.values():
        inner = shape(3)
        if "\n" in inner.rstrip("\n"):
            continue
        for depth in (4, 10, 90):
            above = "".join(f"{' ' * at}try: pass\n{' ' * at}except a:\n" for at in range(depth))

            def nested(size: int, shape: Callable[[int], str] = shape, above: str = above, depth: int = depth) -> str:
                return above + " " * depth + shape(size)

            texts.append(nested(largest_that_passes(nested, reader)))
    parse_all(texts, reader)


WRAPPERS = [
    *[
        ("(", ")"),
        ("[", "]"),
        ("(", ",)"),
        ("{1: ", "}"),
        ("{", "}"),
        ("f(", ")"),
        ("f(a=1, b=", ", c=2)"),
        ("a[", "]"),
    ],
    *[("a[b:c:", "]"), ("-", ""), ("not ", ""), ("", ".b"), ("", ".b()"), ("", "[0]"), ("1 + ", ""), ("", " * 2")],
    *[("2 ** ", ""), ("", " or 1"), ("1or ", ""), ("1if 1else ", ""), ("lambda: ", ""), ("lambda a=", ": 1")],
    *[
        ("lambda a, *b, c=", ": 1"),
        ("1 if ", " else 2"),
        ("a if b else ", ""),
        ("'a' ", ""),
        ("f'a' ", ""),
        ("f'{", "}'"),
    ],
    *[("f'{a:{", "}}'"), ('f"{', '}"'), ("[a for a in ", "]"), ("{a: b for a in b if ", "}"), ("(yield ", ")")],
    *[("(await ", ")"), ("{**", "}"), ("(*", ",)"), ("(\n", "\n)"), ("[ # c\n", "]"), ("\\\n", ""), ("(a := ", ")")],
]
STATEMENTS = [
    *[
        "{}",
        "x = {}",
        "return {}",
        "x: {} = 1",
        "del a[{}]",
        "def f(a={}): pass",
        "class A({}): pass",
        "@{}\ndef f(): pass",
    ],
    *["with {} as b: pass", "for a in {}: pass", "x[{}] = 1", "match {}:\n  case 1: pass", "if a: x = {}", "print({}"],
    *["x = {} $", "x = {} a b", "elif {}: pass", "try: pass\nexcept {}: pass", "type X = {}", "x, y = {}", "global {}"],
]


@pytest.mark.parametrize("reader", ["libcst", "ast"])
def test_random_nesting_kills_nothing(reader: str) -> None:
    chance = random.Random(20)
    texts = []
    for _ in range(150):
        wrappers = [chance.choice(WRAPPERS) for _ in range(chance.choice([1, 2, 3, 5]))]
        statement = chance.choice(STATEMENTS)

        def shape(size: int, wrappers: list[tuple[str, str]] = wrappers, statement: str = statement) -> str:
            layers = [wrappers[at % len(wrappers)] for at in range(size)]
            before = "".join(before for before, _ in layers)
            after = "".join(after for _, after in reversed(layers))
            return statement.replace("{}", before + "1" + after) + "\n"

        texts.append(shape(largest_that_passes(shape, reader, most=1000)))
    parse_all(texts, reader)


PATTERNS = [
    ("(", ")"),
    ("[", "]"),
    ("(", ",)"),
    ("{1: ", "}"),
    ("A(", ")"),
    ("A(b=", ")"),
    ("(1 | ", ")"),
    ("(", " as b)"),
]


def test_patterns_that_take_libcst_for_ever_are_refused() -> None:
    for before, after in PATTERNS:
        for size in (8, 12, 40):
            assert too_deep(f"match a:\n    case {before * size}1{after * size}: pass\n")
    assert too_deep("del " + "(" * 40)
    assert too_deep("if a:\n    del " + "(" * 40)


def test_patterns_that_pass_are_read_in_time() -> None:
    texts = [
        f"match a:\n    case {before * 7}1{after * 7}{rest}\n"
        for before, after in PATTERNS
        for rest in (": pass", " a b: pass")
    ]
    assert not any(too_deep(text) for text in texts)
    start = time.monotonic()
    parse_all(texts, "libcst")
    assert time.monotonic() - start < 60


ORDINARY = {
    "a long list": "x = [" + "-1.5, " * 50_000 + "]\n",
    "a long table": "x = [\n" + "    [1, -2, (3.5, 'a'), f(b)[0]],\n" * 10_000 + "]\n",
    "a long dict": "x = {\n" + "    'key': {'a': [1, 2], 'b': lambda x: x + 1},\n" * 10_000 + "}\n",
    "many statements": "x = f(a)[0].b + 1\n" * 20_000,
    "many comments": "# ((( [[[ {{{ ''' \"\n" * 20_000 + "x = 1\n",
    "a long docstring": 'def f():\n    """' + "((( [[[ {{{ not -- '' # \\n\n    " * 5_000 + '"""\n',
    "brackets in strings": "x = '((((((((' + \"[[[[[[[[\" + r'\\(' + b'{{{{{{'\n" * 5_000,
    "a template": "x = f'''\n" + "<b>{a.b(c)!r:>{width}} {{ ( }}</b>\n" * 2_000 + "'''\n",
    "f-strings": 'x = f\'{a["b"]}, {c:.3f} ({d!r})\' + rf"\\d{{2}} {e} \\( "\n' * 5_000,
    "quotes in f-strings": "x = f'{a['b']} {f\"{c}\"}'\n" * 5_000,
    "a long text": "x = (\n" + "    'some words ' \n" * 300 + ")\n",
    "many alternatives": "x = (\n" + "    'some words' in the_long_name_of_a_text or\n" * 60 + "    b)\n",
    "many branches": "def f(a):\n    if a == 1:\n        b()\n" + "    elif a == 2:\n        b(c)\n" * 200,
    "many methods": "class A:\n" + "    def f(self, a=1, *, b=(), **c):\n        return self.f(a)\n\n" * 5_000,
    "many calls": "x = (a\n" + "    .method(b, c=1)\n" * 80 + ")\n",
    "a sum": "x = " + " + ".join(f"a[{at}] * b.c" for at in range(40)) + "\n",
    "a large number": "x = " + "9" * 4_000 + "\n",
    "a long name": "x" * 4_000 + " = 1\n",
    "aligned arguments": "def f():\n    return some_function(a,\n" + (" " * 60 + "b,\n") * 100 + " " * 60 + "c)\n",
    "nesting": "".join(" " * 4 * at + "for a in b:\n" for at in range(10)) + " " * 40 + "f(g(h([{'a': (b[c], d)}])))\n",
    "blank lines": "\n" * 50_000 + " \n" * 50_000,
    "line endings": "x = f(a)\r\ny = [\r\n1,\r\n]\r\rz = 1\r" * 2_000,
    "match": "match a:\n" + "    case A(b=(1, [2, {'c': d}])) if e(f(g(h(i)))): pass\n" * 100,
    "half typed": "def f():\n    x = g('abc\n    y = (1,\n" * 5,
    "nothing": "",
}


@pytest.mark.parametrize("text", ORDINARY.values(), ids=ORDINARY)
def test_ordinary_code_passes(text: str) -> None:
    assert too_deep(text) is None
    assert in_thread(lambda: too_deep_for_ast(text)) is None


def test_ctxlint_itself_passes() -> None:
    for folder, _, names in os.walk(PACKAGE):
        for name in names:
            if name.endswith(".py"):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    assert too_deep(file.read()) is None, name


def test_the_main_thread_needs_no_guard_for_ast_from_python_3_11_on() -> None:
    text = "x = " + "-" * 100_000 + "1\n"
    assert (too_deep_for_ast(text) is None) == (sys.version_info >= (3, 11))
    assert in_thread(lambda: too_deep_for_ast(text)) is not None


def test_the_reason_names_what_is_too_deep() -> None:
    assert too_deep("x = " + "(" * 100) == "brackets are nested too deeply"
    assert too_deep(blocks("if a:")(150)) == "blocks are nested too deeply"
    assert too_deep("x = a" + ".b()" * 300) == "a chain of operators, calls or strings is too long"
    assert too_deep("match a:\n  case " + "(" * 9) == "brackets are nested too deeply"


def test_a_deep_statement_at_the_end_is_seen() -> None:
    deep = "x = " + "[" * 100 + "]" * 100
    assert too_deep("y = 1\n" * 1000 + deep)
    assert too_deep('"""((("""\n# )))\n' + deep)
    assert too_deep("f'{a[\"b\"]:>{c}}'; " + deep)
    assert too_deep("x = (')' " + "+ (')' " * 100)


@pytest.mark.parametrize(
    "text",
    [
        *[
            '"""' + 'a"' * 100_000,
            "\\" * 100_000,
            "'" * 100_001,
            "f'{" * 100_000,
            '"\n' * 100_000,
            '"""' + '\\"""' * 50_000,
        ],
        *["#\n" * 100_000, "\r" * 100_000, "lambda" * 50_000, "f'{a:" + "}" * 100_000, ")" * 100_000, "\0" * 100_000],
    ],
    ids=range(12),
)
def test_strange_text_costs_no_more_than_its_length(text: str) -> None:
    start = time.process_time()
    too_deep(text)
    assert time.process_time() - start < 5


@pytest.mark.parametrize("text", ["async def f():\n    return await (a)if(b)else c\n", "x = 'a' t'{b}'\n"])
def test_what_libcst_reads_but_will_not_build_is_a_syntax_error_like_others(text: str) -> None:
    import libcst as cst

    with pytest.raises(cst.ParserSyntaxError):
        parse_slice(Source("x.py", text), 1, Source("x.py", text).line_count)


@pytest.mark.parametrize("header", ["if a:", "for a in b:", "with a:", "try: pass\nfinally:"])
def test_as_many_blocks_as_python_allows_are_read(header: str) -> None:
    text = blocks(header)(99)
    assert too_deep(text) is None
    assert parse_text(text).code == text


def test_a_refusal_of_the_parser_leaves_its_thread() -> None:
    text = "".join(" " * at + "if a:\n" for at in range(40)) + " " * 40 + "x = = 1\n"
    with pytest.raises(cst.ParserSyntaxError):
        parse_text(text)


@pytest.mark.parametrize("header", ["if n:", "for a in range(n):", "while n:", "with torch.no_grad():"])
@pytest.mark.parametrize("depth", [12, 16, 40, 90])
def test_deep_blocks_are_checked(header: str, depth: int) -> None:
    inner = "".join(f"{' ' * (8 + at)}{header}\n" for at in range(depth)) + " " * (8 + depth) + "x = x * 2\n"
    text = (
        "import torch\nclass Fn(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x, n: int):\n"
        f"{inner}        return x\n    @staticmethod\n    def backward(ctx, grad):\n        return grad * 2\n"
    )
    assert [each.code for each in lint(text)] == ["CTX203"]


@pytest.mark.parametrize("stack", [20.0, 40.0, 80.0])
def test_the_parts_of_a_statement_are_as_deep_as_the_whole(stack: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctxlint.source.nesting._STACK", stack)
    monkeypatch.setattr("ctxlint.source.nesting._BLOCKS", 4 * stack)
    verdicts = set()
    for path in sorted(glob.glob(os.path.join(PACKAGE, "*", "*.py"))):
        source = Source(path, Path(path).read_text(encoding="utf-8"))
        for each in ast.parse(source.text).body:
            if isinstance(each, (ast.ClassDef, ast.FunctionDef)):
                first = min([each.lineno, *(decorator.lineno for decorator in each.decorator_list)])
                whole = part_too_deep(source.lines(first, each.end_lineno or first))
                assert any(map(part_too_deep, parts_of(each, source))) is whole, (path, each.name)
                verdicts.add(whole)
    part_too_deep.cache_clear()
    assert verdicts == {True, False}


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("class A:\n    x = 1\n\n    @staticmethod\n    def f():\n        a\n        b\n", 5),
        ("def f():\n\ta\n\tb\n", 3),
        ("def f(): a; b\n", 1),
        ("def f():\n    a; b\n", 1),
        ('def f():\n    a = """\n"""; b\n', 1),
        ("def f(\n    a): b\n", 1),
        ("def f(): \\\n    a\n", 1),
    ],
)
def test_statements_that_share_a_line_are_one_part(text: str, number: int) -> None:
    assert len(list(parts_of(ast.parse(text).body[0], Source("a.py", text)))) == number
