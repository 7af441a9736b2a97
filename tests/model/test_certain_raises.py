"""What certainly raises before a line of a method: then the line never runs."""

from __future__ import annotations

from textwrap import indent

import libcst as cst
import pytest

from ctxlint.model.analyses.certain_raises import backward_is_unreached, raises_before, reached
from ctxlint.model.analyses.conditional_code import Runs
from tests.model.models import function

RAISES = [
    "unknown\nhere\n",
    "y = unknown\nfor i in g: here\n",
    "if ctx.flag: unknown; here\n",
    "with torch.no_grad(): unknown\nhere\n",
    "x.mul(unknown, here)\n",
    "here(unknown)\n",
    "y = ctx.missing\nhere\n",
    "a, b = ctx.saved_tensors\nhere\n",
    "ctx.saved_tensors[1]\nhere\n",
    "only_forward\nhere\n",
    "input.size(0)\nhere\n",
    "helper(g)\nhere\n",
    "(x,) = ctx.saved_tensors\na, b = x.shape\nhere\n",
    "y = ctx.saved_tensors.sum()\nhere\n",
    "(x,) = ctx.saved_tensors()\nhere\n",
    "y = g\ndel y, g\nprint(y)\nhere\n",
    "del g\nhere(g)\n",
    "exit()\nhere\n",
    "sys.exit(1)\nhere\n",
    "if ctx.flag:\n    raise ValueError\n    here\n",
    "for i in g:\n    unknown\n    here\n",
    "if ctx.flag: unknown\nelse: exit()\nhere\n",
    "if ctx.flag:\n    if g: unknown\n    elif ctx.flag: helper(g)\n    else: raise ValueError\nelse:\n    exit()\nhere\n",
]
RUNS = [
    "here\nunknown\n",
    "if ctx.flag: unknown\nhere\n",
    "if ctx.flag: unknown\nelse: here\n",
    "y = ctx.flag or unknown\nhere\n",
    "y = unknown if ctx.flag else g\nhere\n",
    "try: unknown\nexcept NameError: pass\nhere\n",
    "try: ctx.missing\nexcept AttributeError: here\n",
    "with suppress(NameError): unknown\nhere\n",
    "y = [unknown for i in g]\nhere\n",
    "f = lambda: unknown\nhere\n",
    "def f():\n    return unknown\nhere\n",
    "(x,) = ctx.saved_tensors\nhere\n",
    "ctx.saved_tensors[0]\nhere\n",
    "y = ctx.flag\nhere\n",
    "helper(g, g)\nhere\n",
    "if ctx.flag: raise ValueError\nhere\n",
    "if ctx.flag: helper(g)\nhere\n",
    "for i in g:\n    if i: continue\n    raise ValueError\nhere\n",
    "if ctx.flag: exit()\nhere\n",
    "parser.exit()\nhere\n",
    "if ctx.flag: unknown\nelif g: exit()\nhere\n",
    "if ctx.flag: unknown\nelse:\n    try: exit()\n    except SystemExit: pass\nhere\n",
    "if ctx.flag: unknown\nif not ctx.flag: exit()\nhere\n",
    "assert g, unknown\nhere\n",
    "y = g\ndel y\ny = g\nprint(y)\nhere\n",
    "if ctx.flag: del g\nprint(g)\nhere\n",
    "for i in g:\n    y = i\n    print(y)\n    del y\nhere\n",
    "helper(here)\n",
    "(x,) = ctx.saved_tensors\na, b, c = x.shape\nhere\n",
    "(x,) = ctx.saved_tensors\na, *b = x.shape\nhere\n",
]
BEFORE = """
import sys
from contextlib import suppress

def helper(x, y):
    return x + y

here = parser = None
"""


@pytest.mark.parametrize(("body", "raises"), [*((each, True) for each in RAISES), *((each, False) for each in RUNS)])
def test_what_comes_before_a_line(body: str, *, raises: bool) -> None:
    forward = "x, flag:\n    a, b, c = x.shape\n    only_forward = x\n    input = x\n    ctx.flag = flag\n    ctx.save_for_backward(x)\n    return x * 2"
    fn = function(forward, f"g:\n{indent(body, '    ')}    return None, None", BEFORE)
    assert fn.backward is not None
    (node,) = (each for each in fn.backward.nodes_of(cst.Name) if each.value == "here")
    around = fn.backward.parents[node]
    assert raises_before(fn, fn.backward, around if isinstance(around, cst.Call) else node) is raises


@pytest.mark.parametrize(
    ("forward", "raises"),
    [
        ("x:\n    y = unknown\n    return x", True),
        ("x:\n    y = ctx.missing\n    return x", True),
        ("x:\n    helper(x)\n    return x", True),
        ("x:\n    exit()\n    return x", True),
        ("x:\n    if x.is_cuda: return x\n    return unknown", False),
        ("x:\n    if x.is_cuda: unknown\n    return x", False),
        ("x:\n    try:\n        raise ValueError\n    except ValueError: pass\n    return x * 2", False),
        ("x:\n    return x * 2", False),
        ("x:\n    return [x * 2]", True),
        ("x:\n    y = extension.forward(x)\n    z = y[1:] + [x]\n    return y[:1]", True),
        ("x:\n    y = extension.forward(x)\n    y.append(x)\n    return y", True),
        ("x:\n    y = extension.forward(x)\n    z = [x] + y\n    out = y[:1]\n    return out", True),
        ("x:\n    y = extension.forward(x)\n    if x.is_cuda: y = y + [x]\n    return y", False),
        ("x:\n    y = extension.forward(x)\n    z = y[1:] + [x]\n    return y[0]", False),
        ("x:\n    y = extension.forward(x)\n    z = y[1:] + [x]\n    return tuple(y)", False),
        ("x:\n    y = extension.forward(x)\n    z = y[1:] + (x,)\n    return y[:1]", False),
    ],
)
def test_what_raises_in_forward(forward: str, *, raises: bool) -> None:
    fn = function(forward, "g:\n    here\n    return g", BEFORE)
    assert fn.backward is not None
    (node,) = (each for each in fn.backward.nodes_of(cst.Name) if each.value == "here")
    assert backward_is_unreached(fn) is raises
    assert raises_before(fn, fn.backward, node) is raises
    assert reached(fn, fn.backward, node) is (Runs.STATEMENT if raises else Runs.ALWAYS)
