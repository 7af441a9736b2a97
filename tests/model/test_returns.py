"""The number of gradients and outputs: every way to return them seen in real code or possible in Python.

``2`` is an exact count, ``2+`` a lower bound, ``?`` unknown; a list has one entry for each alternative of each return.
"""

from __future__ import annotations

import pytest

from ctxlint.model.interpreter.values import Tri, is_none
from tests.model.models import backward_of, counts, function

# ---------------------------------------------------------------------------------------------------------------------
# backward: (parameters and body, expected counts)

GRADIENTS = {
    # 1, 2: displays
    "tuple display": ("grad:\n dx, dw = extension.backward(grad)\n return dx, dw, None", "3"),
    "tuple display in parentheses": ("grad:\n return (grad, None)", "2"),
    "conditional element": ("grad:\n return grad, (grad if ctx.has_bias else None)", "2"),
    "conditional elements only": ("grad:\n return (grad if ctx.a else None), (None if ctx.b else grad)", "2"),
    # 3: starred constants
    "starred constant": ("grad:\n return grad, grad, *((None,) * 30)", "32"),
    "starred list constant": ("grad:\n return grad, *[None] * 10", "11"),
    "starred constant, number first": ("grad:\n return grad, *(3 * (None,))", "4"),
    "starred constant of two": ("grad:\n return (grad, *((None, None) * 2), grad)", "6"),
    "starred display": ("grad:\n return grad, *(None, None)", "3"),
    "starred named constant": ("grad:\n nones = (None,) * 4\n return (grad, *nones)", "5"),
    "starred constant, count is a name": ("grad:\n n = 4\n return (grad, *(None,) * n)", "5"),
    "starred constant, count is arithmetic": ("grad:\n n = 4\n return (grad, *(None,) * (n - 1))", "4"),
    # 4, 14, 15: starred unknowns give a lower bound
    "starred unknown at the end": ("grad:\n return None, None, *ctx.runner.static_grad_inputs", "2+"),
    "starred unknown in brackets": ("grad:\n dvs = extension.backward(grad)\n return (None, *dvs)", "1+"),
    "starred unknown in the middle": ("grad:\n return grad, *ctx.more, None", "2+"),
    "starred constant times an unknown": ("grad:\n return None, *(None,) * len(ctx.runner.inputs)", "1+"),
    "starred generator": ("grad:\n return (None, *(g for g in extension.backward(grad)))", "1+"),
    "starred gradients, of the one output": ("*grads:\n return (None, *grads)", "2"),
    # 5, 6: concatenation
    "concatenation, all known": ("grad:\n return (None, None) + (Other.apply(grad),)", "3"),
    "concatenation with a repeated constant": ("grad:\n return (grad,) + (None,) * 5", "6"),
    "concatenation of three": ("grad:\n return (grad,) + (None,) + (grad, grad)", "4"),
    "concatenation with an unknown": ("grad:\n grads = extension.f(grad)\n return (None, None) + grads", "2+"),
    "unknown first": ("grad:\n grads = extension.f(grad)\n return grads + (None, None)", "2+"),
    "concatenation with *args": ("*grads:\n return grads + (None, None, None, None)", "5"),
    "concatenation of slices of *args": ("*grads:\n return grads[:2] + grads[2:]", "0+"),
    "concatenation with tuple(list)": ("grad:\n return (None,) + tuple([grad, grad])", "3"),
    "concatenation with tuple(unknown)": ("grad:\n return (None,) + tuple(extension.f(grad))", "1+"),
    "augmented concatenation": ("grad:\n grads = (grad,)\n grads += (None, None)\n return grads", "3"),
    # 7: functions that cannot be followed
    "foreign call": ("grad:\n return extension.swiglu_backward(grad)", "?"),
    "method of ctx": ("grad:\n return ctx.module.backward(grad)", "?"),
    "unknown static method": ("grad:\n return Unknown._backward(grad)", "?"),
    # 8: the gradient itself
    "bare gradient": ("grad:\n return grad", "1"),
    "bare *args": ("*grads:\n return grads", "0+"),
    "element of *args": ("*grads:\n return grads[0]", "1"),
    "one of two gradients": ("grad, other:\n return other", "1"),
    "gradient with default": ("grad, other=None:\n return other", "1"),
    # 9: arithmetic
    "arithmetic": ("grad:\n return ctx.scale * grad", "1"),
    "negation": ("grad:\n return -grad", "1"),
    "product of unknowns": ("grad:\n a, b = extension.f(grad)\n return a * b", "?"),
    "quotient of unknowns": ("grad:\n a, b = extension.f(grad)\n return a / b", "1"),
    "sum of unknowns": ("grad:\n a, b = extension.f(grad)\n return a + b", "?"),
    "unknown plus a tuple": ("grad:\n grads = extension.f(grad)\n return grads + (None,)", "1+"),
    "unknown times a number": ("grad:\n a = extension.f(grad)\n return a * 2", "?"),
    "unknown times a float": ("grad:\n a = extension.f(grad)\n return a * 0.5", "1"),
    "matrix product of unknowns": ("grad:\n a, b = extension.f(grad)\n return a @ b", "1"),
    # 10, 11: methods and functions of torch
    "view": ("grad:\n return grad.view(ctx.shape)", "1"),
    "clone": ("grad:\n return grad.clone()", "1"),
    "chained methods": ("grad:\n return grad.transpose(0, 1).contiguous().sum(-1)", "1"),
    "split": ("grad:\n return grad.split(2)", "0+"),
    "chunk": ("grad:\n return grad.chunk(3, dim=-1)", "0+"),
    "unbind": ("grad:\n return torch.unbind(grad)", "0+"),
    "unknown method": ("grad:\n return grad.some_method()", "?"),
    "torch.cat": ("grad:\n return torch.cat([grad, grad])", "1"),
    "torch.stack": ("grad:\n return torch.stack((grad, grad), dim=0)", "1"),
    "functional": ("grad:\n return F.pad(grad, (1, 1))", "1"),
    "unknown function of torch": ("grad:\n return torch.something_new(grad)", "?"),
    "torch.max with dim": ("grad:\n return torch.max(grad, 0)", "2"),
    "torch.where with one argument": ("grad:\n return torch.where(grad > 0)", "0+"),
    "torch.where with three": ("grad:\n return torch.where(grad > 0, grad, 0.0)", "1"),
    "nonzero as tuple": ("grad:\n return grad.nonzero(as_tuple=True)", "0+"),
    "torch.autograd.grad": ("grad:\n return torch.autograd.grad(ctx.y, ctx.x, grad)", "0+"),
    "torch.atleast_1d of several": ("grad:\n return torch.atleast_1d(grad, grad)", "0+"),
    "custom operator": ("grad:\n return torch.ops.extension.backward(grad)", "?"),
    # 12, 13: variables
    "tuple variable": ("grad:\n grads = (grad, None, None)\n return grads", "3"),
    "tuple variable, named Nones": ("grad:\n dw = None\n grads = (grad, dw)\n return grads", "2"),
    "tuple variable rebound": ("grad:\n grads = (grad,)\n grads = extension.f(grads)\n return grads", "?"),
    "tuple(list display)": ("grad:\n grads = [grad, None]\n return tuple(grads)", "2"),
    "tuple(unknown)": ("grad:\n grads = extension.f(grad)\n return tuple(grads)", "0+"),
    "tuple(genexp)": ("grad:\n return tuple(g for g in extension.f(grad))", "0+"),
    "tuple(genexp over a known tuple)": ("grad:\n return tuple(g * 2 for g in (grad, grad))", "2"),
    "tuple(filtered genexp)": ("grad:\n return tuple(g for g in (grad, None) if g is not None)", "0+"),
    "index-assigned list": ("grad:\n grads = [None] * 14\n grads[0] = grad\n return tuple(grads)", "14"),
    "index-assigned in a branch": (
        "grad:\n grads = [None] * 5\n if ctx.needs_input_grad[0]:\n  grads[0] = grad\n return tuple(grads)",
        ["5", "5"],
    ),
    "index-assigned in a loop": (
        "grad:\n grads = [None] * 5\n for i in range(3):\n  grads[i] = grad\n return tuple(grads)",
        "5",
    ),
    "slice-assigned list": ("grad:\n grads = [None] * 4\n grads[1:3] = extension.f(grad)\n return tuple(grads)", "0+"),
    "deleted element": ("grad:\n grads = [grad, None, None]\n del grads[0]\n return tuple(grads)", "0+"),
    # 14, 15, 16, 17, 18: bare locals, None, attributes, subscripts, other Functions
    "bare local, arithmetic": ("grad:\n dx = grad * 2\n return dx", "1"),
    "bare local, torch function": ("grad:\n dx = torch.empty_like(grad)\n return dx", "1"),
    "bare local, new_*": ("grad:\n dx = grad.new_zeros(3)\n return dx", "1"),
    "bare local, foreign call": ("grad:\n dx = extension.f(grad)\n return dx", "?"),
    "bare local, bound by unpacking": ("grad:\n dx, _ = extension.f(grad)\n return dx", "?"),
    "bare local, rebound": ("grad:\n dx = grad * 2\n dx = extension.f(dx)\n return dx", "?"),
    "return None": ("grad:\n return None", "1"),
    "bare return": ("grad:\n return", "1"),
    "ctx attribute": ("grad:\n return ctx.grad_from_pipeline", "?"),
    "saved tensors": ("grad:\n return ctx.saved_tensors", "?"),
    "one saved tensor": ("grad:\n return ctx.saved_tensors[0]", "1"),
    "subscript of the gradient": ("grad:\n return grad[0]", "1"),
    "subscript of an unknown": ("grad:\n return extension.f(grad)[0]", "?"),
    "subscript of a known tuple": ("grad:\n return ((grad, None), 1)[0]", "2"),
    "slice of a known tuple": ("grad:\n grads = (grad, grad, None, None)\n return grads[:3]", "3"),
    "slice with a negative bound": ("grad:\n grads = (grad, grad, None, None)\n return grads[:-1]", "3"),
    "slice with an unknown bound": ("grad:\n grads = (grad, grad, None, None)\n return grads[: ctx.n]", "0+"),
    "slice with a step": ("grad:\n grads = (grad, grad, None, None)\n return grads[::2]", "0+"),
    "slice of an unknown": ("grad:\n return extension.f(grad)[:4]", "?"),
    "other apply": ("grad:\n return Other.apply(grad)", "?"),
    "one-tuple": ("grad:\n return (grad,)", "1"),
    "one-tuple without parentheses": ("grad:\n return grad,", "1"),
    "empty tuple": ("grad:\n return ()", "0"),
    # 21, 22, 23
    "several returns": ("grad:\n if ctx.flag:\n  return grad, None\n return grad, grad, None", ["2", "3"]),
    "nested function": ("grad:\n def grid(meta):\n  return (1, 2, 3)\n return grad, None", "2"),
    "nested lambda": ("grad:\n grid = lambda meta: (1, 2, 3)\n return grad, None", "2"),
    "nested class": ("grad:\n class Grid:\n  def size(self):\n   return 1, 2, 3\n return grad, None", "2"),
    "inside with": ("grad:\n with torch.enable_grad():\n  return grad, None", "2"),
    "inside try": ("grad:\n try:\n  return grad, None\n except ValueError:\n  return None, None, None", ["2", "3"]),
    "try and finally": ("grad:\n try:\n  return grad, None\n finally:\n  torch.cuda.synchronize()", "2"),
    "inside except": (
        "grad:\n try:\n  g = extension.f(grad)\n except Exception:\n  return None, None\n return g, g, g",
        ["2", "3"],
    ),
    "after try": ("grad:\n try:\n  g = (grad, grad)\n except ImportError:\n  g = (grad,)\n return g", ["2", "1"]),
    "bound in try, then more": (
        "grad:\n g = (grad,)\n try:\n  g = (grad, grad)\n  g = extension.f(g)\n except ImportError:\n  pass\n return g",
        ["?", "?"],
    ),
    # lists that grow
    "append outside a loop": ("grad:\n grads = [None]\n grads.append(grad)\n return tuple(grads)", "2"),
    "append in a loop": (
        "grad:\n grads = [None, None]\n for g in ctx.all:\n  grads.append(g)\n return tuple(grads)",
        "2+",
    ),
    "append in a while loop": (
        "grad:\n grads = []\n while ctx.more:\n  grads.append(grad)\n return tuple(grads)",
        "0+",
    ),
    "append in one branch": (
        "grad:\n grads = [grad]\n if ctx.flag:\n  grads.append(None)\n return tuple(grads)",
        ["2", "1"],
    ),
    "append in one branch, then for all": (
        "grad:\n grads = [grad]\n if ctx.flag:\n  grads.append(None)\n grads.append(None)\n return tuple(grads)",
        ["3", "2"],
    ),
    "append to an alias": ("grad:\n grads = more = [grad]\n more.append(None)\n return tuple(grads)", "2"),
    "append to an alias after a branch": (
        "grad:\n grads = more = [grad]\n if ctx.flag:\n  more.append(None)\n more.append(None)\n return tuple(grads)",
        ["3", "2"],
    ),
    "append to a copy": ("grad:\n grads = [grad]\n more = grads.copy()\n more.append(None)\n return tuple(grads)", "1"),
    "extend by a display": ("grad:\n grads = [grad]\n grads.extend([None, None])\n return tuple(grads)", "3"),
    "extend by a constant": ("grad:\n grads = [grad]\n grads.extend([None] * 6)\n return tuple(grads)", "7"),
    "extend by an unknown": ("grad:\n grads = [grad]\n grads.extend(ctx.more)\n return tuple(grads)", "1+"),
    "augmented list": ("grad:\n grads = [grad]\n grads += [None] * 3\n return tuple(grads)", "4"),
    "augmented list, seen through an alias": (
        "grad:\n grads = more = [grad]\n more += [None]\n return tuple(grads)",
        "2",
    ),
    "insert": ("grad:\n grads = [grad]\n grads.insert(0, None)\n return tuple(grads)", "2"),
    "pop": ("grad:\n grads = [grad, None]\n grads.pop()\n return tuple(grads)", "1"),
    "pop in a loop": (
        "grad:\n grads = [grad, None, None]\n for _ in ctx.all:\n  grads.pop()\n return tuple(grads)",
        "0+",
    ),
    "remove": ("grad:\n grads = [grad, None]\n grads.remove(None)\n return tuple(grads)", "0+"),
    "list given to an unknown function": ("grad:\n grads = []\n extension.fill(grads)\n return tuple(grads)", "0+"),
    "list given to len": ("grad:\n grads = [grad]\n assert len(grads) == 1\n return tuple(grads)", "1"),
    "list given to torch.cat": ("grad:\n grads = [grad, grad]\n total = torch.cat(grads)\n return tuple(grads)", "2"),
    "list changed by a closure": (
        "grad:\n grads = []\n def add(g):\n  grads.append(g)\n add(grad)\n return tuple(grads)",
        "0+",
    ),
    "name rebound by a closure": (
        "grad:\n grads = (grad,)\n def add():\n  nonlocal grads\n  grads = grads + (None,)\n add()\n return grads",
        "?",
    ),
    "list stored elsewhere": ("grad:\n grads = []\n ctx.store.grads = grads\n ctx.run()\n return tuple(grads)", "0+"),
    "list inside a list": ("grad:\n grads = []\n both = [grads]\n both[0].append(grad)\n return tuple(grads)", "1"),
    "list comprehension": ("grad:\n return tuple([g for g in ctx.all])", "0+"),
    "list comprehension over a known list": ("grad:\n return tuple([g * 2 for g in [grad, grad, grad]])", "3"),
    "tuple grown in a loop": ("grad:\n grads = (None,)\n for g in ctx.all:\n  grads += (g,)\n return grads", "1+"),
    "tuple grown at the front": (
        "grad:\n grads = (None,)\n for g in ctx.all:\n  grads = (g,) + grads\n return grads",
        "0+",
    ),
    "loop over a name that turns": (
        "grad:\n a, b, c = (1,), (1, 2), (1, 2, 3)\n for _ in ctx.all:\n  a, b, c = b, c, a\n return a",
        "0+",
    ),
    # Python's own possibilities
    "nested tuples": ("grad:\n return (grad, grad), None", "2"),
    "parenthesised star": ("grad:\n return *ctx.grads, None, None", "2+"),
    "conditional expression": ("grad:\n return grad if ctx.one else (grad, None)", ["1", "2"]),
    "conditional of displays": ("grad:\n return (grad, None) if ctx.flag else (None, grad)", ["2", "2"]),
    "chained conditional": (
        "grad:\n return grad if ctx.a else (grad, None) if ctx.b else (grad, None, None)",
        ["1", "2", "3"],
    ),
    "conditional with an unknown": ("grad:\n return (grad, None) if ctx.flag else ctx.run(grad)", ["2", "?"]),
    "conditional name": ("grad:\n if ctx.a:\n  g = (grad, None)\n else:\n  g = grad\n return g", ["2", "1"]),
    "bound in one branch only": ("grad:\n if ctx.a:\n  g = (grad, None)\n return g", "2"),
    "or": ("grad:\n return ctx.grads or (None, None)", ["?", "2"]),
    "walrus": ("grad:\n return (g := (grad, None))", "2"),
    "walrus element": ("grad:\n return (g := grad * 2), g", "2"),
    "walrus in a test": (
        "grad:\n if (g := (grad, None)) is not None:\n  return g\n return None, None, None",
        ["2", "3"],
    ),
    "match": (
        "grad:\n match ctx.mode:\n  case 'a':\n   return grad\n  case 'b':\n   return grad, None\n  case _:\n   return None, None, None",
        ["1", "2", "3"],
    ),
    "match that binds": (
        "grad:\n match ctx.grads:\n  case (a, b):\n   return a, b\n  case other:\n   return other",
        ["2", "?"],
    ),
    "for and else": (
        "grad:\n for g in ctx.all:\n  if g is None:\n   break\n else:\n  return grad, None\n return grad",
        ["2", "1"],
    ),
    "while and else": (
        "grad:\n while ctx.more():\n  if ctx.stop:\n   break\n else:\n  return grad, None\n return grad",
        ["2", "1"],
    ),
    "return in finally": ("grad:\n try:\n  g = ctx.run(grad)\n finally:\n  return grad, None", "2"),
    "rebound in with": ("grad:\n with ctx.lock as g:\n  pass\n return g", "?"),
    "rebound by a loop": ("grad:\n g = (grad, None)\n for g in ctx.all:\n  pass\n return g", ["2", "?"]),
    "rebound by an import": ("grad:\n g = (grad, None)\n import g\n return g", "?"),
    "rebound by except": (
        "grad:\n g = (grad,)\n try:\n  ctx.run()\n except ValueError as g:\n  pass\n return g",
        ["1", "?"],
    ),
    "comprehension target has its own scope": ("grad:\n g = (grad, None)\n h = [g for g in ctx.all]\n return g", "2"),
    "walrus in a comprehension binds outside": (
        "grad:\n g = (grad, None)\n h = [(g := each) for each in ctx.all]\n return g",
        "?",
    ),
    "dict": ("grad:\n return {'x': grad}", "1"),
    "list": ("grad:\n return [grad, None]", "1"),
    "set": ("grad:\n return {grad}", "1"),
    "number": ("grad:\n return 0", "1"),
    "string": ("grad:\n return 'none'", "1"),
    "shape is a tuple": ("grad:\n return grad.shape", "?"),
    "global constant": ("grad:\n return (grad,) + NONES", "4"),
    "global number": ("grad:\n return (grad,) + (None,) * COUNT", "3"),
    "global that is changed": ("grad:\n return (grad,) + (None,) * CHANGED", "1+"),
    "global that a function rebinds": ("grad:\n return (grad,) + (None,) * REBOUND", "1+"),
    "global list": ("grad:\n return (grad, *NONE_LIST)", "1+"),
    "unpacked and packed again": ("grad:\n a, b = (grad, None)\n return a, b", "2"),
    "starred target": ("grad:\n first, *rest = (grad, None, None)\n return rest", "1"),
    "starred target as tuple": ("grad:\n first, *rest = (grad, None, None)\n return tuple(rest)", "2"),
    "swapped": ("grad:\n a, b = (grad,), (grad, None)\n a, b = b, a\n return a", "2"),
    "augmented name": ("grad:\n g = grad\n g *= 2\n return g", "1"),
    "chained assignment": ("grad:\n a = b = (grad, None)\n return a", "2"),
    "annotated assignment": ("grad:\n g: tuple = (grad, None)\n return g", "2"),
    "deleted name": ("grad:\n g = (grad, None)\n del g\n return g", "?"),
    "sorted": ("grad:\n return tuple(sorted([grad, grad]))", "0+"),
    "reversed": ("grad:\n return tuple(reversed((grad, None)))", "0+"),
    "map": ("grad:\n return tuple(map(extension.f, (grad, grad)))", "0+"),
    "zip": ("grad:\n return tuple(zip((grad,), (grad,)))", "0+"),
    "dict values": ("grad:\n return tuple(ctx.grads.values())", "0+"),
    "literal True": ("grad:\n if True:\n  return grad, None\n return grad", "2"),
    "local flag": ("grad:\n flag = False\n if flag:\n  return grad\n return grad, None", "2"),
    "endless loop": ("grad:\n while True:\n  return grad, None\n return grad", "2"),
    "unreachable": ("grad:\n return grad, None\n return grad", "2"),
    "after sys.exit": ("grad:\n import sys\n sys.exit()\n return grad", []),
}

