"""Decorators of a project: what is behind them is known if their wrapper passes the arguments and the result on."""

from __future__ import annotations

from textwrap import indent
from typing import TYPE_CHECKING

import pytest

from ctxlint.config.configuration import Configuration
from ctxlint.run.pipeline import lint_paths

if TYPE_CHECKING:
    from pathlib import Path

DECORATED = """\
@{written}
def both(g, x, factor=1.0):
    return g * x, g * factor


@{written}
def wiped(g, x):
    g.zero_()
    return g * x


class Both(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return both(g, x, factor=2.0)


class Wiped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return wiped(g, x=x)


class Missing(torch.autograd.Function):
    @staticmethod
    @{written}
    def forward(ctx, x, y):
        ctx.save_for_backward(x)
        return x * y

    @staticmethod
    @{written}
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x
"""

IMPORTS = """\
import contextlib
import functools
import inspect
import os
import time
from typing import Callable, TypeVar, cast

import torch
from torch.utils._pytree import tree_map

F = TypeVar("F", bound=Callable)
OFF = os.environ.get("OFF") == "1"
REGISTRY = {}


"""

PLAIN = """\
def guard(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return fn(*args, **kwargs)

    return wrapper
"""


def around(body: str) -> str:
    """A decorator whose wrapper has this body."""
    return f"def deco(fn):\n    @functools.wraps(fn)\n    def wrapper(*args, **kwargs):\n{indent(body, ' ' * 8)}\n    return wrapper\n"


LAID_OUT = "contiguous_args = (a if not isinstance(a, torch.Tensor) else a.contiguous() for a in args)\n"
LAID_OUT += "more = {k: (v if not isinstance(v, torch.Tensor) else v.contiguous()) for k, v in kwargs.items()}\n"
DEVICE = """\
tensor = None
for arg in args:
    if isinstance(arg, torch.Tensor):
        tensor = arg
        break
guard = torch.cuda.device(tensor.device.index) if tensor is not None else contextlib.nullcontext()
with guard:
    return fn(*contiguous_args, **more)
"""

GUARD = '''\
def _skips(no_guard, name, skipped):
    return no_guard is True or name in skipped


def _laid_out(arg, skip):
    if isinstance(arg, torch.Tensor) and not skip:
        return arg.contiguous()
    return arg


def deco(fn=None, *, no_guard=False):
    """Contiguous tensors."""

    def decorator(fn):
        names = list(inspect.signature(fn).parameters)
        skipped = set(no_guard) if isinstance(no_guard, (list, tuple)) else set()

        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            laid_out = []
            for i, arg in enumerate(args):
                name = names[i] if i < len(names) else f"arg_{i}"
                laid_out.append(_laid_out(arg, _skips(no_guard, name, skipped)))
            more = {}
            for k, v in kwargs.items():
                more[k] = _laid_out(v, _skips(no_guard, k, skipped))
            with contextlib.nullcontext():
                return fn(*laid_out, **more)

        return wrapper

    if fn is not None:
        return decorator(fn)
    return decorator
'''

MAYBE = "def maybe(x):\n    return x.contiguous() if isinstance(x, torch.Tensor) else x\n\n\n"

ALL = ("CTX202", "CTX404", "CTX201")
"""Of the first two, the helpers are known, and what they write; of the third, the methods."""

