"""Unusual files: half typed, old, long, with odd line endings and characters, or without bodies."""

from __future__ import annotations

import textwrap
import time

import pytest

from ctxlint.model.function import InputKind, Style
from ctxlint.model.interpreter.values import Tri
from ctxlint.model.reader import analyse
from ctxlint.source.source import Source
from tests.model.models import counts, read

FUNCTION = """\
class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad, None
"""

WHOLE = "import torch\n\n\n" + FUNCTION


def names(text: str) -> list[str]:
    return [each.qualname for each in read(text).functions]


def broken_lines(text: str) -> list[int]:
    return [each.position.line for each in read(text).broken]


# ---------------------------------------------------------------------------------------------------------------------
# Half typed, and written for another Python

HALF_TYPED = {
    "a call": "x = f(1,\n",
    "a call in a function": "def g():\n    return f(1,\n",
    "a call, code after it": "def g():\n    x = f(1,\n    return x\n",
    "a list": "x = [1, 2\n",
    "a dict": "x = {'a': [1, 2}\n",
    "an if": "if x\n    y = 1\n",
    "an if without a body": "if x:\n",
    "a def": "def\n",
    "a def with half a signature": "def g(a, b\n",
    "a def without a body": "def g(a, b):\n",
    "a class without a body": "class Half:\n",
    "half a class statement": "class Half(torch.autograd.Function\n",
    "an import": "from torch import\n",
    "an import list": "from torch import (\n    nn,\n",
    "an assignment": "x =\n",
    "a decorator": "@\n",
    "a string": "x = 'half\n",
    "a double-quoted string": 'x = "half\n',
    "an f-string": "x = f'{y\n",
    "a triple-quoted string": "x = '''half\n",
    "a docstring": 'def g():\n    """half\n    return 1\n',
    "wrong indentation": "def g():\n    x = 1\n  y = 2\n",
    "unexpected indentation": "x = 1\n    y = 2\n",
    "a closing bracket": "x = 1)\n",
    "an operator": "x = 1 +\n",
    "a lambda": "x = lambda y:\n",
    "print": "print 'hello'\n",
    "print to a file": "print >> f, 'hello',; print 'x'\n",
    "except with a comma": "try:\n    f()\nexcept ValueError, e:\n    pass\n",
    "raise with a comma": "raise ValueError, 'no'\n",
    "exec": "exec 'x = 1'\n",
    "backticks": "x = `y`\n",
    "an octal number": "x = 0777\n",
    "a long number": "x = 10L\n",
    "unequal": "if x <> y:\n    pass\n",
    "merge markers": "<<<<<<< HEAD\nx = 1\n=======\nx = 2\n>>>>>>> other\n",
    "a template": "{% if x %}\n",
    "an invalid character": "x = 1 ¿ 2\n",
    "a null byte": "x = '\0'\n",
}


@pytest.mark.parametrize("name", HALF_TYPED)
def test_what_is_broken_above_a_class_does_not_hide_it(name: str) -> None:
    text = "import torch\n\n\n" + HALF_TYPED[name] + "\n\n" + FUNCTION
    file = read(text)
    assert "Fn" in [each.qualname for each in file.functions]
    assert file.broken
    assert 4 <= file.broken[0].position.line <= 3 + HALF_TYPED[name].count("\n") + 2


@pytest.mark.parametrize("name", HALF_TYPED)
def test_what_is_broken_below_a_class_does_not_hide_it(name: str) -> None:
    file = read(WHOLE + "\n\n" + HALF_TYPED[name])
    (fn,) = (each for each in file.functions if each.qualname == "Fn")
    assert counts(fn.gradients) == ["2"]
    assert file.broken
    assert file.broken[0].position.line > WHOLE.count("\n")


@pytest.mark.parametrize("name", HALF_TYPED)
def test_what_is_broken_inside_a_class_hides_that_one_only(name: str) -> None:
    other = FUNCTION.replace("Fn", "Other")
    inside = textwrap.indent(HALF_TYPED[name], "        ")
    half = FUNCTION.replace("        return x.clone()\n", inside + "        return x.clone()\n")
    file = read(f"import torch\n\n\n{other}\n\n{half}\n\n{other.replace('Other', 'Another')}")
    assert {"Other", "Another"} <= {each.qualname for each in file.functions}
    assert file.broken


def test_a_whole_file_has_nothing_broken() -> None:
    assert read(WHOLE).broken == ()


def test_an_error_is_named_where_it_is() -> None:
    (broken,) = read(WHOLE + "\n\ndef g():\n    return 1 +* 2\n").broken
    assert broken.position == (15, 15)
    assert broken.message