MODULE = """
NONES = (None,) * 3
COUNT = 2
CHANGED = 2
CHANGED += 1
REBOUND = 2
NONE_LIST = [None, None]

def change():
    global REBOUND
    REBOUND = 3
"""


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name: str) -> None:
    written, expected = GRADIENTS[name]
    fn = function(backward=written, before=MODULE)
    assert counts(fn.gradients) == ([expected] if isinstance(expected, str) else expected)


RAISE_ONLY = {
    "raise": "grad:\n raise NotImplementedError",
    "raise in both branches": "grad:\n if ctx.a:\n  raise ValueError\n else:\n  raise TypeError('no')",
    "assert False": "grad:\n assert False, 'no'",
    "raise after work": "grad:\n g = grad * 2\n raise NotImplementedError(g)",
    "a function that raises": "grad:\n fail()",
    "a function that raises, returned": "grad:\n return fail()",
    "endless": "grad:\n while True:\n  pass",
}


@pytest.mark.parametrize("name", RAISE_ONLY)
def test_a_body_that_only_raises_returns_nothing(name: str) -> None:
    fn = function(backward=RAISE_ONLY[name], before="def fail():\n    raise RuntimeError('no backward')\n")
    assert fn.gradients == ()
    assert fn.backward is not None
    assert fn.backward.raises_only


