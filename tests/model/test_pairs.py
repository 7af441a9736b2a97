"""Defects that ctxlint knows only from what other code does, each with a program like it that is right."""

from __future__ import annotations

from textwrap import indent
from typing import TYPE_CHECKING, NamedTuple

import pytest

from ctxlint.config.configuration import Configuration
from ctxlint.config.settings import Settings
from ctxlint.run.pipeline import lint_paths
from tests.linting import lint

if TYPE_CHECKING:
    from pathlib import Path

    from ctxlint.diagnostic import Diagnostic

PROGRAM = """\
import contextlib
import functools
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
import torch.nn as nn
import triton
import triton.language as tl

{helpers}

class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, {params}):
{forward}

    @staticmethod
    def backward(ctx, g):
{backward}
"""


class Pair(NamedTuple):
    """A program with one finding, and the ``changes`` that make it right: each first text by the second."""

    code: str
    changes: tuple[tuple[str, str], ...]
    backward: str = "return g * 2"
    helpers: str = ""
    params: str = "x"
    forward: str = "return x * 2"

    def programs(self) -> tuple[str, str]:
        """The program, and the one that is right."""
        program = PROGRAM.format(
            helpers=self.helpers,
            params=self.params,
            forward=indent(self.forward, " " * 8),
            backward=indent(self.backward, " " * 8),
        )
        right = program
        for wrong, better in self.changes:
            assert wrong in right
            right = right.replace(wrong, better)
        return program, right