SPLITS = {
    "a call over several lines": "x = f(\na,\nb,\n)\n",
    "a string with code in it": "x = '''\nclass Inner(torch.autograd.Function):\n    pass\n'''\n",
    "a docstring with code in it": '"""\nimport torch\nclass Inner(torch.autograd.Function): ...\n"""\n',
    "quotes in a comment": 'x = 1  # it\'s """ here\ny = 2\n',
    "quotes in a string": 'x = \'"""\'\ny = 2\n',
    "other quotes in a string": "x = \"'''\"\ny = 2\n",
    "a backslash": "x = 1 + \\\n2\n",
    "a raw string": "x = r'''\n\\\\'''\ny = 1\n",
    "brackets in a string": "x = '((('\ny = 1\n",
    "brackets in a comment": "x = 1  # (((\ny = 1\n",
    "else": "if x:\n    y = 1\nelse:\n    y = 2\n",
    "except and finally": "try:\n    y = 1\nexcept ValueError:\n    y = 2\nfinally:\n    y = 3\n",
    "decorators and comments": "@torch.no_grad()\n# a comment\n@torch.compile\ndef g():\n    pass\n",
    "a decorator over several lines": "@decorate(\n1,\n)\ndef g():\n    pass\n",
    "comments at the margin": "def g():\n    x = 1\n# a comment\n    return x\n",
    "a blank line in a function": "def g():\n    x = 1\n\n    return x\n",
    "an f-string": "x = f'''\n{y}\n'''\n",
}


@pytest.mark.parametrize("name", SPLITS)
def test_statements_are_kept_whole_beside_a_broken_one(name: str) -> None:
    text = f"import torch\n\n\n{SPLITS[name]}\n\n{FUNCTION}\n\nx = = 1\n"
    file = read(text)
    assert [each.qualname for each in file.functions] == ["Fn"]
    assert [each.position.line for each in file.broken] == [text.count("\n")]


def test_imports_in_a_broken_file_still_count() -> None:
    text = f"from torch.autograd import (\n    Function as F,\n)\nx = (\n\n\n{FUNCTION.replace('torch.autograd.Function', 'F')}"
    assert names(text) == ["Fn"]


def test_positions_in_a_broken_file() -> None:
    text = "import torch\n\nx = (\n\n" + FUNCTION
    (fn,) = read(text).functions
    assert fn.span(fn.node.name).start == (5, 7)
    assert fn.backward is not None
    assert fn.span(fn.backward.node.name).start == (11, 9)


@pytest.mark.parametrize("cut", range(0, len(WHOLE), 7))
def test_every_prefix_is_read(cut: int) -> None:
    read(WHOLE[:cut])


DEEP = {
    "brackets": "x = " + "(" * 3000 + ")" * 3000,
    "lists": "x = " + "[" * 3000 + "]" * 3000,
    "unclosed brackets": "x = " + "(" * 3000,
    "unary operators": "x = " + "-" * 30000 + "1",
    "not": "x = " + "not " * 30000 + "1",
    "attributes": "x = a" + ".b" * 30000,
    "calls": "x = a" + "()" * 30000,
    "sums": "x = 1" + " + 1" * 30000,
    "powers": "x = 1" + " ** 1" * 30000,
    "comparisons": "x = 1" + " < 1" * 30000,
    "strings": "x = " + "'a' " * 30000,
    "lambdas": "x = " + "lambda: " * 10000 + "1",
    "conditionals": "x = " + "1 if a else " * 10000 + "1",
    "elif": "if a:\n    pass\n" + "elif a:\n    pass\n" * 5000,
    "blocks": "".join("    " * depth + "if a:\n" for depth in range(150)) + "    " * 150 + "pass",
}


@pytest.mark.parametrize("name", DEEP)
def test_deep_code_beside_a_class(name: str) -> None:
    assert "Fn" in names(f"import torch\n\n\n{DEEP[name]}\n\n\n{FUNCTION}")


@pytest.mark.parametrize("name", [name for name in DEEP if "\n" not in DEEP[name]])
def test_deep_code_inside_a_method(name: str) -> None:
    text = WHOLE.replace("        return x.clone()\n", f"        {DEEP[name]}\n        return x.clone()\n")
    file = read(text)
    assert file.functions or file.broken


@pytest.mark.parametrize("name", [name for name in DEEP if "\n" not in DEEP[name]])
def test_deep_code_in_a_quoted_annotation(name: str) -> None:
    annotation = DEEP[name][4:].replace("'", "").replace("lambda: ", "lambda x: ")
    assert names(WHOLE.replace("ctx, x)", f"ctx, x: '{annotation}')")) == ["Fn"]


# ---------------------------------------------------------------------------------------------------------------------
# Lines and columns

ENDINGS = {"lf": "\n", "crlf": "\r\n", "cr": "\r"}