FALLS_THROUGH = {
    "pass": "grad:\n pass",
    "one branch": "grad:\n if ctx.a:\n  return grad",
    "one of three branches": "grad:\n if ctx.a:\n  return grad\n elif ctx.b:\n  pass\n else:\n  raise ValueError",
    "match without a default": "grad:\n match ctx.mode:\n  case 1:\n   return grad",
    "with that may swallow": "grad:\n import contextlib\n with contextlib.suppress(ValueError):\n  return grad",
    "except that goes on": "grad:\n try:\n  return grad\n except ValueError:\n  pass",
    "loop that may end": "grad:\n while True:\n  if ctx.done:\n   break",
    "for and else that returns": "grad:\n for g in ctx.all:\n  if g:\n   break\n else:\n  return grad",
}

RETURNS_ALWAYS = {
    "both branches": "grad:\n if ctx.a:\n  return grad\n else:\n  return None",
    "return or raise": "grad:\n if ctx.a:\n  return grad\n raise ValueError",
    "match with a default": "grad:\n match ctx.mode:\n  case 1:\n   return grad\n  case _:\n   raise ValueError",
    "with": "grad:\n with torch.no_grad():\n  return grad",
    "try with a handler that raises": "grad:\n try:\n  return grad\n except ValueError:\n  raise",
    "finally": "grad:\n try:\n  ctx.run()\n finally:\n  return grad",
    "endless loop": "grad:\n while True:\n  if ctx.done:\n   return grad",
    "for and else": "grad:\n for g in ctx.all:\n  pass\n else:\n  return grad",
}