DECORATORS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "contiguous": ("deco", around(LAID_OUT + "return fn(*contiguous_args, **more)"), ALL),
    "on a device": ("deco", around(LAID_OUT + DEVICE), ALL),
    "arguments bound again": (
        "deco",
        MAYBE
        + around(
            "args = [maybe(a) for a in args]\nkwargs = {k: maybe(v) for k, v in kwargs.items()}\nreturn fn(*args, **kwargs)"
        ),
        ALL,
    ),
    "guard": ("deco", GUARD, ALL),
    "guard with options": ("deco(no_guard=['x'])", GUARD, ALL),
    "another decorator": ("deco", PLAIN + '\n\ndef deco(fn):\n    """Alias."""\n    return guard(fn)\n', ALL),
    "a name for another": ("deco", PLAIN + "\n\ndeco = guard\n", ALL),
    "timing": (
        "deco",
        around("start = time.time()\nresult = fn(*args, **kwargs)\nprint(time.time() - start)\nreturn result"),
        ALL,
    ),
    "nvtx": (
        "deco",
        around(
            "torch.cuda.nvtx.range_push('f')\ntry:\n    return fn(*args, **kwargs)\nfinally:\n    torch.cuda.nvtx.range_pop()"
        ),
        ALL,
    ),
    "cast": ("deco", PLAIN.replace("def guard", "def deco").replace("return wrapper", "return cast(F, wrapper)"), ALL),
    "compiled": (
        "deco",
        PLAIN.replace("def guard", "def deco").replace("return wrapper", "return torch.compile(wrapper)"),
        ALL,
    ),
    "disabled": (
        "deco",
        PLAIN.replace("def guard", "def deco").replace(
            "    return wrapper\n", "    wrapper = torch.compiler.disable(wrapper)\n    return wrapper\n"
        ),
        ALL,
    ),
    "updated": (
        "deco",
        "def deco(fn):\n    def wrapper(*args, **kwargs):\n        return fn(*args, **kwargs)\n\n    return functools.update_wrapper(wrapper, fn)\n",
        ALL,
    ),
    "partial": (
        "deco(level=1)",
        PLAIN.replace(
            "def guard(fn):",
            "def deco(fn=None, *, level=0):\n    if fn is None:\n        return functools.partial(deco, level=level)\n",
        ),
        ALL,
    ),
    "switched off": ("deco", PLAIN.replace("def guard(fn):", "def deco(fn):\n    if OFF:\n        return fn\n"), ALL),
    "one of two": (
        "deco",
        "if OFF:\n    def deco(fn):\n        return fn\nelse:\n"
        + indent(PLAIN.replace("def guard", "def deco"), "    "),
        ALL,
    ),
    "registered": ("deco", "def deco(fn):\n    REGISTRY[fn.__name__] = fn\n    return fn\n", ALL),
    "registered by name": (
        "deco('name')",
        "def deco(name):\n    def register(fn):\n        REGISTRY[name] = fn\n        return fn\n\n    return register\n",
        ALL,
    ),
    "an object": (
        "deco",
        "class Timer:\n    def __call__(self, fn):\n"
        + indent(around("return fn(*args, **kwargs)").partition("\n")[2], "    ")
        + "\n\ndeco = Timer()\n",
        ("CTX202", "CTX404"),
    ),
    "an operator": (
        "deco('op')",
        """\
class Unregistered:
    def __init__(self, fn):
        self._fn = fn

    def __call__(self, *args, **kwargs):
        return self._fn(*args, **kwargs)


def deco(name, mutates_args=()):
    def decorator(fn):
        try:
            return torch.library.custom_op(f"space::{name}", mutates_args=tuple(mutates_args))(fn)
        except Exception:
            return Unregistered(fn)

    return decorator
""",
        ("CTX202", "CTX404"),
    ),
    "a wrapped operator": (
        "deco()",
        """\
class Tuned:
    pass


def deco(mutates_args=None):
    def inner(fn):
        if isinstance(fn, Tuned):
            tuned = fn

            def fn(*args, **kwargs):
                return tuned(*args, **kwargs)

        operator = torch.library.custom_op(f"space::{fn.__name__}", fn, mutates_args=mutates_args)

        def run(*args, **kwargs):
            return operator(*args, **kwargs)

        return run

    return inner
""",
        ("CTX202", "CTX404"),
    ),
    "copied": ("deco", around("return fn(*[a.clone() for a in args], **kwargs)"), ("CTX202", "CTX201")),
    "one less": ("deco", around("return fn(*args[1:], **kwargs)"), ()),
    "one more": ("deco", around("return fn(None, *args, **kwargs)"), ()),
    "the first result": ("deco", around("return fn(*args, **kwargs)[0]"), ("CTX404",)),
    "another implementation": ("deco", around("other = REGISTRY.get(fn, fn)\nreturn other(*args, **kwargs)"), ()),
    "another function": ("deco", "def deco(fn):\n    return REGISTRY.get(fn.__name__, fn)\n", ()),
    "another one with options": ("deco(1)", "def deco(n):\n    return REGISTRY[n]\n", ()),
    "a circle": ("deco", "def deco(fn):\n    return other(fn)\n\n\ndef other(fn):\n    return deco(fn)\n", ()),
    "a static method": ("deco", "def deco(fn):\n    return staticmethod(fn)\n", ()),
    "bound again": ("deco", "def deco(fn):\n    fn = REGISTRY[fn]\n    return fn\n", ()),
    "one of two, one unknown": (
        "deco",
        "if OFF:\n    def deco(fn):\n        return REGISTRY[fn]\nelse:\n"
        + indent(PLAIN.replace("def guard", "def deco"), "    "),
        (),
    ),
}
"""By their kind: how a decorator is written, its code, and what is found behind it."""


def found(folder: Path, text: str) -> list[str]:
    """The codes that are found in a file."""
    (folder / ".git").mkdir()
    (folder / "main.py").write_text(text, encoding="utf-8")
    results = lint_paths([str(folder / "main.py")], Configuration())
    return [each.code for result in results for each in result.diagnostics]


@pytest.mark.parametrize("kind", DECORATORS)
def test_what_is_behind_a_decorator(tmp_path: Path, kind: str) -> None:
    written, decorator, codes = DECORATORS[kind]
    assert found(tmp_path, f"{IMPORTS}{decorator}\n\n{DECORATED.format(written=written)}") == list(codes)


@pytest.mark.parametrize("kind", DECORATORS)
def test_a_decorator_behind_a_package(tmp_path: Path, kind: str) -> None:
    written, decorator, codes = DECORATORS[kind]
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "__init__.py").write_text("from .decorators import deco\n", encoding="utf-8")
    (tmp_path / "tools" / "decorators.py").write_text(IMPORTS + decorator, encoding="utf-8")
    text = f"import torch\nfrom tools import deco\n\n\n{DECORATED.format(written=written)}"
    assert found(tmp_path, text) == list(codes)


def test_a_method_of_an_object_decorates(tmp_path: Path) -> None:
    method = indent(PLAIN.replace("def guard(fn)", "def guard(self, fn)"), "    ")
    tools = f"{IMPORTS}class Tools:\n{method}\n\ntools = Tools()\n"
    assert found(tmp_path, f"{tools}\n\n{DECORATED.format(written='tools.guard')}") == ["CTX202", "CTX404"]