@pytest.mark.parametrize("name", ENDINGS)
def test_line_endings(name: str) -> None:
    text = (WHOLE + "\n\nFn.apply(1)\n").replace("\n", ENDINGS[name])
    file = read(text)
    (fn,) = file.functions
    assert fn.span(fn.node.name).start == (4, 7)
    assert fn.backward is not None
    assert fn.span(fn.backward.returns[0].node) == ((11, 9), (11, 26))
    assert file.calls[0].span == ((14, 1), (14, 12))


def test_mixed_line_endings() -> None:
    text = "import torch\r\n\r" + FUNCTION.replace("\n", "\r\n", 3)
    (fn,) = read(text).functions
    assert fn.span(fn.node.name).start == (3, 7)


@pytest.mark.parametrize("character", ["\f", "\v", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"])
def test_characters_that_end_no_line(character: str) -> None:
    text = f"import torch\n\nx = 'a{character}b'  # c{character}d\n\n{FUNCTION}\n\nFn.apply(1)\n"
    file = read(text)
    (fn,) = file.functions
    assert fn.span(fn.node.name).start == (5, 7)
    assert file.calls[0].span.start == (15, 1)


def test_form_feeds_between_statements() -> None:
    text = f"import torch\n\f\n{FUNCTION}\f\nFn.apply(1)\n"
    file = read(text)
    (fn,) = file.functions
    assert fn.span(fn.node.name).start == (3, 7)
    assert file.calls[0].span.start == (12, 1)


def test_a_form_feed_before_a_class() -> None:
    (fn,) = read(f"import torch\n\n\f{FUNCTION}").functions
    assert fn.span(fn.node.name).start.line == 3


def test_tabs() -> None:
    (fn,) = read("import torch\n\n" + FUNCTION.replace("    ", "\t")).functions
    assert fn.backward is not None
    assert fn.span(fn.backward.returns[0].node).start == (10, 3)
    assert counts(fn.gradients) == ["2"]


def test_tabs_beside_spaces() -> None:
    text = WHOLE.replace("        return x.clone()", "\tif x:\n\t\treturn x\n\treturn x.clone()").replace(
        "    @", "    @"
    )
    read(text)


def test_a_byte_order_mark_is_no_character() -> None:
    (fn,) = analyse(Source("example.py", WHOLE, bom=True)).functions
    assert fn.span(fn.node.name).start == (4, 7)


NON_ASCII = """\
import torch


class Gauß(torch.autograd.Function):
    @staticmethod
    def forward(ctx, größe, länge=1):
        "🙂🙂🙂🙂🙂🙂🙂"; ctx.größe = größe; return größe.clone()

    @staticmethod
    def backward(ctx, grad):
        "日本語"; return grad, "e\u0301"


"äöü🙂"; y = Gauß.apply(1); "日本"; z = Gauß.apply(y, 2)
"""


def test_columns_count_characters() -> None:
    file = read(NON_ASCII)
    (fn,) = file.functions
    assert fn.qualname == "Gauß"
    assert fn.forward is not None
    assert fn.backward is not None
    assert fn.span(fn.context_writes[0].node).start == (7, 20)
    assert fn.span(fn.forward.returns[0].node) == ((7, 39), (7, 59))
    assert fn.span(fn.backward.returns[0].node) == ((11, 16), (11, 33))
    assert [call.span for call in file.calls] == [((14, 13), (14, 26)), ((14, 38), (14, 54))]


def test_names_are_compared_as_python_does() -> None:
    # A ligature in a name is the same name as its letters, to Python.
    text = "import torch\nfrom torch.autograd import Function as \ufb01x\n\nclass Fn(\ufb01x):\n    pass\n"
    assert names(text) == ["Fn"]


def test_a_continued_line() -> None:
    text = "import torch\n\nclass Fn( \\\n        torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, \\\n            x):\n        return \\\n            x\n"
    (fn,) = read(text).functions
    assert fn.forward is not None
    assert fn.span(fn.forward.returns[0].node) == ((8, 9), (9, 14))


# ---------------------------------------------------------------------------------------------------------------------
# Several statements in a line, decorators, one-line bodies


def test_statements_in_one_line() -> None:
    text = WHOLE.replace("        return x.clone()\n", "        ctx.a = x; ctx.b = x; return x.clone()\n")
    (fn,) = read(text).functions
    assert [write.attribute for write in fn.context_writes] == ["a", "b"]
    assert [fn.span(write.node).start.column for write in fn.context_writes] == [9, 20]


def test_bodies_in_one_line() -> None:
    text = "import torch\n\nclass Fn(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x): ctx.a = x; return x\n    def backward(ctx, grad): return grad, None\n"
    (fn,) = read(text).functions
    assert [write.attribute for write in fn.context_writes] == ["a"]
    assert counts(fn.gradients) == ["2"]


def test_a_class_after_a_semicolon_line() -> None:
    text = f"import os; import torch; x = 1\n{FUNCTION}"
    assert names(text) == ["Fn"]


def test_a_decorated_class_begins_at_its_decorator() -> None:
    text = f"import torch\n\n\n@torch.compiler.allow_in_graph\n# a comment\n@torch._dynamo.allow_in_graph\n{FUNCTION}"
    (fn,) = read(text).functions
    assert fn.slice.first_line == 4
    assert fn.span(fn.node.name).start == (7, 7)
    assert fn.class_decorators == ("torch.compiler.allow_in_graph", "torch._dynamo.allow_in_graph")


def test_comments_around_a_class() -> None:
    text = f"import torch\n\n# before\n{FUNCTION}    # inside\n# after\n"
    (fn,) = read(text).functions
    assert fn.span(fn.node.name).start == (4, 7)


def test_no_newline_at_the_end() -> None:
    assert names(WHOLE.rstrip("\n")) == ["Fn"]


@pytest.mark.parametrize("text", ["", "\n", "\f", "# only a comment", '"""only a docstring"""', "pass", "\\\n"])
def test_files_with_nothing_in_them(text: str) -> None:
    assert names(text) == []


def test_syntax_of_newer_pythons() -> None:
    text = f"import torch\n\n\ndef first[T](x: T) -> T:\n    return x\n\n\ntype Pair = tuple[int, int]\n\n\n{FUNCTION}"
    file = read(text)
    assert [each.qualname for each in file.functions] == ["Fn"]
    assert not file.broken


# ---------------------------------------------------------------------------------------------------------------------
# Long files


def test_a_long_file_is_read_in_reasonable_time() -> None:
    filler = "".join(
        f"def f{number}(a, b):\n    c = a + b * {number}\n    return [c, a, b]\n\n\n" for number in range(10_000)
    )
    text = f"import torch\n\n\n{filler}{FUNCTION}"
    begun = time.process_time()
    (fn,) = read(text).functions
    assert time.process_time() - begun < 20
    assert fn.span(fn.node.name).start == (50_004, 7)


def test_many_classes() -> None:
    text = "import torch\n" + "".join(FUNCTION.replace("Fn", f"Fn{number}") for number in range(50))
    assert len(names(text)) == 50


# ---------------------------------------------------------------------------------------------------------------------
# Stubs

STUB = """\
import torch

class Fn(torch.autograd.Function):
    generate_vmap_rule = True
    @staticmethod
    def forward(ctx, x: torch.Tensor, n: int = ...) -> torch.Tensor: ...
    @staticmethod
    def backward(ctx, grad): ...

class Written(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.a = x
        x.mul_(2)
        return [x]
    @staticmethod
    def backward(ctx, grad, other):
        return grad

class NoStaticMethod(torch.autograd.Function):
    def setup_context(ctx, inputs): ...
"""


def test_of_a_stub_the_signatures_are_known() -> None:
    fn, written, no_static = read(STUB, "example.pyi").functions
    assert [(each.name, each.kind) for each in fn.inputs] == [("x", InputKind.TENSOR), ("n", InputKind.NON_TENSOR)]
    assert [each.required for each in fn.inputs] == [True, False]
    assert fn.style is Style.CTX_IN_FORWARD
    assert no_static.style is Style.SETUP_CONTEXT
    assert written.backward is not None
    assert [param.name for param in written.backward.positional] == ["grad", "other"]
    assert "generate_vmap_rule" in fn.class_attributes


def test_of_a_stub_no_body_is_known() -> None:
    for fn in read(STUB, "example.pyi").functions:
        assert fn.gradients == ()
        assert fn.outputs == ()
        assert all(each.gradient is Tri.UNKNOWN for each in fn.inputs)
        for method in fn.methods.values():
            assert method.facts.events == ()
            assert method.facts.falls_through is Tri.UNKNOWN
            assert not method.facts.complete
            assert not method.raises_only
    assert all(not fn.context_writes and not fn.saves for fn in read(STUB, "example.pyi").functions)


def test_of_a_stub_uses_are_no_evidence() -> None:
    _fn, written, _no_static = read(STUB, "example.pyi").functions
    assert [each.kind for each in written.inputs] == [InputKind.UNKNOWN]
    _fn, written, _no_static = read(STUB, "example.py").functions
    assert [each.kind for each in written.inputs] == [InputKind.TENSOR]


@pytest.mark.parametrize("text", ["\ud800", "x = '\ud800'", "class F(torch.autograd.Function):\n    x = '\ud800'"])
def test_a_surrogate_that_no_encoding_writes(text: str) -> None:
    file = analyse(Source("a.py", f"import torch\n{text}\n"))
    assert not file.functions