@pytest.mark.parametrize("name", FALLS_THROUGH)
def test_the_end_is_reached(name: str) -> None:
    assert backward_of(FALLS_THROUGH[name]).facts.falls_through is Tri.YES


@pytest.mark.parametrize("name", RETURNS_ALWAYS)
def test_the_end_is_not_reached(name: str) -> None:
    assert backward_of(RETURNS_ALWAYS[name]).facts.falls_through is Tri.NO


GENERATORS = {
    "yield": "grad:\n yield grad",
    "yield in an assignment": "grad:\n got = yield grad\n return got",
    "yield from": "grad:\n yield from (grad, None)",
    "yield in a call": "grad:\n extension.f((yield grad))",
    "yield that is never reached": "grad:\n return grad\n yield",
    "yield in a return": "grad:\n return (yield grad)",
}


@pytest.mark.parametrize("name", GENERATORS)
def test_a_generator_gives_no_gradients(name: str) -> None:
    fn = function(backward=GENERATORS[name])
    assert fn.backward is not None
    assert fn.backward.facts.is_generator
    assert fn.gradients == ()


def test_yield_in_a_nested_function_makes_no_generator() -> None:
    fn = function(backward="grad:\n def each():\n  yield grad\n return tuple(each())")
    assert fn.backward is not None
    assert not fn.backward.facts.is_generator
    assert counts(fn.gradients) == ["1"]


