"""The abstract value of a name after operations on it, as text (``value_text.told``)."""

from __future__ import annotations

import pytest

from ctxlint.model.function import ContextWrite, Mutation
from ctxlint.model.interpreter.values import Kind, kind_of, storage, usual_storage
from tests.model.models import HEAD, backward_of, events, forward_of, function, read
from tests.model.value_text import told

# In forward, ``x`` is a tensor, ``w`` an optional one, ``n`` an int and ``f`` unknown.
GRADIENTS = "grad:\n return grad, grad, None, None"


def probed(body: str, parameters: str = "x, w=None, n=1, f=None", backward: str = GRADIENTS) -> list[str]:
    """What ``ctx.probe`` is set to in forward, at each place."""
    method = forward_of(f"{parameters}:\n{_indented(body)}", backward=backward)
    return [told(write.value) for write in events(method, ContextWrite) if write.attribute == "probe"]


def probed_backward(body: str) -> list[str]:
    """What ``ctx.probe`` is set to in backward, at each place."""
    method = backward_of(f"grad, other=None:\n{_indented(body)}", forward="x, w=None:\n return x, w")
    return [told(write.value) for write in events(method, ContextWrite) if write.attribute == "probe"]


def _indented(body: str) -> str:
    return "\n".join(" " + line for line in body.split("\n"))


EXPRESSIONS = {
    # names and literals
    "x": "x",
    "w": "w",
    "None": "None",
    "True": "True",
    "3": "3",
    "-3": "-3",
    "1.5": "1.5",
    "'mean'": "'mean'",
    "...": "Ellipsis",
    "f'{x}'": "str",
    "unknown_name": "?",
    "torch": "torch",
    "torch.float32": "torch.float32",
    # views and copies
    "x.view(-1)": "view(x)",
    "x.t()": "view(x)",
    "x.T": "view(x)",
    "x.data": "view(x)",
    "x.detach()": "view(x)",
    "x[0]": "view(x)",
    "x[:, 1:]": "view(x)",
    "x[..., None]": "view(x)",
    "x[n]": "converted(x)",
    "x[x > 0]": "new",
    "x[[0, 1]]": "new",
    "x.reshape(-1)": "reshaped(x)",
    "x.contiguous()": "reshaped(x)",
    "x.flatten()": "reshaped(x)",
    "x.float()": "float32(x)",
    "x.to(torch.float32)": "float32(x)",
    "x.half()": "float16(x)",
    "x.double().to(dtype=torch.bfloat16)": "bfloat16(float64(x))",
    "x.to(torch.float16, copy=True)": "converted(x)",
    "x.to(w.device)": "converted(x)",
    "x.view(-1).t()[0]": "view(view(view(x)))",
    "torch.transpose(x, 0, 1)": "view(x)",
    "torch.reshape(x, (-1,))": "reshaped(x)",
    "x.clone()": "new",
    "x * 2": "new",
    "2 * x": "new",
    "-x": "new",
    "x @ w": "new",
    "x > 0": "new",
    "x.long()": "new",
    "torch.zeros(3)": "new",
    "torch.empty_like(x)": "new",
    "F.relu(x)": "new",
    "x.sum()": "new",
    "x.relu_()": "x",
    "x.add_(1).mul_(2)": "x",
    "x.clone().add_(1)": "new",
    "x.requires_grad_()": "x",
    "x.split(2)": "tensors",
    "x.split(2)[0]": "view(x)",
    "x.sort()": "(new, new)",
    "torch.max(x, dim=0)": "(new, new)",
    "x.some_method()": "?",
    # numbers and the like
    "x.shape": "shape",
    "x.shape[0]": "int",
    "x.shape[1:]": "shape",
    "x.size()": "shape",
    "x.size(0)": "int",
    "x.dim()": "int",
    "x.dtype": "object",
    "x.device": "object",
    "x.requires_grad": "bool",
    "x.is_cuda": "bool",
    "x.item()": "number",
    "x.numel()": "int",
    "len(x)": "int",
    "float(x)": "float",
    "isinstance(x, torch.Tensor)": "bool",
    "x is None": "bool",
    "not x": "bool",
    "n + 1": "one",
    "1 + 2": "3",
    "2 * 3 - 1": "5",
    "x.shape[0] * 2": "number",
    "n": "n",
    "x.type()": "str",
    "x.type(torch.int32)": "converted(x)",
    "range(3)": "range",
    "lambda: x": "callable",
    "torch.is_grad_enabled()": "bool",
    "torch.distributed.get_rank()": "int",
    "math.sqrt(2)": "one",
    # unknown objects: names that numpy shares prove nothing
    "f.sum()": "one",
    "f.shape": "shape",
    "f.data": "?",
    "f.T": "?",
    "f.to(x.device)": "converted(f)",
    "f(x)": "?",
    "f[0]": "?",
    "f.attribute": "?",
    "extension.kernel(x)": "?",
    # containers
    "(x, None)": "(x, None)",
    "(x,)": "(x,)",
    "()": "()",
    "[x, x]": "[x, x]",
    "{x}": "{x}",
    "{'x': x}": "{...}",
    "(x, *f)": "(x, *f)",
    "(x, *(w, None))": "(x, w, None)",
    "[None] * 3": "[None, None, None]",
    "[None] * n": "[*None]",
    "(None,) * 2 + (x,)": "(None, None, x)",
    "[x] + [w]": "[x, w]",
    "tuple([x, w])": "(x, w)",
    "list((x, w))": "[x, w]",
    "(x, w)[1]": "w",
    "(x, w)[-1]": "w",
    "(x, w)[5]": "?",
    "(x, w)[:1]": "(x,)",
    "(x, *f)[0]": "x",
    "(x, *f)[1]": "?",
    "[y for y in (x, w)]": "[x, w]",
    "[y * 2 for y in (x, w)]": "[new, new]",
    "[y for y in f]": "[*?]",
    "[y for y in (x, w) if y is not None]": "[*tensor]",
    "{y for y in f}": "{*?}",
    "(y for y in f)": "<*?>",
    "{y: y for y in f}": "{...}",
    "dict(a=x)": "{...}",
    "sorted(f)": "[*?]",
    # conditions
    "x if f else w": "x | w",
    "x if True else w": "x",
    "x if n else None": "x | None",
    "x and w": "x | w",
    "x or w": "x | w",
    "None or w": "w",
    "(y := x)": "x",
    # ctx
    "ctx": "ctx",
    "ctx.needs_input_grad": "needs",
    "ctx.needs_input_grad[1]": "needs[1]",
    "any(ctx.needs_input_grad)": "bool",
    "ctx.unknown": "ctx.unknown",
    "getattr(ctx, 'unknown', None)": "ctx.unknown",
    "hasattr(ctx, 'unknown')": "bool",
    "ctx.method(x)": "?",
    "ctx.save_for_backward(x)": "None",
}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expressions(expression: str) -> None:
    assert probed(f"ctx.probe = {expression}\nreturn x")[-1] == EXPRESSIONS[expression]


