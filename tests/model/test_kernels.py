"""Which arguments Triton and numba kernels write, from their source."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ctxlint import lint_paths
from ctxlint.config.settings import Settings
from tests.linting import lint

if TYPE_CHECKING:
    from pathlib import Path

    from ctxlint.diagnostic import Diagnostic

_FILE = """
import torch
import triton
import triton.language as tl
from numba import cuda

FLAG = 1


{kernel}


class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, n: int):
        return x * n

    @staticmethod
    def backward(ctx, g):
        {launch}
        return g * 2, None
"""
LAUNCH = "kernel[(1,)](g, torch.empty_like(g), g.stride(0), BLOCK=4)"
_HEAD = (
    "@triton.jit\ndef kernel(p, q, s, BLOCK: tl.constexpr, SET: tl.constexpr = False):\n    i = tl.arange(0, BLOCK)\n"
)

WRITES = {
    "a store": _HEAD + "    tl.store(p + i, 0)\n",
    "an offset first": _HEAD + "    tl.store(i + p, 0)\n",
    "a stride": _HEAD + "    tl.store(p + tl.program_id(0) * s + i, 0)\n",
    "a moved pointer": _HEAD + "    p += s * 2\n    at = p + i\n    tl.store(at, 0, mask=i < 3)\n",
    "atomic": _HEAD + "    tl.atomic_add(p + i, 1)\n",
    "a block pointer": _HEAD
    + "    b = tl.make_block_ptr(p, (s,), (1,), (0,), (4,), (0,))\n    b = tl.advance(b, (4,))\n    tl.store(b, 0)\n",
    "a descriptor": _HEAD
    + "    d = tl.make_tensor_descriptor(p, shape=[s], strides=[1], block_shape=[4])\n    d.store([0], 0)\n",
    "in a loop": _HEAD + "    for k in range(0, s, BLOCK):\n        tl.store(p + k + i, 0)\n",
    "in both arms": _HEAD + "    if SET:\n        tl.store(p, 0)\n    else:\n        tl.store(p, 1)\n",
    "under a test of data": _HEAD + "    if tl.program_id(0) == 0:\n        tl.store(p, 0)\n",
    "after a test of bounds": _HEAD
    + "    pid = tl.program_id(0)\n    if pid * BLOCK >= s:\n        return\n    tl.store(p + i, 0)\n",
    "under a test of loaded data": _HEAD + "    if tl.load(q) < BLOCK:\n        tl.store(p + i, 0)\n",
    "under a flag that is set": _HEAD + "    if not SET:\n        tl.store(p, 0)\n",
    "autotuned": "@triton.autotune(configs=[], key=[])\n@triton.heuristics({})\n" + _HEAD + "    tl.store(p + i, 0)\n",
    "in another": "@triton.jit\ndef inner(a, b):\n    tl.store(a, b)\n\n\n" + _HEAD + "    inner(p + i, 1)\n",
    "by the name of another": _HEAD + "    q = p + i\n    tl.store(q, 0)\n",
    "a pointer that moves in a loop": _HEAD + "    for k in range(4):\n        p += BLOCK\n    tl.store(p + i, 0)\n",
    "under a flag that tuning leaves alone": "@triton.heuristics({'BLOCK': lambda given: 4})\n"
    + _HEAD
    + "    if not SET:\n        tl.store(p, 0)\n",
    "numba": "@cuda.jit\ndef kernel(p, q, s, BLOCK):\n    p[0, 1] = q[1]\n",
    "numba, atomic": "@cuda.jit\ndef kernel(p, q, s, BLOCK):\n    cuda.atomic.add(p, 0, 1)\n",
}
DOES_NOT = {
    "a load": _HEAD + "    tl.store(q + i, tl.load(p + i))\n",
    "an index that is loaded": _HEAD + "    k = tl.load(p + i)\n    tl.store(q + k, 0)\n",
    "under a flag that is not set": _HEAD + "    if SET:\n        tl.store(p, 0)\n",
    "under a flag of the module": _HEAD + "    if FLAG:\n        tl.store(p, 0)\n",
    "after a flag": _HEAD + "    if BLOCK > s:\n        return\n    tl.store(p, 0)\n",
    "after a test of bounds and a flag": _HEAD
    + "    k = tl.program_id(0) * BLOCK\n    if k >= s or SET:\n        return\n    tl.store(p, 0)\n",
    "after a name is a flag again": _HEAD
    + "    k = tl.program_id(0)\n    k = s\n    if k < BLOCK:\n        return\n    tl.store(p, 0)\n",
    "one of two": _HEAD + "    r = p\n    if s > 2:\n        r = q\n    tl.store(r + i, 0)\n",
    "another under its name": _HEAD + "    p = q + i\n    tl.store(p, 0)\n",
    "another under its name, by a flag": _HEAD + "    if s:\n        p = q\n    tl.store(p + i, 0)\n",
    "something unknown under its name, by a flag": _HEAD + "    if s:\n        p = pick(q)\n    tl.store(p + i, 0)\n",
    "swapped by a flag": _HEAD + "    if s:\n        p, q = q, p\n    tl.store(p + i, 0)\n",
    "another after a loop": _HEAD + "    for k in range(s):\n        p = q\n    tl.store(p + i, 0)\n",
    "until a loop": _HEAD + "    r = q\n    while s > 3:\n        r = p\n    tl.store(r + i, 0)\n",
    "another by a case": _HEAD + "    match s:\n        case 1:\n            p = q\n    tl.store(p + i, 0)\n",
    "another that is opened": _HEAD + "    with region(q) as p:\n        tl.store(p + i, 0)\n",
    "under a flag that is bound again": _HEAD + "    SET = s > 2\n    if not SET:\n        tl.store(p, 0)\n",
    "under a flag of a heuristic": "@triton.heuristics({'SET': lambda given: given['s'] > 2})\n"
    + _HEAD
    + "    if not SET:\n        tl.store(p, 0)\n",
    "under a flag of a configuration": "@triton.autotune(configs=[triton.Config({'SET': True})], key=[])\n"
    + _HEAD
    + "    if not SET:\n        tl.store(p, 0)\n",
    "under a flag that configurations may set": "@triton.autotune(configs=CONFIGS, key=[])\n"
    + _HEAD
    + "    if not SET:\n        tl.store(p, 0)\n",
    "under a flag that is tuned later": _HEAD
    + "    if not SET:\n        tl.store(p, 0)\n\n\nkernel = triton.autotune(configs=CONFIGS, key=[])(kernel)\n",
    "no kernel": "def kernel(p, q, s, BLOCK):\n    tl.store(p, 0)\n",
    "wrapped": "@wrapped\n" + _HEAD + "    tl.store(p, 0)\n",
}


def found_in(text: str) -> list[Diagnostic]:
    """The findings except CTX410: the gradients here have one dimension, which no code says."""
    return lint(text, settings=Settings(ignore=("CTX410",)))


@pytest.mark.parametrize("name", WRITES)
def test_what_is_written(name: str) -> None:
    assert [each.code for each in found_in(_FILE.format(kernel=WRITES[name], launch=LAUNCH))] == ["CTX404"]


@pytest.mark.parametrize("name", DOES_NOT)
def test_what_is_not(name: str) -> None:
    assert found_in(_FILE.format(kernel=DOES_NOT[name], launch=LAUNCH)) == []


def test_the_launch_decides() -> None:
    kernel = _HEAD + "    if SET:\n        tl.store(p, 0)\n"
    for given, codes in {"SET=True": ["CTX404"], "SET=False": [], "SET=g.dim() == 2": []}.items():
        launch = f"kernel[(1,)](g, torch.empty_like(g), 1, BLOCK=4, {given}, num_warps=4)"
        assert [each.code for each in found_in(_FILE.format(kernel=kernel, launch=launch))] == codes, given


_STORES = _HEAD + "    tl.store(p + i, 0)\n"
_REST = "(g, torch.empty_like(g), 1, BLOCK=4)"
_MEMBER = "class Ops:\n    @staticmethod\n" + "".join(f"    {line}\n" for line in _STORES.splitlines())
_IN_CLASS = "class Table:\n    run = kernel\n"
HOLDERS = {
    "autotuned later": (_STORES + "\n\ntuned = triton.autotune(configs=[], key=[])(kernel)\n", "tuned[(1,)]" + _REST),
    "compiled later": (
        _STORES.replace("@triton.jit\n", "")
        + "\n\nkernel = triton.jit(kernel)\nkernel = triton.heuristics({})(kernel)\n",
        "kernel[(1,)]" + _REST,
    ),
    "a dict": (_STORES + "\n\nKERNELS = {'a': kernel, 'b': print}\n", "KERNELS['a'][(1,)]" + _REST),
    "a class": (_STORES + "\n\n" + _IN_CLASS, "Table.run[(1,)]" + _REST),
    "a static method": (_MEMBER, "Ops.kernel[(1,)]" + _REST),
    "a static method with a flag that tuning leaves alone": (
        _MEMBER.replace("@triton", "@triton.heuristics({'BLOCK': lambda given: 4})\n    @triton", 1).replace(
            "        tl.store", "        if not SET:\n            tl.store"
        ),
        "Ops.kernel[(1,)]" + _REST,
    ),
    "a member that is no method": (_MEMBER.replace("    @staticmethod\n", ""), "Ops.kernel[(1,)]" + _REST),
    "a static method made later": (
        _STORES + "\n\nclass Ops:\n    run = staticmethod(kernel)\n",
        "Ops.run[(1,)]" + _REST,
    ),
    "a static method that another calls": (
        _MEMBER + "\n\n" + _HEAD + "    Ops.kernel(p, q, s, BLOCK)\n",
        "kernel[(1,)]" + _REST,
    ),
    "a static method of numba": (
        "class Ops:\n    @staticmethod\n    @cuda.jit\n    def kernel(p, n):\n        p[0] = n\n",
        "Ops.kernel[1, 32](cuda.as_cuda_array(g.detach()), 1)",
    ),
    "a name": (_STORES, "k = kernel\n        k[(1,)]" + _REST),
    "a wrapped one": (_STORES, "k = torch.library.wrap_triton(kernel)\n        k[(1,)]" + _REST),
    "with its grid": (_STORES, "run = kernel[(1,)]\n        run" + _REST),
    "one of two": (
        _STORES + "\n\n" + _STORES.replace("kernel", "other"),
        "k = kernel if n else other\n        k[(1,)]" + _REST,
    ),
    "one that is autotuned later, or not": (
        _STORES + "\n\ntuned = triton.autotune(configs=[], key=[])(kernel)\n",
        "k = tuned if n else kernel\n        k[(1,)]" + _REST,
    ),
    "strides after a star": (_STORES, "kernel[(1,)](g, torch.empty_like(g), *g.stride(), BLOCK=4, SET=True)"),
    "a default that the kernel does not test, after a star": (
        _STORES,
        "kernel[(1,)](g, torch.empty_like(g), *g.stride(), BLOCK=4)",
    ),
    "strides or none": (_STORES, "kernel[(1,)](g, *((g, 1) if n else (g, 0)), BLOCK=4)"),
    "numba": ("@cuda.jit\ndef kernel(p, n):\n    p[0] = n\n", "kernel[1, 32](cuda.as_cuda_array(g.detach()), 1)"),
}
NOT_HELD = {
    "a table that changes": (
        _STORES + "\n\nKERNELS = {'a': kernel}\nKERNELS['a'] = print\n",
        "KERNELS['a'][(1,)]" + _REST,
    ),
    "made by something else": (_STORES + "\n\ntuned = around(kernel)\n", "tuned[(1,)]" + _REST),
    "a static method that something wraps": (
        _MEMBER.replace("@triton.jit", "@around\n    @triton.jit"),
        "Ops.kernel[(1,)]" + _REST,
    ),
    "one that only reads": (
        _STORES + "\n\n" + _STORES.replace("kernel", "other").replace("store", "load"),
        "k = kernel if n else other\n        k[(1,)]" + _REST,
    ),
    "a default after a star": (
        _HEAD + "    if not SET:\n        tl.store(p, 0)\n",
        "kernel[(1,)](g, torch.empty_like(g), *g.stride(), BLOCK=4)",
    ),
    "a kernel that the method rebinds": (
        _STORES,
        "kernel = print\n        run = kernel[(1,)]\n        kernel = 1\n        run" + _REST,
    ),
}


def _lint_held(kernel: str, launch: str) -> list[str]:
    text = _FILE.replace("from numba", "import numba\nfrom numba").format(
        kernel=kernel, launch=f"n = ctx.n\n        {launch}"
    )
    text = text.replace("return x * n", "ctx.n = n\n        return x * n")
    return [each.code for each in found_in(text)]


@pytest.mark.parametrize("name", HOLDERS)
def test_a_kernel_is_known_wherever_it_is_held(name: str) -> None:
    assert _lint_held(*HOLDERS[name]) == ["CTX404"]


@pytest.mark.parametrize("name", NOT_HELD)
def test_a_holder_may_hold_something_else(name: str) -> None:
    assert _lint_held(*NOT_HELD[name]) == []


def test_a_launch_that_raises_writes_nothing() -> None:
    assert _lint_held(_STORES, "kernel[(1,)](g, torch.empty_like(g), 1, 4, False, 5)") == ["CTX705"]


def test_a_static_method_takes_no_other_arguments() -> None:
    assert _lint_held(_MEMBER, "Ops.kernel[(1,)](g, torch.empty_like(g), 1, 4, False, 5)") == ["CTX705"]


def test_a_wrapped_kernel_is_launched_in_the_same_way() -> None:
    kernel = _HEAD + "    tl.store(p, 0)\n"
    for wrap, codes in {"torch.library.wrap_triton": ["CTX404"], "print": []}.items():
        launch = LAUNCH.replace("kernel", f"{wrap}(kernel)", 1)
        assert [each.code for each in found_in(_FILE.format(kernel=kernel, launch=launch))] == codes, wrap


_IMPORTS = "import triton\nimport triton.language as tl\n"


@pytest.mark.parametrize(
    "imports",
    [
        _IMPORTS,
        "try:\n    import triton\n    import triton.language as tl\nexcept ImportError:\n    triton = tl = None\n",
        "from more import tl, triton\n",
    ],
)
def test_triton_may_come_from_another_file(tmp_path: Path, imports: str) -> None:
    """What the kernel writes, and that it gets no strides."""
    text = _FILE.format(kernel=WRITES["a store"], launch=LAUNCH.replace("g.stride(0)", "1"))
    text = text.replace(_IMPORTS, "from common import tl, triton\n")
    for name, content in {"module": text, "common": imports, "more": _IMPORTS}.items():
        (tmp_path / f"{name}.py").write_text(content, encoding="utf-8")
    assert sorted(each.code for each in lint_paths([tmp_path])) == ["CTX404", "CTX410"]