# ---------------------------------------------------------------------------------------------------------------------
# The slots: what is certainly None, and what may be a gradient

SLOTS = {
    "literal None": ("grad:\n return grad, None", "g-"),
    "named None": ("grad:\n db = None\n return grad, db", "g-"),
    "chained None": ("grad:\n da = db = None\n return da, db", "--"),
    "unpacked None": ("grad:\n da, db = None, grad\n return da, db", "-g"),
    "set in a branch": ("grad:\n db = None\n if ctx.bias:\n  db = grad\n return grad, db", "gg"),
    "repeated None": ("grad:\n return (grad,) + (None,) * 2", "g--"),
    "index-assigned": ("grad:\n g = [None] * 3\n g[1] = grad\n return tuple(g)", "-g-"),
    "index-assigned from the end": ("grad:\n g = [None] * 3\n g[-1] = grad\n return tuple(g)", "--g"),
    "index-assigned, unknown index": ("grad:\n g = [None] * 3\n g[ctx.i] = grad\n return tuple(g)", "ggg"),
    "index-assigned in one arm": ("grad:\n g = [None] * 2\n if ctx.a:\n  g[0] = grad\n return tuple(g)", "g-"),
    "index-assigned after a choice": (
        "grad:\n g = [None, None] if ctx.a else [None, grad]\n g[0] = grad\n return tuple(g)",
        "gg",
    ),
    "conditional element": ("grad:\n return (grad if ctx.a else None), None", "g-"),
    "unknown": ("grad:\n a, b = extension.f(grad)\n return a, b", "gg"),
    "in a loop": ("grad:\n a = None\n for g in ctx.all:\n  a = g\n return a, None", "g-"),
    "None in a loop": ("grad:\n a = None\n for g in ctx.all:\n  a = None\n return a, None", "--"),
}