PAIRS = {
    # getattr
    "getattr reads never set": Pair(
        "CTX306",
        (("getattr(ctx, 'scal')", "getattr(ctx, 'scale')"),),
        backward="return g * getattr(ctx, 'scal'), None",
        params="x, scale: float",
        forward="ctx.scale = scale\nreturn x * scale",
    ),
    "setattr stashes output": Pair(
        "CTX301",
        (("'out', out", "'out', out.shape"),),
        backward="return g * ctx.out",
        forward="out = x.exp()\nsetattr(ctx, 'out', out)\nreturn out",
    ),
    "setattr missing read": Pair(
        "CTX306",
        (("ctx.epsilon", "ctx.eps"),),
        backward="return g * ctx.epsilon, None",
        params="x, eps: float",
        forward="setattr(ctx, 'eps', eps)\nreturn x * 2",
    ),
    "setattr loop of names": Pair(
        "CTX306",
        (("ctx.c", "ctx.b"),),
        backward="return g * ctx.a * ctx.c, None, None",
        params="x, a: float, b: float",
        forward="for name, value in (('a', a), ('b', b)):\n    setattr(ctx, name, value)\nreturn x * 2",
    ),
    "setattr loop of names zip": Pair(
        "CTX306",
        (("ctx.c", "ctx.b"),),
        backward="return g * ctx.a * ctx.c, None, None",
        params="x, a: float, b: float",
        forward="for name, value in zip(('a', 'b'), (a, b)):\n    setattr(ctx, name, value)\nreturn x * 2",
    ),
    "getattr method inplace": Pair("CTX404", (("'mul_'", "'mul'"),), backward="return getattr(g, 'mul_')(2)"),
    "getattr torch function inplace": Pair(
        "CTX404", (("'relu_'", "'relu'"),), backward="return getattr(torch, 'relu_')(g)"
    ),
    "getattr grad data": Pair(
        "CTX404",
        (("getattr(g, 'data').mul_(2)", "getattr(g, 'data').mul(2)"),),
        backward="getattr(g, 'data').mul_(2)\nreturn g",
    ),
    "hasattr never set": Pair(
        "CTX306",
        (("ctx.m", "ctx.k"),),
        backward="return g * ctx.m, None",
        params="x, k: int",
        forward="ctx.k = k\nif hasattr(ctx, 'k'):\n    pass\nreturn x * k",
    ),
    "helper sets by setattr": Pair(
        "CTX306",
        (("ctx.high", "ctx.hi"),),
        backward="return g * ctx.high, None, None",
        helpers="def keep(ctx, **kw):\n    for k in ('lo', 'hi'):\n        setattr(ctx, k, kw[k])\n",
        params="x, lo: float, hi: float",
        forward="keep(ctx, lo=lo, hi=hi)\nreturn x.clamp(lo, hi)",
    ),
    "setattr after a return": Pair(
        "CTX307",
        (("return x * 1", "pass"),),
        backward="return g * ctx.a, None",
        params="x, n: int",
        forward="if n > 1:\n    return x * 1\nsetattr(ctx, 'a', n)\nreturn x * n",
    ),
    "setattr name constant": Pair(
        "CTX301",
        (("KEY, out", "KEY, 1"),),
        backward="return g * ctx.kept",
        helpers="KEY = 'kept'\n",
        forward="out = x.exp()\nsetattr(ctx, KEY, out)\nreturn out",
    ),
    # with
    "contextmanager writes": Pair(
        "CTX404",
        (("t.mul_(2)\n    yield t\n    t.add_(1)", "t = t.mul(2)\n    yield t"),),
        backward="with scaled(g) as h:\n    r = h.clone()\nreturn r",
        helpers="@contextmanager\ndef scaled(t):\n    t.mul_(2)\n    yield t\n    t.add_(1)\n",
    ),
    "contextmanager yields argument": Pair(
        "CTX404",
        (("yield t\n", "yield t.clone()\n"),),
        backward="with on(g) as h:\n    h.mul_(2)\n    r = h + 1\nreturn r",
        helpers="@contextmanager\ndef on(t):\n    yield t\n",
    ),
    "contextlib.contextmanager yields view": Pair(
        "CTX404",
        (("t.view(-1)", "t.clone().view(-1)"),),
        backward="with flat(g) as h:\n    h.mul_(2)\nreturn g",
        helpers="@contextlib.contextmanager\ndef flat(t):\n    try:\n        yield t.view(-1)\n    finally:\n        pass\n",
    ),
    "enter returns held": Pair(
        "CTX404",
        (("self.t = t\n", "self.t = t.clone()\n"),),
        backward="with Hold(g) as h:\n    h.mul_(2)\n    r = h * 1\nreturn r",
        helpers="class Hold:\n    def __init__(self, t):\n        self.t = t\n\n    def __enter__(self):\n        return self.t\n\n    def __exit__(self, *a):\n        pass\n",
    ),
    "enter writes": Pair(
        "CTX404",
        (("self.t.mul_(2)", "self.t.mul(2)"),),
        backward="with Hold(g) as h:\n    r = h * 1\nreturn r",
        helpers="class Hold:\n    def __init__(self, t):\n        self.t = t\n\n    def __enter__(self):\n        self.t.mul_(2)\n        return self.t\n\n    def __exit__(self, *a):\n        pass\n",
    ),
    "exit writes": Pair(
        "CTX404",
        (("self.t.zero_()", "self.t = None"),),
        backward="with Wiper(g):\n    r = g * 2\nreturn r",
        helpers="class Wiper:\n    def __init__(self, t):\n        self.t = t\n\n    def __enter__(self):\n        return self\n\n    def __exit__(self, *a):\n        self.t.zero_()\n",
    ),
    "device guard helper does not hide": Pair(
        "CTX404",
        (("g.mul_(2)", "g.mul(2)"),),
        backward="with device_of(g):\n    r = g.mul_(2)\nreturn r",
        helpers="@contextmanager\ndef device_of(t):\n    with torch.cuda.device(t.device):\n        yield\n",
    ),
    "with helper, forward writes input": Pair(
        "CTX401",
        (("buf.add_(1)", "buf = buf + 1"),),
        helpers="@contextmanager\ndef on(t):\n    torch.cuda.nvtx.range_push('a')\n    yield t\n    torch.cuda.nvtx.range_pop()\n",
        forward="with on(x) as buf:\n    buf.add_(1)\nreturn x",
    ),
    # generator
    "for over generator of views": Pair(
        "CTX404",
        (("yield t[i]", "yield t[i].clone()"),),
        backward="for r in rows(g):\n    r.mul_(2)\nreturn g",
        helpers="def rows(t):\n    for i in range(2):\n        yield t[i]\n",
    ),
    "generator writes in for": Pair(
        "CTX404",
        (("t.mul_(2)", "t = t.mul(2)"),),
        backward="s = 0\nfor r in rows(g):\n    s = s + r\nreturn s",
        helpers="def rows(t):\n    t.mul_(2)\n    yield t\n    yield t + 1\n",
    ),
    "generator writes in list": Pair(
        "CTX404",
        (("t.mul_(2)", "t = t.mul(2)"),),
        backward="(a,) = list(rows([g]))\nreturn a",
        helpers="def rows(ts):\n    for t in ts:\n        t.mul_(2)\n        yield t\n",
    ),
    "generator writes in tuple": Pair(
        "CTX404",
        (("t.mul_(2)", "t = t.mul(2)"),),
        backward="return tuple(rows(g))",
        helpers="def rows(*ts):\n    for t in ts:\n        t.mul_(2)\n        yield t\n",
    ),
    "next of generator": Pair(
        "CTX404",
        (("yield t\n", "yield t * 1\n"),),
        backward="h = next(first(g))\nh.mul_(2)\nreturn h",
        helpers="def first(t):\n    yield t\n    yield t * 2\n",
    ),
    "next iter of tuple": Pair(
        "CTX404", (("(g, 1)", "(g * 1, 1)"),), backward="h = next(iter((g, 1)))\nh.mul_(2)\nreturn h"
    ),
    "unpacked generator writes": Pair(
        "CTX404",
        (("t.mul_(2)", "t = t.mul(2)"),),
        backward="a, b = two(g)\nreturn a + b",
        helpers="def two(t):\n    t.mul_(2)\n    yield t\n    yield t + 1\n",
    ),
    "generator too few": Pair(
        "CTX203",
        (("yield None\n", "yield None\n    yield None\n"),),
        backward="return tuple(grads(g))",
        helpers="def grads(g):\n    yield g * 2\n    yield None\n",
        params="x, n: int, m: int",
    ),
    "genexp of writes": Pair(
        "CTX404", (("t.mul_(2)", "t.mul(2)"),), backward="return sum(t.mul_(2) for t in (g, g * 2))"
    ),
    # kernel
    "kernel.run": Pair(
        "CTX404",
        (("tl.store(p +", "tl.store(o +"),),
        backward="o = torch.empty_like(g)\nscale.run(g, o, g.numel(), BLOCK=128, grid=(4,), warmup=False)\nreturn g",
        helpers="@triton.jit\ndef scale(p, o, n, BLOCK: tl.constexpr):\n    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    tl.store(p + i, tl.load(p + i, mask=i < n) * 2, mask=i < n)\n",
    ),
    "star args": Pair(
        "CTX404",
        (("tl.store(p +", "tl.store(o +"),),
        backward="o = torch.empty_like(g)\nargs = (g, o, g.numel())\nscale[(4,)](*args, BLOCK=128)\nreturn g",
        helpers="@triton.jit\ndef scale(p, o, n, BLOCK: tl.constexpr):\n    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    tl.store(p + i, tl.load(p + i, mask=i < n) * 2, mask=i < n)\n",
    ),
    "star args list": Pair(
        "CTX404",
        (("tl.store(p +", "tl.store(o +"),),
        backward="o = torch.empty_like(g)\nargs = [g, o, g.numel()]\nkw = dict(BLOCK=128)\nscale[(4,)](*args, **kw)\nreturn g",
        helpers="@triton.jit\ndef scale(p, o, n, BLOCK: tl.constexpr):\n    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    tl.store(p + i, tl.load(p + i, mask=i < n) * 2, mask=i < n)\n",
    ),
    "kwargs dict display": Pair(
        "CTX404",
        (("tl.store(p +", "tl.store(o +"),),
        backward="o = torch.empty_like(g)\nkw = {'p': g, 'o': o, 'n': g.numel(), 'BLOCK': 128}\nscale[(4,)](**kw)\nreturn g",
        helpers="@triton.jit\ndef scale(p, o, n, BLOCK: tl.constexpr):\n    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    tl.store(p + i, tl.load(p + i, mask=i < n) * 2, mask=i < n)\n",
    ),
    "kwargs dict with item set": Pair(
        "CTX404",
        (("tl.store(p +", "tl.store(o +"),),
        backward="o = torch.empty_like(g)\nkw = {'p': g, 'o': o}\nkw['n'] = g.numel()\nkw['BLOCK'] = 128\nscale[(4,)](**kw)\nreturn g",
        helpers="@triton.jit\ndef scale(p, o, n, BLOCK: tl.constexpr):\n    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    tl.store(p + i, tl.load(p + i, mask=i < n) * 2, mask=i < n)\n",
    ),
    "kwargs dict updated": Pair(
        "CTX404",
        (("tl.store(p +", "tl.store(o +"),),
        backward="o = torch.empty_like(g)\nkw = dict(p=g, o=o)\nkw.update(n=g.numel(), BLOCK=128)\nscale[(4,)](**kw)\nreturn g",
        helpers="@triton.jit\ndef scale(p, o, n, BLOCK: tl.constexpr):\n    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    tl.store(p + i, tl.load(p + i, mask=i < n) * 2, mask=i < n)\n",
    ),
    "kernel opaque kwargs": Pair(
        "CTX404",
        (("tl.store(p +", "tl.store(o +"),),
        backward="o = torch.empty_like(g)\nscale[(4,)](g, o, g.numel(), BLOCK=128, **options())\nreturn g",
        helpers="@triton.jit\ndef scale(p, o, n, BLOCK: tl.constexpr):\n    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    tl.store(p + i, tl.load(p + i, mask=i < n) * 2, mask=i < n)\n\ndef options():\n    return torch.load('x')\n",
    ),
    "project decorator autotune": Pair(
        "CTX404",
        (("tl.store(p +", "tl.store(o +"),),
        backward="o = torch.empty_like(g)\nscale[(4,)](g, o, g.numel())\nreturn g",
        helpers="def tuned(keys):\n    def deco(fn):\n        return triton.autotune(configs=[triton.Config({'BLOCK': 128})], key=keys)(fn)\n    return deco\n\n@tuned(['n'])\n@triton.jit\ndef scale(p, o, n, BLOCK: tl.constexpr):\n    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    tl.store(p + i, tl.load(p + i, mask=i < n) * 2, mask=i < n)\n",
    ),
    "project decorator heuristics plain": Pair(
        "CTX404",
        (("tl.store(p +", "tl.store(o +"),),
        backward="o = torch.empty_like(g)\nscale[(4,)](g, o, g.numel())\nreturn g",
        helpers="def tuned(fn):\n    return triton.heuristics({'BLOCK': lambda a: 128})(fn)\n\n@tuned\n@triton.jit\ndef scale(p, o, n, BLOCK: tl.constexpr):\n    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    tl.store(p + i, tl.load(p + i, mask=i < n) * 2, mask=i < n)\n",
    ),
    "autotune name bound at module": Pair(
        "CTX404",
        (("tl.store(p +", "tl.store(o +"),),
        backward="o = torch.empty_like(g)\nscale[(4,)](g, o, g.numel())\nreturn g",
        helpers="tuned = triton.autotune(configs=[triton.Config({'BLOCK': 128})], key=['n'])\n\n@tuned\n@triton.jit\ndef scale(p, o, n, BLOCK: tl.constexpr):\n    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    tl.store(p + i, tl.load(p + i, mask=i < n) * 2, mask=i < n)\n",
    ),
    "kernel in local dict": Pair(
        "CTX404",
        (("tl.store(p +", "tl.store(o +"),),
        backward="o = torch.empty_like(g)\nkernels = {'a': scale}\nkernels['a'][(4,)](g, o, g.numel(), BLOCK=128)\nreturn g, None",
        helpers="@triton.jit\ndef scale(p, o, n, BLOCK: tl.constexpr):\n    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    tl.store(p + i, tl.load(p + i, mask=i < n) * 2, mask=i < n)\n",
        params="x, kind",
        forward="ctx.kind = kind\nreturn x * 2",
    ),
    "kernel argument of helper": Pair(
        "CTX404",
        (("tl.store(p +", "tl.store(o +"),),
        backward="o = torch.empty_like(g)\nlaunch(scale, g, o, g.numel(), BLOCK=128)\nreturn g",
        helpers="@triton.jit\ndef scale(p, o, n, BLOCK: tl.constexpr):\n    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    tl.store(p + i, tl.load(p + i, mask=i < n) * 2, mask=i < n)\n\ndef launch(kernel, *args, **kw):\n    grid = (triton.cdiv(args[0].numel(), 128),)\n    kernel[grid](*args, **kw)\n",
    ),
    "conditional kernel": Pair(
        "CTX404",
        (("tl.store(p +", "tl.store(o +"),),
        backward="o = torch.empty_like(g)\nk = scale if ctx.n else scale\nk[(4,)](g, o, g.numel(), BLOCK=128)\nreturn g, None",
        helpers="@triton.jit\ndef scale(p, o, n, BLOCK: tl.constexpr):\n    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    tl.store(p + i, tl.load(p + i, mask=i < n) * 2, mask=i < n)\n",
        params="x, n: int",
        forward="ctx.n = n\nreturn x * 2",
    ),
    "warp launch": Pair(
        "CTX404",
        (("p[i] = p[i] * 2.0", "o[i] = p[i] * 2.0"),),
        backward="o = torch.empty_like(g)\nwp.launch(wscale, dim=g.numel(), inputs=[wp.from_torch(g), wp.from_torch(o)])\nreturn g",
        helpers="import warp as wp\n\n@wp.kernel\ndef wscale(p: wp.array(dtype=float), o: wp.array(dtype=float)):\n    i = wp.tid()\n    p[i] = p[i] * 2.0\n",
    ),
    "warp launch outputs": Pair(
        "CTX404",
        (("o[i] = p[i] * 2.0", "p[i]"),),
        backward="x = torch.empty_like(g)\nwp.launch(kernel=wscale, dim=g.numel(), inputs=[wp.from_torch(x)], outputs=[wp.from_torch(g)])\nreturn g",
        helpers="import warp as wp\n\n@wp.kernel\ndef wscale(p: wp.array(dtype=float), o: wp.array(dtype=float)):\n    i = wp.tid()\n    o[i] = p[i] * 2.0\n",
    ),
    "numba stream": Pair(
        "CTX404",
        (("p[i] *= 2", "o[i] = p[i] * 2"),),
        backward="o = torch.empty_like(g)\nnscale[4, 128](cuda.as_cuda_array(g), cuda.as_cuda_array(o))\nreturn g",
        helpers="from numba import cuda\n\n@cuda.jit('void(float32[:], float32[:])')\ndef nscale(p, o):\n    i = cuda.grid(1)\n    p[i] *= 2\n",
    ),
    "numba forall": Pair(
        "CTX404",
        (("p[i] *= 2", "o[i] = p[i] * 2"),),
        backward="o = torch.empty_like(g)\nnscale.forall(g.numel())(cuda.as_cuda_array(g), cuda.as_cuda_array(o))\nreturn g",
        helpers="from numba import cuda\n\n@cuda.jit\ndef nscale(p, o):\n    i = cuda.grid(1)\n    p[i] *= 2\n",
    ),
    "run that only compiles": Pair(
        "CTX404",
        (("warmup=False", "warmup=True"),),
        backward="o = torch.empty_like(g)\nscale.run(g, o, g.numel(), BLOCK=128, grid=(4,), warmup=False)\nreturn g",
        helpers="@triton.jit\ndef scale(p, o, n, BLOCK: tl.constexpr):\n    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    tl.store(p + i, tl.load(p + i, mask=i < n) * 2, mask=i < n)\n",
    ),
    "kernel.warmup does not launch": Pair(
        "CTX404",
        (("scale[(4,)](", "scale.warmup("),),
        backward="o = torch.empty_like(g)\nscale[(4,)](g, o, g.numel(), BLOCK=128, grid=(4,))\nreturn g",
        helpers="@triton.jit\ndef scale(p, o, n, BLOCK: tl.constexpr):\n    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    tl.store(p + i, tl.load(p + i, mask=i < n) * 2, mask=i < n)\n",
    ),
    "decorator that may change arguments": Pair(
        "CTX404",
        (("return triton.autotune(configs=[triton.Config({'BLOCK': 128})], key=['n'])(fn)", "return Swapped(fn)"),),
        backward="o = torch.empty_like(g)\nscale[(4,)](g, o, g.numel())\nreturn g",
        helpers="def tuned(fn):\n    return triton.autotune(configs=[triton.Config({'BLOCK': 128})], key=['n'])(fn)\n\n@tuned\n@triton.jit\ndef scale(p, o, n, BLOCK: tl.constexpr):\n    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    tl.store(p + i, tl.load(p + i, mask=i < n) * 2, mask=i < n)\n",
    ),
    "open kwargs that may set a flag": Pair(
        "CTX404",
        (("n, BLOCK: tl.constexpr", "n, WRITE=False, BLOCK: tl.constexpr=8"), ("tl.store(", "if WRITE: tl.store(")),
        backward="o = torch.empty_like(g)\nscale[(4,)](g, o, g.numel(), **options())\nreturn g",
        helpers="@triton.jit\ndef scale(p, o, n, BLOCK: tl.constexpr):\n    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    tl.store(p + i, tl.load(p + i, mask=i < n) * 2, mask=i < n)\n\ndef options():\n    return torch.load('x')\n",
    ),
    # objects
    "object in dict": Pair(
        "CTX404",
        (("t.mul_(2)", "t.mul(2)"),),
        backward="d = {'a': Box(g)}\nd['a'].t.mul_(2)\nreturn g",
        helpers="class Box:\n    def __init__(self, t):\n        self.t = t\n",
    ),
    "object in list": Pair(
        "CTX404",
        (("t.mul_(2)", "t.mul(2)"),),
        backward="d = [Box(g)]\nd[0].t.mul_(2)\nreturn g",
        helpers="class Box:\n    def __init__(self, t):\n        self.t = t\n",
    ),
    "ctx dict of outputs": Pair(
        "CTX301",
        (("'a': out", "'a': 1"),),
        backward="return g * ctx.saved['a']",
        forward="out = x.exp()\nctx.saved = {'a': out}\nreturn out",
    ),
    "ctx object holds output": Pair(
        "CTX301",
        (("Box(out)", "Box(1)"),),
        backward="return g * ctx.box.t",
        helpers="class Box:\n    def __init__(self, t):\n        self.t = t\n",
        forward="out = x.exp()\nctx.box = Box(out)\nreturn out",
    ),
    "ctx dict holds object of output": Pair(
        "CTX301",
        (("Box(out)", "Box(1)"),),
        backward="return g * ctx.saved['a'].t",
        helpers="class Box:\n    def __init__(self, t):\n        self.t = t\n",
        forward="out = x.exp()\nctx.saved = {'a': Box(out)}\nreturn out",
    ),
    "ctx list holds object of output": Pair(
        "CTX301",
        (("Box(out)", "Box(1)"),),
        backward="return g * ctx.saved[0].t",
        helpers="class Box:\n    def __init__(self, t):\n        self.t = t\n",
        forward="out = x.exp()\nctx.saved = [Box(out)]\nreturn out",
    ),
    "dataclass property": Pair(
        "CTX404",
        (("return self.t.view(-1)", "return self.t.clone().view(-1)"),),
        backward="Box(g).flat.mul_(2)\nreturn g",
        helpers="@dataclass\nclass Box:\n    t: Any\n\n    @property\n    def flat(self):\n        return self.t.view(-1)\n",
    ),
    "dataclass post_init attribute": Pair(
        "CTX404",
        (("self.flat = self.t.view(-1)", "self.flat = self.t.clone().view(-1)"),),
        backward="b = Box(g)\nb.flat.mul_(2)\nreturn g",
        helpers="@dataclass\nclass Box:\n    t: Any\n    flat: Any = field(init=False)\n\n    def __post_init__(self):\n        self.flat = self.t.view(-1)\n",
    ),
    "dataclass frozen slots": Pair(
        "CTX404",
        (("b.t.mul_(2)", "b.t.mul(2)"),),
        backward="b = Box(g)\nb.t.mul_(2)\nreturn g",
        helpers="@dataclass(frozen=True)\nclass Box:\n    t: Any\n    n: int = 0\n",
    ),
    "dataclass method writes": Pair(
        "CTX404",
        (("self.t.mul_(2)", "return self.t.mul(2)"),),
        backward="b = Box(t=g)\nb.scale()\nreturn g",
        helpers="@dataclass(slots=True)\nclass Box:\n    t: Any\n\n    def scale(self):\n        self.t.mul_(2)\n",
    ),
    "mutual recursion": Pair(
        "CTX404",
        (("t.mul_(2)", "t = t.mul(2)"),),
        backward="return a(g, 3)",
        helpers="def a(t, n):\n    t.mul_(2)\n    return b(t, n - 1) if n else t\n\ndef b(t, n):\n    return a(t, n - 1) if n else t\n",
    ),
    "dict of args to helper": Pair(
        "CTX404",
        (("d['t'].mul_(2)", "d['t'].mul(2)"),),
        backward="f({'t': g})\nreturn g",
        helpers="def f(d):\n    d['t'].mul_(2)\n",
    ),
    "namedtuple to helper": Pair(
        "CTX404",
        (("d.t.mul_(2)", "d.t.mul(2)"),),
        backward="f(D(g, 1))\nreturn g",
        helpers="class D(NamedTuple):\n    t: Any\n    n: int\n\ndef f(d):\n    d.t.mul_(2)\n",
    ),
    "dict values loop": Pair(
        "CTX404",
        (("t.mul_(2)", "r = t.mul(2)"),),
        backward="d = {'a': g}\nfor t in d.values():\n    t.mul_(2)\nreturn g",
    ),
    "dict items loop": Pair(
        "CTX404",
        (("t.mul_(2)", "r = t.mul(2)"),),
        backward="d = dict(a=g)\nfor k, t in d.items():\n    t.mul_(2)\nreturn g",
    ),
    # evidence
    "group through helper": Pair(
        "CTX203",
        (("return g * 2", "return g * 2, None"),),
        helpers="def reduce_(t, group):\n    t = t.clone()\n    dist.all_reduce(t, group=group)\n    return t\n",
        params="x, p",
        forward="return reduce_(x, p)",
    ),
    "group through ctx in helper of backward": Pair(
        "CTX203",
        (("return g\n", "return g, None\n"),),
        backward="g = reduce_(g, ctx.p)\nreturn g",
        helpers="def reduce_(t, group):\n    t = t.clone()\n    dist.all_reduce(t, group=group)\n    return t\n",
        params="x, p",
        forward="ctx.p = p\nreturn x * 2",
    ),
    "dtype of empty": Pair(
        "CTX203",
        (("return g * 2", "return g * 2, None"),),
        helpers="def make(t, dt):\n    return torch.zeros(t.shape, dtype=dt)\n",
        params="x, p",
        forward="return make(x, p) + x",
    ),
    "range of helper": Pair(
        "CTX203",
        (("return g * 2", "return g * 2, None"),),
        helpers="def rep(t, n):\n    for _ in range(n):\n        t = t + 1\n    return t\n",
        params="x, p",
        forward="return rep(x, p)",
    ),
    "string method": Pair(
        "CTX203",
        (("return g * 2", "return g * 2, None"),),
        helpers="def act(t, name):\n    if name.startswith('re'):\n        return t.relu()\n    return t.tanh()\n",
        params="x, p",
        forward="return act(x, p)",
    ),
    "string compare": Pair(
        "CTX203",
        (("return g * 2", "return g * 2, None"),),
        helpers="def act(t, name):\n    if name == 'relu':\n        return t.relu()\n    elif name == 'tanh':\n        return t.tanh()\n    raise ValueError(name)\n",
        params="x, p",
        forward="return act(x, p)",
    ),
    "callable": Pair(
        "CTX203",
        (("return g * 2", "return g * 2, None"),),
        helpers="def run(t, fn):\n    return fn(t)\n",
        params="x, p",
        forward="return run(x.exp(), p)",
    ),
    "world size of group": Pair(
        "CTX203",
        (("return g * 2", "return g * 2, None"),),
        helpers="def part(t, group):\n    n = dist.get_world_size(group)\n    return t.chunk(n)[dist.get_rank(group)].contiguous()\n",
        params="x, p",
        forward="return part(x, p)",
    ),
    "two levels": Pair(
        "CTX203",
        (("return g * 2", "return g * 2, None"),),
        helpers="def inner(t, grp):\n    dist.all_reduce(t, group=grp)\n    return t\n\ndef outer(t, pg):\n    return inner(t.clone(), pg)\n",
        params="x, p",
        forward="return outer(x, p)",
    ),
    "dim of chunk by helper": Pair(
        "CTX203",
        (("return g * 2", "return g * 2, None"),),
        helpers="def part(t, dim):\n    return t.sum(dim=dim)\n",
        params="x, p",
        forward="return part(x, p)",
    ),
    "str key": Pair(
        "CTX203",
        (("return g * 2", "return g * 2, None"),),
        helpers="def act(t, kind):\n    return {'a': torch.relu, 'b': torch.tanh}[kind](t)\n",
        params="x, p",
        forward="return act(x, p)",
    ),
    "getattr torch dtype name": Pair(
        "CTX203",
        (("return g * 2", "return g * 2, None"),),
        helpers="def cast(t, name):\n    return t.to(getattr(torch, name))\n",
        params="x, p",
        forward="return cast(x, p)",
    ),
    # methods
    "Other.forward unknown attr": Pair(
        "CTX306",
        (("ctx.scale", "ctx.s"),),
        backward="return g * ctx.scale, None",
        helpers="class Other(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x, s):\n        ctx.save_for_backward(x)\n        ctx.s = s\n        return x * s\n\n    @staticmethod\n    def backward(ctx, g):\n        (x,) = ctx.saved_tensors\n        return g * ctx.s, None\n",
        params="x, s: float",
        forward="return Other.forward(ctx, x, s)",
    ),
    "Other.backward writes": Pair(
        "CTX404",
        (("g.mul_(ctx.s)", "g.mul(ctx.s)"),),
        backward="return Other.backward(ctx, g)",
        helpers="class Other(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x, s):\n        ctx.save_for_backward(x)\n        ctx.s = s\n        return x * s\n\n    @staticmethod\n    def backward(ctx, g):\n        (x,) = ctx.saved_tensors\n        return g.mul_(ctx.s), None\n",
        params="x, s: float",
        forward="return Other.forward(ctx, x, s)",
    ),
    "Other.backward too few": Pair(
        "CTX203",
        (("return Other.backward(ctx, g)", "return *Other.backward(ctx, g), None"),),
        backward="return Other.backward(ctx, g)",
        helpers="class Other(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x, s):\n        ctx.save_for_backward(x)\n        ctx.s = s\n        return x * s\n\n    @staticmethod\n    def backward(ctx, g):\n        (x,) = ctx.saved_tensors\n        return g * ctx.s, None\n",
        params="x, s: float, n: int",
        forward="return Other.forward(ctx, x, s)",
    ),
    "Other.backward first": Pair(
        "CTX404",
        (("g.mul_(2)", "g.mul(2)"),),
        backward="return Other.backward(ctx, g)[0], None",
        helpers="class Other(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x, s):\n        ctx.save_for_backward(x)\n        ctx.s = s\n        return x * s\n\n    @staticmethod\n    def backward(ctx, g):\n        (x,) = ctx.saved_tensors\n        return g.mul_(2), None\n",
        params="x, s: float",
        forward="ctx.s = s\nctx.save_for_backward(x)\nreturn x * s",
    ),
    "saved count across": Pair(
        "CTX305",
        (("(x, y) = ctx.saved_tensors", "(x,) = ctx.saved_tensors"),),
        backward="(x, y) = ctx.saved_tensors\nreturn g * x, None",
        helpers="class Other(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x, s):\n        ctx.save_for_backward(x)\n        ctx.s = s\n        return x * s\n\n    @staticmethod\n    def backward(ctx, g):\n        (x,) = ctx.saved_tensors\n        return g * ctx.s, None\n",
        params="x, s: float",
        forward="return Other.forward(ctx, x, s)",
    ),
    "module static method": Pair(
        "CTX404",
        (("t.mul_(2)", "t.mul(2)"),),
        backward="return Layer.scale(g)",
        helpers="class Layer(nn.Module):\n    @staticmethod\n    def scale(t):\n        return t.mul_(2)\n",
    ),
    "class helper in same Function": Pair(
        "CTX404",
        (("t.mul_(2)", "t.mul(2)"),),
        backward="return Base.help(g)",
        helpers="class Base(torch.autograd.Function):\n    @staticmethod\n    def help(t):\n        return t.mul_(2)\n",
    ),
    "classmethod of plain helper": Pair(
        "CTX404",
        (("t.mul_(2)", "t.mul(2)"),),
        backward="return H.go(g)",
        helpers="class H:\n    @classmethod\n    def go(cls, t):\n        return cls._in(t)\n\n    @staticmethod\n    def _in(t):\n        return t.mul_(2)\n",
    ),
    "Function.apply of other inplace": Pair(
        "CTX404",
        (("ctx.mark_dirty(x)\n        return x.mul_(s)", "return x.mul(s)"),),
        backward="return Other.apply(g, 2)",
        helpers="class Other(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x, s):\n        ctx.mark_dirty(x)\n        return x.mul_(s)\n\n    @staticmethod\n    def backward(ctx, g):\n        return g, None\n",
    ),
}