BACKWARD_EXPRESSIONS = {
    "grad": "grad",
    "grad.view(-1)": "view(grad)",
    "other": "other",
    "ctx.saved_tensors": "saved",
    "ctx.saved_tensors[0]": "saved[0]",
    "ctx.saved_tensors[-1]": "?",
    "ctx.saved_tensors[0].view(-1)": "view(saved[0])",
    "ctx.saved_tensors[0] * 2": "new",
    "ctx.saved_tensors[0].exp()": "new",
    "ctx.saved_tensors[0].sum()": "new",
    "ctx.x": "ctx.x",
    "ctx.x * grad": "new",
    "ctx.x * 2": "?",
    "ctx.x / 2": "one",
    "ctx.x - 1": "one",
    "torch.autograd.grad(ctx.y, ctx.x, grad)": "tensors",
    "ctx.needs_input_grad[-1]": "bool",
    "ctx.needs_input_grad[ctx.i]": "bool",
}


@pytest.mark.parametrize("expression", BACKWARD_EXPRESSIONS)
def test_expressions_of_backward(expression: str) -> None:
    assert probed_backward(f"ctx.probe = {expression}\nreturn grad")[-1] == BACKWARD_EXPRESSIONS[expression]


# ---------------------------------------------------------------------------------------------------------------------
# Names

NAMES = {
    "rebound": ("y = x\ny = y.clone()\nctx.probe = y", "new"),
    "rebound, the old name stays": ("y = x\ny = y.clone()\nctx.probe = x", "x"),
    "an alias": ("y = x\nctx.probe = y", "x"),
    "chained": ("y = z = x\nctx.probe = z", "x"),
    "annotated": ("y: torch.Tensor = x\nctx.probe = y", "x"),
    "annotated only": ("y: torch.Tensor\nctx.probe = y", "?"),
    "a parameter rebound": ("x = x.contiguous()\nctx.probe = x", "reshaped(x)"),
    "swapped": ("y, z = x, w\ny, z = z, y\nctx.probe = (y, z)", "(w, x)"),
    "unpacked": ("y, z = x, w\nctx.probe = z", "w"),
    "unpacked list": ("[y, z] = [x, w]\nctx.probe = z", "w"),
    "unpacked, nested": ("(y, (z, v)), u = (x, (w, None)), 1\nctx.probe = (v, z)", "(None, w)"),
    "unpacked with a star": ("y, *z = x, w, None\nctx.probe = z", "[w, None]"),
    "unpacked with a star in front": ("*y, z = x, w, None\nctx.probe = (y, z)", "([x, w], None)"),
    "unpacked with a star of nothing": ("y, z, *v = x, w\nctx.probe = v", "[]"),
    "unpacked unknown": ("y, z = f\nctx.probe = z", "?"),
    "unpacked shape": ("a, b = x.shape\nctx.probe = b", "int"),
    "unpacked tensors": ("a, b = x.chunk(2)\nctx.probe = b", "view(x)"),
    "unpacked sort": ("a, b = x.sort()\nctx.probe = b", "new"),
    "augmented number": ("m = 1\nm += 2\nctx.probe = m", "3"),
    "augmented tensor": ("y = x\ny += 1\nctx.probe = y", "x"),
    "augmented unknown": ("f += 1\nctx.probe = f", "?"),
    "augmented tuple": ("t = (x,)\nt += (w,)\nctx.probe = t", "(x, w)"),
    "deleted": ("y = x\ndel y\nctx.probe = y", "?"),
    "walrus": ("if (y := x) is not None:\n pass\nctx.probe = y", "x"),
    "import": ("import numpy as np\nctx.probe = np", "numpy"),
    "import of a part": ("from torch.nn import functional as G\nctx.probe = G.relu", "torch.nn.functional.relu"),
    "relative import": ("from ..ops import kernel\nctx.probe = kernel", "..ops.kernel"),
    "nested function": ("def g():\n pass\nctx.probe = g", "callable"),
    "with": ("with f as y:\n ctx.probe = y", "?"),
    "with several": ("with torch.no_grad(), f as y:\n z = x\nctx.probe = z", "x"),
    "global": ("global cache\ncache = x\nctx.probe = cache", "x"),
}


