"""The model holds no reference cycles: the command line runs with the garbage collector switched off."""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from ctxlint.config.settings import Settings
from ctxlint.model.function import FunctionClass
from ctxlint.model.reader import analyse
from ctxlint.run.check_file import check_file
from ctxlint.run.lint_file import lint_file
from ctxlint.source.source import Source
from tests.model.models import HEAD

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CODE = """
N = 2

def pair(g, w):
    return g * w, None

@decorated
def wrapped(g):
    return g

class Base(Function):
    @staticmethod
    def forward(ctx, x, w=None, *rest, flag=False):
        c = ctx
        c.save_for_backward(x, w)
        if flag:
            ctx.flag = flag
        for each in rest:
            try:
                x = x + each
            except ValueError as error:
                raise TypeError from error
            finally:
                del each
        def closure():
            return ctx.flag
        return x, [y for y in rest], lambda: x

    @staticmethod
    @once_differentiable
    def backward(ctx, grad, *others):
        x, w = ctx.saved_tensors
        grads = [None] * 4
        while ctx.needs_input_grad[0]:
            grads[0] = grad * w
        grads.append(None)
        with torch.no_grad():
            if w is not None:
                return pair(grad, w) + (None,) * N
        return tuple(grads)

class Child(Base):
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.x, *rest = inputs
        match rest:
            case [first, *more]:
                ctx.first = first

def factory(n):
    class Inner(Child):
        @staticmethod
        def forward(x, y):
            return x * n
    return Inner.apply

Base.apply(1, 2)
factory(3)(1)
Child.backward = wrapped
"""

BROKEN = CODE + "\nx = = 1\n\ndef half(\n"


@pytest.fixture
def without_collector() -> Iterator[None]:
    gc.freeze()  # what was there before, garbage or not, takes long to traverse
    gc.disable()
    try:
        yield
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
        gc.unfreeze()


def ask_everything(text: str) -> weakref.ref[FunctionClass]:
    """Read a file and compute every lazy property; return a weak reference."""
    file = analyse(Source("example.py", HEAD + text))
    for fn in file.functions:
        fn.span(fn.node)
        for name in dir(FunctionClass):
            value = getattr(fn, name)
            if name in ("outputs_values", "context_calls"):
                assert callable(value)
        for method in fn.methods.values():
            for event in method.facts.events:
                for guard in event.guards:
                    assert isinstance(guard.text, str)
    return weakref.ref(file.functions[0])


@pytest.mark.usefixtures("without_collector")
@pytest.mark.parametrize("text", [CODE, BROKEN], ids=["whole", "broken"])
def test_the_model_is_freed_without_the_collector(text: str) -> None:
    reference = ask_everything(text)
    assert reference() is None
    assert cycles() == {}


STASHES = """
class Stashing(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.x = x
        ctx.z = x * w
        return ctx.z

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.z * ctx.x
"""


@pytest.mark.usefixtures("without_collector")
@pytest.mark.parametrize("text", [CODE, STASHES], ids=["all kinds of code", "stashes"])
def test_what_rules_look_at_is_freed_without_the_collector(text: str) -> None:
    def check() -> weakref.ref[FunctionClass]:
        file = analyse(Source("example.py", HEAD + text))
        assert check_file(file, Settings(select=("ALL",))).diagnostics
        return weakref.ref(file.functions[0])

    check()  # imports what only the first findings need
    gc.collect()
    reference = check()
    assert reference() is None
    assert cycles() == {}


HELPERS = """
class Held:
    def __init__(self, x):
        self.x = x

def hold(x):
    return Held(x) if x.dim() else Held(x * 2)

class Holding(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.held = hold(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.held.x
"""


@pytest.mark.usefixtures("without_collector")
def test_a_project_is_freed_without_the_collector(tmp_path: Path) -> None:
    def lint(*names: str) -> None:
        for name in names:
            path = tmp_path / name / "example.py"
            (path.parent / ".git").mkdir(parents=True, exist_ok=True)
            path.write_text(HEAD + HELPERS)
            assert lint_file(str(path), Settings()).linted

    lint("first", "second")  # imports what only the first file needs
    gc.collect()
    lint("third", "fourth", "fifth")
    assert cycles() == {}


def cycles() -> dict[str, int]:
    """The objects of the project that only the collector frees."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    left = Counter(f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.garbage)
    return {name: count for name, count in left.items() if name.startswith(("ctxlint.", "libcst.", "ast."))}
