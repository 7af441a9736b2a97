"""What a setup.py requires, read without running it."""

from __future__ import annotations

import time
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from ctxlint.config.setup_script import setup_arguments

if TYPE_CHECKING:
    from collections.abc import Callable


def _setup(required: str, before: str = "") -> str:
    return f"from setuptools import setup\n{before}\nsetup(name='x', install_requires={required})\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (_setup("['numpy', 'torch>=2.1']"), ("numpy", "torch>=2.1")),
        (_setup("('torch>=2.1',)"), ("torch>=2.1",)),
        (_setup("'torch>=2.1'"), ("torch>=2.1",)),
        (_setup("'''\n  numpy\n  torch>=2.1\n'''"), ("", "  numpy", "  torch>=2.1")),
        (_setup("REQUIRED", "REQUIRED = ['torch>=2.1']"), ("torch>=2.1",)),
        (_setup("REQUIRED", "REQUIRED: list[str] = ['torch>=2.1']"), ("torch>=2.1",)),
        (_setup("['torch>=' + OLDEST]", "OLDEST = '2.1'"), ("torch>=2.1",)),
        (_setup("[f'torch>={OLDEST},<{NEWEST}']", "OLDEST = '2.1'\nNEWEST = '3'"), ("torch>=2.1,<3",)),
        (_setup("['>='.join(['torch', OLDEST])] + REST", "OLDEST = '2.0'\nREST = ['numpy']"), ("torch>=2.0", "numpy")),
        (_setup("BASE + ['torch>=2.1']", "BASE = ['numpy']"), ("numpy", "torch>=2.1")),
        (_setup("[*BASE, 'torch>=2.1']", "BASE = ['numpy']"), ("numpy", "torch>=2.1")),
        (
            _setup("R", "R = ['numpy']\nR += ['torch>=2.1']\nR.append('tqdm')\nR.extend(['b'])"),
            ("numpy", "torch>=2.1", "tqdm", "b"),
        ),
        (_setup("['torch>=2.1' if OLD else 'torch>=2.5']"), ("torch>=2.1", "torch>=2.5")),
        (_setup("list(BASE)", "BASE = {'torch>=2.1'}"), ("torch>=2.1",)),
        (
            _setup("needed()", "def needed():\n    if x:\n        return ['torch==2.9']\n    return ['torch>=2.1']"),
            ("torch>=2.1", "torch==2.9"),
        ),
        (_setup("DEPS['base']", "DEPS = {'base': ['torch>=2.1']}"), ("torch>=2.1",)),
        ("import setuptools\nif True:\n    setuptools.setup(install_requires=['torch>=2.1'])\n", ("torch>=2.1",)),
        ("ARGS = dict(install_requires=['torch>=2.1'])\nsetup(**ARGS)\n", ("torch>=2.1",)),
        ("setup(**{'install_requires': ['torch>=2.1']})\n", ("torch>=2.1",)),
        (_setup("open('requirements.txt').read().splitlines()"), ()),
        (_setup("REQUIRED", "REQUIRED = REQUIRED"), ()),
        (_setup("A", "A = B + ['torch>=2.1']\nB = A"), ("torch>=2.1",)),
        (_setup("3"), ()),
        ("setup(install_requires=['torch>=2.1'\n", ()),
        ("setup(install_requires=" + "[" * 5000 + "]" * 5000 + ")\n", ()),
        ("\0", ()),
    ],
)
def test_install_requires(text: str, expected: tuple[str, ...]) -> None:
    assert setup_arguments(text) == (expected, (), ())


def test_extras_require() -> None:
    text = "EXTRAS = {'gpu': ['torch>=2.1'], 'docs': ['sphinx']}\nEXTRAS['all'] = ['torch>=2.2']\n"
    assert setup_arguments(f"{text}setup(extras_require=EXTRAS)\n") == ((), ("torch>=2.1", "sphinx", "torch>=2.2"), ())


def test_it_is_not_run() -> None:
    assert setup_arguments("raise SystemExit(3)\nsetup(install_requires=['torch'])\n")[0] == ("torch",)


@pytest.mark.parametrize(
    "text",
    [
        "a0 = 'x' * 10\n" + "".join(f"a{n + 1} = a{n} + a{n}\n" for n in range(200)) + _setup("a200"),
        "a0 = ['x']\n" + "".join(f"a{n + 1} = [*a{n}, *a{n}]\n" for n in range(200)) + _setup("a200"),
        _setup("+".join(["['x']"] * 2_000)),
        _setup("f'" + "{A}" * 2_000 + "'", "A = 'b'\nA = 'c'"),
        _setup("A + A", f"A = {['x' * 900] * 3_000}"),
        "d = {}\n" * 10_000 + "setup(**d)\n" * 10_000,
        "".join(f"{' ' * depth}def f{depth}():\n" for depth in range(90)) + f"{' ' * 90}{'x; ' * 50_000}\n",
        _setup(f"[{', '.join(['f' + repr('{A}' * 50)] * 1_000)}]", "A = ['b', 'c', '']"),
    ],
)
def test_nothing_takes_long(text: str) -> None:
    start = time.process_time()
    setup_arguments(text)
    assert time.process_time() - start < 2


def test_a_long_text_is_not_joined() -> None:
    _, most = memory_of(lambda: setup_arguments(_setup(f"[{'A' * 100_000!r}.join(A)]", f"A = {['x'] * 900}")))
    assert most < 20_000_000


def memory_of(work: Callable[[], object]) -> tuple[object, int]:
    """The result of some work, and the memory in bytes that it needs at most."""
    tracemalloc.start()
    try:
        return work(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_return_is_that_of_the_innermost_function() -> None:
    text = "def outer():\n    def inner():\n        return 'a'\n    return ['torch']\nsetup(install_requires=outer())\n"
    assert setup_arguments(text)[0] == ("torch",)