@pytest.mark.parametrize("name", NAMES)
def test_names(name: str) -> None:
    body, expected = NAMES[name]
    assert probed(f"{body}\nreturn x")[-1] == expected


PATHS = {
    "both arms": ("if n:\n y = x\nelse:\n y = w\nctx.probe = y", "x | w"),
    "one arm": ("y = None\nif n:\n y = x\nctx.probe = y", "x | None"),
    "three arms": ("if n == 1:\n y = x\nelif n == 2:\n y = w\nelse:\n y = None\nctx.probe = y", "x | w | None"),
    "the same in both arms": ("if n:\n y = x\nelse:\n y = x\nctx.probe = y", "x"),
    "an arm that leaves": ("if n:\n y = x\nelse:\n raise ValueError\nctx.probe = y", "x"),
    "an arm that returns": ("y = None\nif n:\n y = x\n return y\nctx.probe = y", "None"),
    "bound on one path only": ("if n:\n y = x\nctx.probe = y", "x"),
    "nested": ("y = None\nif n:\n if f:\n  y = x\nctx.probe = y", "x | None"),
    "narrowed to None": ("y = x if n else None\nif y is None:\n ctx.probe = y", "None"),
    "narrowed to not None": ("y = x if n else None\nif y is not None:\n ctx.probe = y", "x"),
    "narrowed in else": ("y = x if n else None\nif y is None:\n pass\nelse:\n ctx.probe = y", "x"),
    "narrowed by truth": ("y = x if n else None\nif y:\n ctx.probe = y", "x"),
    "narrowed by and": ("y = x if n else None\nif f and y is not None:\n ctx.probe = y", "x"),
    "narrowed by not": ("y = x if n else None\nif not (y is None):\n ctx.probe = y", "x"),
    "not narrowed by or": ("y = x if n else None\nif f or y is not None:\n ctx.probe = y", "x | None"),
    "narrowed by an early return": ("y = x if n else None\nif y is None:\n return x\nctx.probe = y", "x"),
    "narrowed by assert": ("y = x if n else None\nassert y is not None\nctx.probe = y", "x"),
    "narrowed in a conditional": ("y = x if n else None\nctx.probe = y if y is not None else w", "x | w"),
    "default by None": ("y = None\nif y is None:\n y = x\nctx.probe = y", "x"),
    "literal test": ("y = None\nif False:\n y = x\nctx.probe = y", "None"),
    "TYPE_CHECKING": ("from typing import TYPE_CHECKING\ny = x\nif TYPE_CHECKING:\n y = w\nctx.probe = y", "x"),
    "try": ("try:\n y = x\nexcept ValueError:\n y = w\nctx.probe = y", "x | w"),
    "try, the handler raises": ("try:\n y = x\nexcept ValueError:\n raise\nctx.probe = y", "x"),
    "try, in the handler": ("y = x\ntry:\n y = w\nexcept ValueError:\n ctx.probe = y", "x | w"),
    "try, twice bound, in the handler": ("y = x\ntry:\n y = w\n y = None\nexcept ValueError:\n ctx.probe = y", "?"),
    "try, returned, in the handler": ("y = x\ntry:\n y = w\n return y\nexcept ValueError:\n ctx.probe = y", "?"),
    "try and else": ("try:\n y = x\nexcept ValueError:\n y = w\nelse:\n y = None\nctx.probe = y", "None | w"),
    "finally": ("try:\n y = x\nfinally:\n z = w\nctx.probe = (y, z)", "(x, w)"),
    "with that may swallow": (
        "import contextlib\ny = x\nwith contextlib.suppress(ValueError):\n y = w\nctx.probe = y",
        "w | x",
    ),
    "match": ("match n:\n case 1:\n  y = x\n case _:\n  y = w\nctx.probe = y", "x | w"),
    "match without default": ("y = None\nmatch n:\n case 1:\n  y = x\nctx.probe = y", "x | None"),
    "match that binds": ("match n:\n case y:\n  ctx.probe = y", "?"),
    "match that binds in a class": ("y = x\nmatch f:\n case Point(y=y):\n  ctx.probe = y", "?"),
    "match with a rest": ("match f:\n case {'a': 1, **y}:\n  ctx.probe = y", "?"),
    "for": ("y = x\nfor i in f:\n y = w\nctx.probe = y", "x | w"),
    "for over a tuple": ("for y in (x, w):\n ctx.probe = y", "x | w"),
    "for over a range": ("for i in range(3):\n ctx.probe = i", "int"),
    "for over a shape": ("for i in x.shape:\n ctx.probe = i", "int"),
    "for with unpacking": ("for a, b in f:\n ctx.probe = b", "?"),
    "for, the loop variable afterwards": ("for y in (x, w):\n pass\nctx.probe = y", "x | w"),
    "for, in the loop before it is bound": ("y = x\nfor i in f:\n ctx.probe = y\n y = w", "x | w"),
    "for with break": ("y = x\nfor i in f:\n y = w\n break\nctx.probe = y", "x | w"),
    "for with continue": ("y = x\nfor i in f:\n if i:\n  y = w\n  continue\n y = None\nctx.probe = y", "x | None | w"),
    "for and else": ("for i in f:\n pass\nelse:\n y = x\nctx.probe = y", "x"),
    "for and else after break": ("y = w\nfor i in f:\n if i:\n  break\nelse:\n y = x\nctx.probe = y", "x | w"),
    "while": ("y = x\nwhile f():\n y = w\nctx.probe = y", "x | w"),
    "while True": ("y = None\nwhile True:\n y = x\n break\nctx.probe = y", "x"),
    "while narrows": ("y = None\nwhile y is None:\n y = f()\nctx.probe = x", "x"),
    "nested loops": ("y = x\nfor i in f:\n for j in f:\n  y = w\nctx.probe = y", "x | w"),
    "a chain through loops": ("a, b, c = x, w, None\nfor i in f:\n a = b\n b = c\nctx.probe = a", "?"),
    "computed in a loop": ("y = x\nfor i in f:\n y = y * 2\nctx.probe = y", "x | new"),
    "viewed in a loop": ("y = x\nfor i in f:\n y = y.view(-1)\nctx.probe = y", "tensor"),
    "counted in a loop": ("m = 0\nfor i in f:\n m += 1\nctx.probe = m", "?"),
    "deep loops": (
        "y = x\nfor a in f:\n for b in f:\n  for c in f:\n   for d in f:\n    y = w\nctx.probe = y",
        "x | ?",
    ),
    "comprehension target": ("y = x\nz = [y for y in f]\nctx.probe = y", "x"),
    "comprehension target, unbound outside": ("z = [y for y in f]\nctx.probe = y", "?"),
    "walrus in a comprehension": ("y = x\nz = [(y := v) for v in f]\nctx.probe = y", "?"),
    "nested comprehension": ("y = x\nz = [[y for y in v] for v in f]\nctx.probe = y", "x"),
    "nonlocal": ("y = x\ndef g():\n nonlocal y\n y = w\ng()\nctx.probe = y", "?"),
    "nonlocal, bound afterwards": ("y = None\ndef g():\n nonlocal y\n y = w\ny = x\nctx.probe = y", "?"),
    "a nested function's own name": ("y = x\ndef g():\n y = w\ng()\nctx.probe = y", "x"),
    "a nested class": ("y = x\nclass C:\n y = w\nctx.probe = y", "x"),
}