@pytest.mark.parametrize("name", SLOTS)
def test_slots(name: str) -> None:
    written, expected = SLOTS[name]
    fn = function(forward="x, y=0, z=0:\n return x.clone()", backward=written)
    found = ""
    for at in range(len(expected)):
        slots = [returned.slots[at].value for returned in fn.gradients]
        found += "-" if all(is_none(value) is Tri.YES for value in slots) else "g"
    assert found == expected


# ---------------------------------------------------------------------------------------------------------------------
# Functions of the same file, followed one level

HELPERS = """
def pair(g, w):
    return g * w, None

def one(g):
    return g * 2

def either(g, flag):
    if flag:
        return g, None
    return g

def with_default(g, bias=None):
    if bias is None:
        return g, None
    return g, None, None

def spread(*grads):
    return grads

def keyword(g, *, need_bias=False):
    return (g, g) if need_bias else g

def numbers(*, n):
    return (None,) * n

def unknown(g):
    return extension.f(g)

def outer(g):
    return pair(g, g)

def again(g, n):
    if n:
        return again(g, n - 1)
    return g, None

def nothing(g):
    g.zero_()

def generator(g):
    yield g

async def later(g):
    return g, None

@decorated
def wrapped(g):
    return g, None

@torch.no_grad()
def without_grad(g):
    return g, None

def closes_over(g):
    def inner():
        return 1, 2, 3
    return g, None

def fills(grads):
    grads.append(None)

if torch.cuda.is_available():
    def platform(g):
        return g, None
else:
    def platform(g):
        return g

try:
    from extension import fallback
except ImportError:
    def fallback(g):
        return g, None

def overridden(g):
    return g
def overridden(g):
    return g, None
"""