def found_in(text: str) -> list[Diagnostic]:
    """The findings except CTX410: kernels get gradients without their strides in both programs of a pair."""
    return lint(text, settings=Settings(ignore=("CTX410",)))


@pytest.mark.parametrize("name", PAIRS)
def test_the_defect_is_found(name: str) -> None:
    program, _right = PAIRS[name].programs()
    assert {each.code for each in found_in(program)} == {PAIRS[name].code}


@pytest.mark.parametrize("name", PAIRS)
def test_nothing_is_found_where_it_is_right(name: str) -> None:
    _program, right = PAIRS[name].programs()
    assert found_in(right) == []


READS_BY_NAME = """\
import torch


class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * getattr(ctx, "factor")
"""
SETS = """\
from layers import Fn


def run(x):
    y = Fn.apply(x)
    y.grad_fn.factor = 3
    return y
"""


@pytest.mark.parametrize("set_elsewhere", [False, True])
def test_another_file_sets_what_is_read_by_name(tmp_path: Path, set_elsewhere: bool) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "layers.py").write_text(READS_BY_NAME)
    (tmp_path / "use.py").write_text(SETS if set_elsewhere else "")
    results = lint_paths([str(tmp_path / "layers.py")], Configuration())
    codes = [each.code for result in results for each in result.diagnostics]
    assert codes == ([] if set_elsewhere else ["CTX306"])