@pytest.mark.parametrize("name", PATHS)
def test_paths(name: str) -> None:
    body, expected = PATHS[name]
    assert probed(f"{body}\nreturn x")[-1] == expected


# ---------------------------------------------------------------------------------------------------------------------
# Attributes of ctx

ATTRIBUTES = {
    "written before": ("ctx.y = x\nctx.probe = ctx.y", "x"),
    "written twice": ("ctx.y = x\nctx.y = w\nctx.probe = ctx.y", "w"),
    "written on one path": ("if n:\n ctx.y = x\nctx.probe = ctx.y", "ctx.y"),
    "written on both paths": ("if n:\n ctx.y = x\nelse:\n ctx.y = x\nctx.probe = ctx.y", "x"),
    "written differently on both paths": ("if n:\n ctx.y = x\nelse:\n ctx.y = w\nctx.probe = ctx.y", "ctx.y"),
    "written in a loop": ("for i in f:\n ctx.y = x\nctx.probe = ctx.y", "ctx.y"),
    "deleted": ("ctx.y = x\ndel ctx.y\nctx.probe = ctx.y", "ctx.y"),
    "chained": ("ctx.y = z = x\nctx.probe = ctx.y", "x"),
    "in a tuple": ("ctx.y, z = x, w\nctx.probe = ctx.y", "x"),
    "through an alias of ctx": ("c = ctx\nc.y = x\nctx.probe = c.y", "x"),
    "a list that grows": ("ctx.y = []\nctx.y.append(x)\nctx.probe = ctx.y", "[x]"),
    "a list that grows under another name": ("y = []\nctx.y = y\ny.append(x)\nctx.probe = ctx.y", "[x]"),
    "augmented": ("ctx.y = 1\nctx.y += 1\nctx.probe = ctx.y", "2"),
    "by getattr": ("ctx.y = x\nctx.probe = getattr(ctx, 'y')", "x"),
}


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attributes_of_ctx(name: str) -> None:
    body, expected = ATTRIBUTES[name]
    assert probed(f"{body}\nreturn x")[-1] == expected