FOLLOWED = {
    "pair": ("grad:\n return pair(grad, ctx.w)", "2"),
    "one": ("grad:\n return one(grad)", "1"),
    "unpacked": ("grad:\n dx, dw = pair(grad, 2)\n return dx, dw, None", "3"),
    "starred": ("grad:\n return (*pair(grad, 2), None)", "3"),
    "concatenated": ("grad:\n return pair(grad, 2) + (None,)", "3"),
    "different counts": ("grad:\n return either(grad, ctx.flag)", ["2", "1"]),
    "different counts, the flag is given": ("grad:\n return either(grad, True)", "2"),
    "different counts, a false flag": ("grad:\n return either(grad, flag=False)", "1"),
    "default left out": ("grad:\n return with_default(grad)", "2"),
    "default given": ("grad:\n return with_default(grad, ctx.bias)", ["2", "3"]),
    "*args": ("grad:\n return spread(grad, None, None)", "3"),
    "*args from a star": ("grad:\n return spread(grad, *ctx.more)", "1+"),
    "star on parameters": ("grad:\n return pair(*ctx.more)", "2"),
    "known star on parameters": ("grad:\n return pair(*(grad, 2))", "2"),
    "keyword": ("grad:\n return keyword(grad, need_bias=True)", "2"),
    "keyword left out": ("grad:\n return keyword(grad)", "1"),
    "keyword number": ("grad:\n return numbers(n=3)", "3"),
    "double star": ("grad:\n return keyword(grad, **ctx.options)", "?"),
    "wrong arguments": ("grad:\n return pair(grad, 1, 2, 3)", "?"),
    "missing arguments": ("grad:\n return pair(grad)", "?"),
    "unknown inside": ("grad:\n return unknown(grad)", "?"),
    "two levels": ("grad:\n return outer(grad)", "2"),
    "recursion": ("grad:\n return again(grad, ctx.n)", ["?", "2"]),
    "returns nothing": ("grad:\n return nothing(grad)", "1"),
    "generator": ("grad:\n return generator(grad)", "1"),
    "tuple(generator)": ("grad:\n return tuple(generator(grad))", "1"),
    "async": ("grad:\n return later(grad)", "?"),
    "unknown decorator": ("grad:\n return wrapped(grad)", "?"),
    "harmless decorator": ("grad:\n return without_grad(grad)", "2"),
    "nested function inside": ("grad:\n return closes_over(grad)", "2"),
    "defined twice under a condition": ("grad:\n return platform(grad)", "?"),
    "import or definition": ("grad:\n return fallback(grad)", "?"),
    "defined again": ("grad:\n return overridden(grad)", "2"),
    "a list that it fills": ("grad:\n grads = [grad]\n fills(grads)\n return tuple(grads)", "0+"),
    "shadowed by a parameter": ("pair:\n return pair(1, 2)", "?"),
    "shadowed by a local": ("grad:\n pair = ctx.pair\n return pair(grad, 2)", "?"),
    "static method": ("grad:\n return Fn._backward(grad)", "2"),
    "static method with defaults": ("grad:\n return Fn._defaults(grad)", "3"),
    "class method": ("grad:\n return Fn._class_method(grad)", "2"),
    "plain function of the class": ("grad:\n return Fn._plain(grad)", "2"),
    "backward of itself": (
        "grad:\n if ctx.more:\n  return Fn.backward(ctx, grad)\n return grad, None",
        ["?", "2", "2"],
    ),
}

STATIC = """
@staticmethod
def _backward(g):
    return g, None

@staticmethod
def _defaults(g, n=2):
    return (g,) + (None,) * n

@classmethod
def _class_method(cls, g):
    return g, None

def _plain(g):
    return g, None
"""


@pytest.mark.parametrize("name", FOLLOWED)
def test_functions_of_the_same_file(name: str) -> None:
    written, expected = FOLLOWED[name]
    fn = function(backward=written, before=HELPERS, members=STATIC)
    found = counts(fn.gradients)
    wanted = [expected] if isinstance(expected, str) else expected
    assert sorted(found) == sorted(wanted) or (wanted == ["?"] and found == ["0+"])