def test_setup_context_knows_inputs_and_outputs() -> None:
    code = """
class Fn(Function):
    @staticmethod
    def forward(x, n):
        y = x * n
        return y, n

    @staticmethod
    def setup_context(ctx, inputs, output):
        a, b = inputs
        ctx.probe = a
        ctx.probe = b
        ctx.probe = inputs[0]
        ctx.probe = inputs[-1]
        first, *rest = inputs
        ctx.probe = first
        out, m = output
        ctx.probe = out
        ctx.probe = m

    @staticmethod
    def backward(ctx, grad, other):
        return grad, None
"""
    (fn,) = read(HEAD + code).functions
    writes = [told(write.value) for write in fn.context_writes]
    assert writes == ["x", "n", "x", "n", "x", "new", "n"]


def test_setup_context_with_variadic_inputs() -> None:
    code = """
class Fn(Function):
    @staticmethod
    def forward(x, *rest):
        return x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, *rest = inputs
        ctx.probe = x
        ctx.probe = rest
        ctx.probe = (*inputs,)

    @staticmethod
    def backward(ctx, grad):
        return grad, None
"""
    (fn,) = read(HEAD + code).functions
    assert [told(write.value) for write in fn.context_writes] == ["x", "[*?]", "(*inputs,)"]


# ---------------------------------------------------------------------------------------------------------------------
# saved_tensors and needs_input_grad

SAVED = {
    "exact": ("a, b = ctx.saved_tensors\nctx.probe = b", "saved[1]"),
    "parenthesised": ("(a, b) = ctx.saved_tensors\nctx.probe = b", "saved[1]"),
    "list": ("[a, b] = ctx.saved_tensors\nctx.probe = b", "saved[1]"),
    "one with a comma": ("a, = ctx.saved_tensors\nctx.probe = a", "saved[0]"),
    "one in parentheses": ("(a,) = ctx.saved_tensors\nctx.probe = a", "saved[0]"),
    "with a rest": ("a, *rest = ctx.saved_tensors\nctx.probe = a", "saved[0]"),
    "the rest": ("a, *rest = ctx.saved_tensors\nctx.probe = rest", "[*saved]"),
    "after a star": ("*rest, a = ctx.saved_tensors\nctx.probe = a", "?"),
    "through a name": ("saved = ctx.saved_tensors\na, b = saved\nctx.probe = b", "saved[1]"),
    "subscript of a name": ("saved = ctx.saved_tensors\nctx.probe = saved[1]", "saved[1]"),
    "slice": ("ctx.probe = ctx.saved_tensors[:2]", "saved"),
    "slice, unpacked": ("a, b = ctx.saved_tensors[:2]\nctx.probe = b", "saved[1]"),
    "slice from the middle, unpacked": ("a, b = ctx.saved_tensors[2:]\nctx.probe = b", "saved[3]"),
    "slice from the end, unpacked": ("a, b = ctx.saved_tensors[-2:]\nctx.probe = b", "?"),
    "slice of a slice": ("a = ctx.saved_tensors[1:][1:]\nctx.probe = a[0]", "saved[2]"),
    "walrus": ("if (saved := ctx.saved_tensors):\n a, b = saved\n ctx.probe = b", "saved[1]"),
    "cast": ("a, b = cast(tuple, ctx.saved_tensors)\nctx.probe = b", "?"),
    "tuple of it": ("a, b = tuple(ctx.saved_tensors)\nctx.probe = b", "?"),
    "loop": ("for t in ctx.saved_tensors:\n ctx.probe = t", "?"),
    "comprehension": ("a, b = (t.float() for t in ctx.saved_tensors)\nctx.probe = b", "?"),
    "annotated": ("a: torch.Tensor\na, b = ctx.saved_tensors\nctx.probe = a", "saved[0]"),
    "alias of ctx": ("c = ctx\na, b = c.saved_tensors\nctx.probe = b", "saved[1]"),
    "old name": ("a, b = ctx.saved_variables\nctx.probe = b", "saved[1]"),
    "branches": (
        "if ctx.flag:\n a, b = ctx.saved_tensors\nelse:\n b, = ctx.saved_tensors\nctx.probe = b",
        "saved[1] | saved[0]",
    ),
    "bound in branches": (
        "if ctx.flag:\n saved = ctx.saved_tensors\nelse:\n saved = ctx.saved_tensors\na, b = saved\nctx.probe = b",
        "saved[1]",
    ),
    "and a method": ("a, b = ctx.saved_tensors\nb = b.clone()\nctx.probe = b", "new"),
    "spread": ("ctx.probe = (*ctx.saved_tensors, grad)", "(*saved, grad)"),
    "length": ("ctx.probe = len(ctx.saved_tensors)", "int"),
    "concatenated": ("ctx.probe = ctx.saved_tensors + (grad,)", "(*saved, grad)"),
}


@pytest.mark.parametrize("name", SAVED)
def test_saved_tensors(name: str) -> None:
    body, expected = SAVED[name]
    assert probed_backward(f"{body}\nreturn grad")[-1] == expected


NEEDS = {
    "subscript": ("ctx.probe = ctx.needs_input_grad[0]", "needs[0]"),
    "unpacked": ("a, b = ctx.needs_input_grad\nctx.probe = b", "needs[1]"),
    "unpacked with a rest": ("a, *b = ctx.needs_input_grad\nctx.probe = a", "needs[0]"),
    "the rest": ("a, *b = ctx.needs_input_grad\nctx.probe = b", "[*?]"),
    "name": ("needs = ctx.needs_input_grad\nctx.probe = needs[1]", "needs[1]"),
    "name, unpacked": ("needs = ctx.needs_input_grad\na, b = needs\nctx.probe = b", "needs[1]"),
    "slice, unpacked": ("a, b = ctx.needs_input_grad[:2]\nctx.probe = b", "needs[1]"),
    "slice from the middle": ("a, b = ctx.needs_input_grad[1:3]\nctx.probe = b", "needs[2]"),
    "slice, subscript": ("ctx.probe = ctx.needs_input_grad[1:][0]", "needs[1]"),
    "any of a slice": ("ctx.probe = any(ctx.needs_input_grad[:2])", "bool"),
    "not": ("ctx.probe = not ctx.needs_input_grad[0]", "bool"),
    "and": ("ctx.probe = ctx.needs_input_grad[0] and ctx.needs_input_grad[1]", "bool"),
    "alias of ctx": ("c = ctx\nctx.probe = c.needs_input_grad[0]", "needs[0]"),
    "loop": ("for need in ctx.needs_input_grad:\n ctx.probe = need", "?"),
    "enumerate": ("for i, need in enumerate(ctx.needs_input_grad):\n ctx.probe = need", "?"),
    "constant index": ("i = 1\nctx.probe = ctx.needs_input_grad[i]", "needs[1]"),
}


@pytest.mark.parametrize("name", NEEDS)
def test_needs_input_grad(name: str) -> None:
    body, expected = NEEDS[name]
    assert probed_backward(f"{body}\nreturn grad")[-1] == expected


# ---------------------------------------------------------------------------------------------------------------------
# What a write reaches, and what the elements are

STORAGE = {
    "x": ("x", "x"),
    "x.view(-1)": ("x", "x"),
    "x.view(-1).t()[0]": ("x", "x"),
    "x.reshape(-1)": (None, "x"),
    "x.contiguous().view(-1)": (None, "x"),
    "x.float()": (None, None),
    "x.to(w.device)": (None, None),
    "x.clone()": ("new", "new"),
    "x.clone().view(-1)": ("new", "new"),
    "x * 2": ("new", "new"),
    "x.pow(2)": ("new", "new"),
    "x.masked_select(x > 0)": ("new", "new"),
    "x if n else w": (None, None),
    "x.view(-1) if n else x": ("x", "x"),
    "x if n else x.clone()": (None, None),
    "extension.f(x)": ("?", "?"),
}


@pytest.mark.parametrize("expression", STORAGE)
def test_storage(expression: str) -> None:
    method = forward_of(f"x, w=None, n=1:\n ctx.probe = {expression}\n return x", backward="g:\n return g, g, None")
    (write,) = events(method, ContextWrite)
    assert write.value is not None
    found = tuple(
        None if origin is None else told(origin) for origin in (storage(write.value), usual_storage(write.value))
    )
    assert found == STORAGE[expression]