def test_what_a_function_returns_keeps_its_slots() -> None:
    fn = function(backward="grad:\n return pair(grad, 2)", before=HELPERS)
    (returned,) = fn.gradients
    assert [is_none(slot.value) for slot in returned.slots] == [Tri.NO, Tri.YES]


def test_a_function_of_an_enclosing_function_sees_the_names_there() -> None:
    code = """
    N = 7

    def factory(scale):
        N = scale
        def tail():
            return (None,) * N

        class Inner(Function):
            @staticmethod
            def forward(ctx, x):
                return x * scale

            @staticmethod
            def backward(ctx, grad):
                return (grad,) + tail()

        return Inner.apply
    """
    from tests.model.models import only, read_code

    assert counts(only(read_code(code)).gradients) == ["1+"]


# ---------------------------------------------------------------------------------------------------------------------
# forward: (parameters and body, expected counts)

OUTPUTS = {
    "bare local, arithmetic": ("x:\n out = x * 2\n return out", "1"),
    "bare local, foreign call": ("x:\n out = extension.forward(x)\n return out", "?"),
    "bare local, bound by unpacking": ("x:\n out, lse = extension.forward(x)\n return out", "?"),
    "tuple display": ("x:\n out, lse = extension.forward(x)\n return out, lse", "2"),
    "tuple with None and a handle": ("x:\n return x * 2, None, extension.handle()", "3"),
    "tuple with a shape": ("x:\n return x * 2, x.shape", "2"),
    "nested tuple": ("x:\n return x * 2, (x, x)", "2"),
    "kernel call": ("x:\n return extension.forward(x)", "?"),
    "bare input": ("x:\n return x", "1"),
    "optional input": ("x, y=None:\n return y", "1"),
    "tensor method": ("x:\n return x.view(2, -1)", "1"),
    "tensor method of a computed tensor": ("x, w:\n return (x @ w).transpose(0, 1)", "1"),
    "conditional": ("x, prenorm:\n out = x * 2\n return out if not prenorm else (out, x)", ["1", "2"]),
    "conditional of displays": ("x, flag:\n return (x, x) if flag else (x, x, x)", ["2", "3"]),
    "torch function": ("x:\n return torch.tensor([1.0])", "1"),
    "arithmetic": ("x, w:\n return x @ w", "1"),
    "arithmetic of an unknown": ("x, n:\n return x * n", "1"),
    "attribute": ("x, request:\n return request.dummy_tensor", "?"),
    "subscript": ("x:\n outputs = extension.forward(x)\n return outputs[2]", "?"),
    "tuple(list)": ("x:\n outs = []\n for i in range(3):\n  outs.append(x * i)\n return tuple(outs)", "0+"),
    "tuple(generator)": ("x:\n return tuple(x * i for i in range(3))", "0+"),
    "tuple and star": ("x:\n ys, *extra = extension.forward(x)\n return (ys, *extra)", "1+"),
    "*args as it is": ("x, *args:\n return args", "0+"),
    "tuple and *args": ("x, *params:\n return (x,) + params", "1+"),
    "several returns": ("x, flag:\n if flag:\n  return x, x, x\n return x, x", ["3", "2"]),
    "inference only": (
        "x, flag:\n if flag:\n  assert torch.is_inference_mode_enabled()\n  return x, x\n return x * 2",
        ["2", "1"],
    ),
    "detach": ("x:\n return x.detach()", "1"),
    "view_as": ("x:\n return x.view_as(x)", "1"),
    "list": ("x:\n return [x, x]", "1"),
    "dict": ("x:\n return {'out': x}", "1"),
    "None": ("x:\n return None", "1"),
    "split": ("x:\n return x.split(2)", "0+"),
    "sort": ("x:\n return torch.sort(x)", "2"),
    "sort unpacked": ("x:\n values, indices = torch.sort(x)\n return values, indices", "2"),
    "topk method": ("x:\n return x.topk(3)", "2"),
    "max of all": ("x:\n return x.max()", "1"),
    "max along a dimension": ("x:\n return x.max(dim=0)", "2"),
    "no_grad block": ("x:\n with torch.no_grad():\n  return x * 2, x", "2"),
    "in place": ("x:\n x.add_(1)\n ctx.mark_dirty(x)\n return x", "1"),
    "out=": ("x:\n y = torch.empty_like(x)\n torch.mul(x, 2, out=y)\n return y", "1"),
    "built by hand": ("x:\n outs = [x * 2]\n outs += [x * 3]\n return tuple(outs)", "2"),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs(name: str) -> None:
    written, expected = OUTPUTS[name]
    fn = function(forward=written, backward="*grads:\n return (grads[0], *ctx.more)")
    assert counts(fn.outputs) == ([expected] if isinstance(expected, str) else expected)