KINDS = {
    "x": Kind.FLOAT,  # it gets a gradient
    "x.view(-1)": Kind.FLOAT,
    "x.view(torch.int32)": Kind.INTEGRAL,
    "x.view(dtype=torch.int32)": Kind.INTEGRAL,
    "x.view(f)": Kind.FLOAT,
    "x.view(x.dtype)": Kind.FLOAT,
    "x.to(torch.int64)": Kind.INTEGRAL,
    "x.to(torch.float16)": Kind.FLOAT,
    "x.to(f)": Kind.UNKNOWN,
    "x.to(x > 0)": Kind.INTEGRAL,
    "(x > 0).to(x.dtype)": Kind.FLOAT,
    "(x > 0).type_as(x)": Kind.FLOAT,
    "(x > 0).type(f.dtype)": Kind.UNKNOWN,
    "x.cuda()": Kind.FLOAT,
    "x.float()": Kind.FLOAT,
    "x.long()": Kind.INTEGRAL,
    "x.bool()": Kind.INTEGRAL,
    "x > 0": Kind.INTEGRAL,
    "x == w": Kind.INTEGRAL,
    "x * 2": Kind.FLOAT,
    "x * (x > 0)": Kind.FLOAT,
    "(x > 0) * 2": Kind.INTEGRAL,
    "(x > 0) / 2": Kind.FLOAT,
    "(x > 0) & (x < 1)": Kind.INTEGRAL,
    "x.argmax()": Kind.INTEGRAL,
    "x.exp()": Kind.FLOAT,
    "x.sum()": Kind.FLOAT,
    "(x > 0).sum()": Kind.INTEGRAL,
    "(x > 0).mean()": Kind.FLOAT,
    "(x > 0).add(0.5)": Kind.UNKNOWN,
    "x.sort()[1]": Kind.INTEGRAL,
    "x.sort()[0]": Kind.FLOAT,
    "x.topk(2)[1]": Kind.INTEGRAL,
    "x.max(dim=0)[1]": Kind.INTEGRAL,
    "torch.autograd.Variable(x > 0)": Kind.INTEGRAL,
    "torch.zeros(3)": Kind.FLOAT,
    "torch.zeros(3, dtype=torch.int32)": Kind.INTEGRAL,
    "torch.zeros(3, dtype=x.dtype)": Kind.FLOAT,
    "torch.zeros(3, dtype=f.dtype)": Kind.UNKNOWN,
    "torch.empty(3, dtype=(x > 0).dtype)": Kind.INTEGRAL,
    "torch.zeros(3, **f)": Kind.UNKNOWN,
    "torch.zeros_like(x)": Kind.FLOAT,
    "torch.zeros_like(x, dtype=torch.bool)": Kind.INTEGRAL,
    "torch.full((2,), 1)": Kind.UNKNOWN,
    "torch.arange(3)": Kind.INTEGRAL,
    "torch.arange(0, 1, 0.1)": Kind.UNKNOWN,
    "torch.randint(0, 3, (2,))": Kind.INTEGRAL,
    "torch.rand(3)": Kind.FLOAT,
    "torch.get_rng_state()": Kind.INTEGRAL,
    "torch.cuda.get_rng_state()": Kind.INTEGRAL,
    "torch.div(x > 0, 2, rounding_mode='floor')": Kind.UNKNOWN,
    "extension.f(x)": Kind.UNKNOWN,
    "f.sum()": Kind.UNKNOWN,
    "x if n else x.clone()": Kind.FLOAT,
    "x if n else x > 0": Kind.UNKNOWN,
}


@pytest.mark.parametrize("expression", KINDS)
def test_kinds(expression: str) -> None:
    method = forward_of(f"x, w, n, f:\n ctx.probe = {expression}\n return x", backward="g:\n return g, g, None, None")
    (write,) = (each for each in events(method, ContextWrite) if each.attribute == "probe")
    assert write.value is not None
    assert kind_of(write.value) is KINDS[expression]


# ---------------------------------------------------------------------------------------------------------------------
# Changes in place: (body, what is changed and how)

MUTATIONS = {
    # traps 60, 61: rebinding and temporaries
    "method": ("x.mul_(2)", ["x mul_"]),
    "through a view": ("x.view(-1).mul_(2)", ["view(x) mul_"]),
    "through an alias": ("y = x\ny.mul_(2)", ["x mul_"]),
    "through data": ("x.data.copy_(w)", ["view(x) copy_"]),
    "rebound first": ("x = x.clone()\nx.mul_(2)", ["new mul_"]),
    "rebound by arithmetic": ("x = x * w\nx *= 2", ["new *="]),
    "temporary": ("x.clone().normal_()", ["new normal_"]),
    "temporary by arithmetic": ("(-x.masked_select(x > 0)).div_(2)", ["new div_"]),
    "power": ("x.pow(2).div_(2)", ["new div_"]),
    "new tensor": ("x.new_zeros(3).int().fill_(1)", ["new fill_"]),
    "chained": ("x.add_(1).mul_(2)", ["x add_", "x mul_"]),
    "detached": ("x.detach().mul_(2)", ["view(x) mul_"]),
    "contiguous": ("x.contiguous().mul_(2)", ["reshaped(x) mul_"]),
    "rebound to contiguous": ("x = x.contiguous()\nx.mul_(2)", ["reshaped(x) mul_"]),
    "converted": ("x.to(w.dtype).mul_(2)", ["converted(x) mul_"]),
    "to float16": ("x.half().mul_(2)", ["float16(x) mul_"]),
    "to float32": ("x.float().mul_(2)", ["float32(x) mul_"]),
    # items
    "item": ("x[0] = 1", ["x [...] ="]),
    "item of a view": ("x.view(-1)[0] = 1", ["view(x) [...] ="]),
    "slice": ("x[1:] = w", ["x [...] ="]),
    "mask": ("x[x > 0] = 0", ["x [...] ="]),
    "method of an item": ("x[0].zero_()", ["view(x) zero_"]),
    "method of a masked copy": ("x[x > 0].zero_()", ["new zero_"]),
    "augmented item": ("x[0] += 1", ["x [...] +="]),
    # trap 62: augmented assignment
    "augmented": ("x += 1", ["x +="]),
    "augmented number": ("n += x.ndim", ["n +="]),
    "augmented shape": ("m = x.shape[0]\nm += 1", []),
    "augmented list": ("outputs = []\noutputs += [x]", []),
    "augmented attribute": ("x.grad += 1", []),
    "item of a list": ("outputs = [None]\noutputs[0] = x", []),
    "item of a dict": ("outputs = {}\noutputs['x'] = x", []),
    "item of an attribute": ("ctx.cache[0] = x", ["ctx.cache [...] ="]),
    # functions
    "out=": ("torch.mul(x, 2, out=x)", ["x out="]),
    "out= of a view": ("torch.mul(x, 2, out=x.view(-1))", ["view(x) out="]),
    "out=None": ("torch.mul(x, 2, out=None)", []),
    "function with an underscore": ("torch.relu_(x)", ["x relu_"]),
    "functional with an underscore": ("F.relu_(x)", ["x relu_"]),
    "inplace=True": ("F.relu(x, inplace=True)", ["x relu(inplace=True)"]),
    "inplace=False": ("F.relu(x, inplace=False)", []),
    "inplace=flag": ("F.relu(x, inplace=f)", []),
    "all_reduce": ("dist.all_reduce(x)", ["x all_reduce"]),
    "all_reduce by keyword": ("dist.all_reduce(tensor=x, group=f)", ["x all_reduce"]),
    "all_reduce of a temporary": ("dist.all_reduce(x.contiguous())", ["reshaped(x) all_reduce"]),
    "all_gather": ("dist.all_gather(f, x)", []),
    "foreign kernel": ("extension.inplace_(x)", []),
    # traps 67, 68: what only sounds like it
    "requires_grad_": ("x.requires_grad_()", []),
    "detach_": ("x.detach_()", []),
    "share_memory_": ("x.share_memory_()", []),
    "retain_grad": ("x.retain_grad()", []),
    "an attribute with an underscore": ("y = x.shape_", []),
    "an unknown method with an underscore": ("f.reset_()", []),
    "a module with an underscore": ("f.fc_(x)", []),
    "a function with an underscore of one's own": ("my_(x)", []),
    "list append": ("f.append(x)", []),
    # branches
    "a choice": ("y = x if n else w\ny.mul_(2)", ["x | w mul_"]),
    "in a loop": ("for i in f:\n x.mul_(2)", ["x mul_"]),
    "in a comprehension": ("[x.mul_(2) for i in f]", ["x mul_"]),
    "in a nested function": ("def g():\n x.mul_(2)", []),
    "an unknown object": ("f.mul_(2)", ["f mul_"]),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_mutations(name: str) -> None:
    body, expected = MUTATIONS[name]
    method = forward_of(f"x, w, n, f:\n{_indented(body)}\n return x", backward="g:\n return g, g, None, None")
    assert [f"{told(each.target)} {each.how}" for each in events(method, Mutation)] == expected


BACKWARD_MUTATIONS = {
    "incoming gradient": ("grad.mul_(2)", ["grad mul_"]),
    "through an alias": ("g = grad\ng[0] = 0", ["grad [...] ="]),
    "rebound": ("grad = grad.clone()\ngrad.mul_(2)", ["new mul_"]),
    "saved": ("a, = ctx.saved_tensors\na.mul_(grad)", ["saved[0] mul_"]),
    "augmented saved": ("a, = ctx.saved_tensors\na *= grad\nb = a", ["saved[0] *="]),
    "stored on ctx": ("ctx.grads.mul_(grad)", ["ctx.grads mul_"]),
    "a choice of saved and new": (
        "a, = ctx.saved_tensors\nb = a if ctx.inplace else torch.empty_like(a)\nb.mul_(2)",
        ["saved[0] | new mul_"],
    ),
    "accumulated": ("total = 0\nfor i in ctx.parts:\n total += grad", []),
}


@pytest.mark.parametrize("name", BACKWARD_MUTATIONS)
def test_mutations_in_backward(name: str) -> None:
    body, expected = BACKWARD_MUTATIONS[name]
    method = backward_of(f"grad:\n{_indented(body)}\n return grad")
    assert [f"{told(each.target)} {each.how}" for each in events(method, Mutation)] == expected


def test_a_mutation_names_its_variable() -> None:
    fn = function("x, w:\n x.view(-1)[0].mul_(2)\n return x", "g:\n return g, g")
    assert fn.forward is not None
    (mutation,) = events(fn.forward, Mutation)
    assert mutation.name == "x"
