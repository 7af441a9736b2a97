"""Function summaries: what functions write, through calls, files, branches and recursion."""

from __future__ import annotations

from itertools import permutations
from random import Random
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from ctxlint.config.configuration import Configuration
from ctxlint.run.pipeline import lint_paths

if TYPE_CHECKING:
    from pathlib import Path

    from ctxlint.diagnostic import Diagnostic

LAYERS = """
import torch
import torch.distributed as dist

{imports}


class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, flag):
        ctx.save_for_backward(x)
        ctx.flag = flag
        return x * 2

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return {returned}, None
"""


INTEGERS = """\
import torch
import {module}
from helpers import cast


class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return cast(x.exp(), {module}.int32)

    @staticmethod
    def backward(ctx, g):
        return g * 2
"""


def found(folder: Path, returned: str, helpers: str, imports: str = "from helpers import *") -> list[Diagnostic]:
    """The findings about a backward that returns something, with these helpers in another file."""
    (folder / ".git").mkdir(exist_ok=True)
    (folder / "layers.py").write_text(LAYERS.format(imports=imports, returned=returned), encoding="utf-8")
    text = "import torch\nimport torch.distributed as dist\n\n" + dedent(helpers)
    (folder / "helpers.py").write_text(text, encoding="utf-8")
    results = lint_paths([str(folder / "layers.py")], Configuration())
    return [each for result in results for each in result.diagnostics]


WRITES = {
    "a method": "def f(t):\n    t.mul_(2)\n    return t\n",
    "an item": "def f(t):\n    t[0] = 1\n    return t\n",
    "a view": "def f(t):\n    t.view(-1)[0] = 1\n    return t\n",
    "two levels": "def g(a):\n    a.add_(1)\n\n\ndef f(t):\n    g(a=t)\n    return t\n",
    "an early return": "def f(t):\n    if dist.get_world_size() == 1:\n        return t\n    dist.all_reduce(t)\n    return t\n",
    "the size of a group": "def f(t, n=None):\n    n = dist.group.WORLD\n    if n.size() > 1:\n        dist.all_reduce(t)\n    return t\n",
    "None given": "def f(t, m=None):\n    if m is None:\n        t.mul_(2)\n    return t\n",
    "itself": "def f(t, n=3):\n    t.mul_(2)\n    return f(t, n - 1) if n else t\n",
    "itself, with each element": "def walk(ts):\n    if isinstance(ts, (list, tuple)):\n        return [walk(t) for t in ts]\n    ts.mul_(2)\n\n\ndef f(t):\n    walk([(t, 1), 2])\n    return t\n",
    "itself, with the rest": "def walk(ts):\n    if len(ts) > 1:\n        walk(ts[1:])\n    else:\n        ts[0].mul_(2)\n\n\ndef f(t):\n    walk([1, 2, 3, t])\n    return t\n",
    "both arms": "def f(t):\n    if t.dim() == 2:\n        t.mul_(2)\n        return t\n    t.add_(2)\n    return t\n",
    "each of two": "if torch.cuda.is_available():\n    def f(t):\n        return t.mul_(2)\nelse:\n    def f(t):\n        return t.add_(2)\n",
    "one that only has types": "import typing\n\nif typing.TYPE_CHECKING:\n    def f(t): ...\nelse:\n    def f(t):\n        return t.mul_(2)\n",
    "one that raises otherwise": "try:\n    import triton\n    def f(t):\n        return t.mul_(2)\nexcept ImportError:\n    def f(t):\n        raise RuntimeError\n",
    "an operator": "@torch.library.custom_op('a::f', mutates_args={'t'})\ndef f(t: torch.Tensor) -> torch.Tensor:\n    return t.mul_(2).clone()\n",
    "a chunk": "def f(t):\n    a, b = t.chunk(2)\n    b.mul_(2)\n    return t\n",
    "an element of a split": "def f(t):\n    torch.split(t, 2)[1:][0].zero_()\n    return t\n",
    "unsafe chunks": "def f(t):\n    a, b = t.unsafe_chunk(2)\n    return a.mul_(2)\n",
    "each row": "def f(t):\n    for row in t.unbind():\n        row.mul_(2)\n    return t\n",
    "parts from another function": "def parts(t):\n    return t.chunk(2)\n\n\ndef f(t):\n    a, b = parts(t)\n    a.mul_(2)\n    return t\n",
    "either view": "def g(a):\n    a.mul_(2)\n\n\ndef f(t):\n    a = t[0] if t.dim() else t[:, 0]\n    g(a)\n    return t\n",
    "a type that no tensor has": "def f(t):\n    if isinstance(t, (list, tuple)):\n        return [f(each) for each in t]\n    t.mul_(2)\n    return t\n",
    "each of a list": "def scale(ts):\n    for t in ts:\n        t.mul_(2)\n\n\ndef f(t):\n    scale([t, torch.ones(2)])\n    return t\n",
    "each of a tuple": "def f(t):\n    for each in (torch.ones(2), t):\n        each *= 2\n    return t\n",
    "what is None": "def f(t):\n    if t is None:\n        return None\n    return t.mul_(2)\n",
}
DOES_NOT = {
    "a copy": "def f(t):\n    t = t.clone()\n    t.mul_(2)\n    return t\n",
    "a flag of the caller's": "def f(t, m=False):\n    if m:\n        t.mul_(2)\n    return t\n",
    "a shape": "def f(t):\n    if t.shape[0] == 3:\n        t.mul_(2)\n    return t\n",
    "a switch": "DEBUG = False\n\n\ndef f(t):\n    if DEBUG:\n        t.mul_(2)\n    return t\n",
    "a circle": "def f(t):\n    t.mul_(2)\n    return g(t)\n\n\ndef g(t):\n    return f(t)\n",
    "itself, with each copy": "def walk(ts):\n    if isinstance(ts, (list, tuple)):\n        return [walk(t.clone()) for t in ts]\n    ts.mul_(2)\n\n\ndef f(t):\n    walk([t])\n    return t\n",
    "itself, with as much": "def walk(ts, n):\n    if n:\n        walk(ts, n - 1)\n    else:\n        ts[0].mul_(2)\n\n\ndef f(t):\n    walk([t], 3)\n    return t\n",
    "decorated": "@torch.library.impl('a::b', 'CPU')\ndef f(t):\n    t.mul_(2)\n    return t\n",
    "two of them": "if torch.cuda.is_available():\n    def f(t):\n        return t.mul_(2)\nelse:\n    def f(t):\n        return t * 2\n",
    "an operator": "@torch.library.custom_op('a::f', mutates_args=())\ndef f(t: torch.Tensor) -> torch.Tensor:\n    return torch.mul(t, 2)\n",
    "two with other parameters": "if torch.cuda.is_available():\n    def f(t):\n        return t.mul_(2)\nelse:\n    def f(t, n):\n        return t.mul_(2)\n",
    "a chunk of a copy": "def f(t):\n    a, b = t.clone().chunk(2)\n    b.mul_(2)\n    return t\n",
    "a view of either": "def g(a):\n    a.mul_(2)\n\n\ndef f(t, u=torch.ones(2)):\n    a = t[0] if t.dim() else u[0]\n    g(a)\n    return t\n",
    "a type that the tensor has": "def f(t):\n    if not isinstance(t, (list, tuple)):\n        return t\n    t.mul_(2)\n",
    "the first of a list": "def f(t):\n    for each in (torch.ones(2), t):\n        each *= 2\n        break\n    return t\n",
    "one of two in a list": "def f(t):\n    for each in (torch.ones(2), t if t.dim() else torch.ones(2)):\n        each *= 2\n    return t\n",
    "copies of a list": "def f(t):\n    for each in (torch.ones(2), t):\n        each = each.clone()\n        each *= 2\n    return t\n",
    "a test of grad mode": "def f(t):\n    if torch.is_grad_enabled():\n        t.mul_(2)\n    return t\n",
}


@pytest.mark.parametrize("name", WRITES)
def test_what_is_written(tmp_path: Path, name: str) -> None:
    assert [each.code for each in found(tmp_path, "f(g)", WRITES[name], "from helpers import f")] == ["CTX404"]


@pytest.mark.parametrize("name", DOES_NOT)
def test_what_is_not(tmp_path: Path, name: str) -> None:
    assert found(tmp_path, "f(g)", DOES_NOT[name], "from helpers import f") == []


EITHER = "try:\n    from helpers import f\nexcept ImportError:\n    from others import f"


@pytest.mark.parametrize(
    ("other", "codes"), [("t.add_(2)", ["CTX404"]), ("t = t + 2", []), ("raise OSError", ["CTX404"])]
)
def test_one_of_two_imports(tmp_path: Path, other: str, codes: list[str]) -> None:
    (tmp_path / "others.py").write_text(f"def f(t):\n    {other}\n    return t\n")
    found_here = found(tmp_path, "f(g)", "def f(t):\n    t.mul_(2)\n    return t\n", EITHER)
    assert [each.code for each in found_here] == codes


OPERATOR = """\
@torch.library.custom_op("a::norm", mutates_args=())
def norm(t: torch.Tensor, eps: float) -> tuple[torch.Tensor, torch.Tensor]:
    out = torch.empty_like(t)
    return out, t.new_empty(t.shape[0])
"""


def test_an_operator_returns_what_its_body_returns(tmp_path: Path) -> None:
    both = found(tmp_path, "*norm(g, 1), g", OPERATOR)
    assert [each.code for each in both] == ["CTX202"]


def test_the_caller_decides(tmp_path: Path) -> None:
    helper = "def f(t, inplace=False):\n    return t.mul_(2) if inplace else t * 2\n"
    for given, codes in {"": [], ", True": ["CTX404"], ", inplace=True": ["CTX404"], ", ctx.flag": []}.items():
        returned = f"f(g{given})"
        assert [each.code for each in found(tmp_path, returned, helper, "from helpers import f")] == codes, given


def test_notes_lead_to_the_statement(tmp_path: Path) -> None:
    helpers = "def deep(b):\n    b.mul_(2)\n\n\ndef f(a):\n    deep(a)\n    return a\n"
    (finding,) = found(tmp_path, "f(g)", helpers, "import helpers as h\nf = h.f")
    places = [(each.path, each.span.start, each.message) for each in finding.related]
    assert places == [
        (str(tmp_path / "helpers.py"), (9, 5), "`f` passes `a` to `deep` here"),
        (str(tmp_path / "helpers.py"), (5, 5), "`deep` modifies `b` with `mul_` here"),
    ]


def test_a_saved_tensor_is_written(tmp_path: Path) -> None:
    (finding,) = found(tmp_path, "f(g, x)", "def f(a, b):\n    b.mul_(a)\n    return b\n", "from helpers import f")
    assert finding.code == "CTX313"
    assert finding.message.startswith("`f` modifies the saved input `x` in place")


def test_many_calls_cost_no_more_than_one(tmp_path: Path) -> None:
    chain = "".join(
        f"def f{n}(t):\n    f{n + 1}(t + 1)\n    f{n + 1}(t * 2)\n    return f{n + 1}(t)\n\n\n" for n in range(14)
    )
    (finding,) = found(tmp_path, "f10(g)", chain + "def f14(t):\n    return t.mul_(2)\n", "from helpers import f10")
    assert finding.code == "CTX404"
    assert len(finding.related) == 5
    assert found(tmp_path, "f0(g)", chain + "def f14(t):\n    return t.mul_(2)\n", "from helpers import f0") == []


CLASS = """
class {name}(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        {calls}
        return g
"""


def reported(folder: Path, helpers: str, **calls: str) -> set[tuple[str, str]]:
    """The codes found in classes whose backward makes some calls, in this order, by class."""
    classes = "".join(CLASS.format(name=name, calls=call) for name, call in calls.items())
    (folder / "a.py").write_text(f"import torch\n\n{helpers}{classes}", encoding="utf-8")
    (result,) = lint_paths([str(folder / "a.py")], Configuration())
    lines = (folder / "a.py").read_text(encoding="utf-8").split("\n")
    found = set()
    for each in result.diagnostics:
        heads = [line for line in lines[: each.span.start.line] if line.startswith("class ")]
        found.add((heads[-1].split("(")[0].removeprefix("class "), each.code))
    return found


CHAIN = "".join(f"def f{n}(t):\n    return f{n + 1}(t)\n\n\n" for n in range(60))


@pytest.mark.parametrize("order", [("f0", "f20", "f50"), ("f50", "f20", "f0"), ("f20", "f0", "f50")])
def test_no_chain_of_calls_is_too_long(tmp_path: Path, order: tuple[str, ...]) -> None:
    calls = {each.upper(): f"{each}(g)" for each in order}
    every = {(name, "CTX404") for name in calls}
    assert reported(tmp_path, CHAIN + "def f60(t):\n    t.mul_(2)\n", **calls) == every


@pytest.mark.parametrize("length", [2, 15, 16, 17, 33, 50])
@pytest.mark.parametrize("first", ["f0", "f1", "f20"])
def test_circles_are_unknown_wherever_they_are_entered(tmp_path: Path, length: int, first: str) -> None:
    circle = "".join(f"def f{n}(t):\n    t.mul_(2)\n    f{(n + 1) % length}(t)\n\n\n" for n in range(length))
    into = "".join(f"def f{n}(t):\n    f0(t)\n\n\n" for n in range(length, 21))
    assert reported(tmp_path, circle + into, First=f"{first}(g)", Zero="f0(g)", Last=f"f{length - 1}(g)") == set()


KINDS = """
def f0(t, mode=None):
    t.mul_(2)
    if mode is None:
        t = f1(t, 1)
    return t


def f1(t, mode=None):
    t.mul_(2)
    return f0(t * 2, mode)


"""


@pytest.mark.parametrize("order", list(permutations(["f0(g, None)", "f0(g, 1)", "f1(g, None)", "f1(g, 1)"])))
def test_a_circle_is_one_of_calls_with_the_same_arguments(tmp_path: Path, order: tuple[str, ...]) -> None:
    calls = {f"C{call[1]}{len(call)}": call for call in order}
    assert reported(tmp_path, KINDS, **calls) == {(name, "CTX404") for name in calls}


def _random_functions(random: Random, number: int) -> list[str]:
    """Functions that call each other with several kinds of arguments."""
    functions = []
    for each in range(number):
        lines = [f"def f{each}(t, mode=None):"]
        for _ in range(random.randint(1, 3)):
            test = random.choice(["", "if mode is None: ", "if mode is not None: "])
            call = f"t = f{random.randrange(number)}({random.choice(['t', 't * 2'])}, {random.choice(['None', '1', 'mode'])})"
            lines.append(f"    {test}{random.choice(['t.mul_(2)', 'return t', call, call, call])}")
        functions.append("\n".join([*lines, "    return t"]) + "\n\n\n")
    return functions


@pytest.mark.parametrize("seed", range(12))
def test_the_order_of_classes_and_functions_does_not_matter(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    functions = _random_functions(random, random.randint(2, 6))
    calls = {f"C{n}{len(mode)}": f"f{n}(g, {mode})" for n in range(len(functions)) for mode in ("None", "1")}
    every = []
    for _ in range(3):
        every.append(reported(tmp_path, "".join(functions), **calls))
        random.shuffle(functions)
        order = random.sample(sorted(calls), len(calls))
        calls = {name: calls[name] for name in order}
    assert every[0] == every[1] == every[2]


COSTLY = """
def f(t, mode):
    if mode is None:
        return t.mul_(2)
{loops}
    return t
"""


@pytest.mark.parametrize("order", [("Costly", "Cheap"), ("Cheap", "Costly")])
def test_what_costs_too_much_elsewhere_is_known_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: tuple[str, str]
) -> None:
    monkeypatch.setattr("ctxlint.model.summaries.summaries._STEPS", 500)
    loops = [f"{'    ' * depth}for n in t:" for depth in range(1, 11)]
    helper = COSTLY.format(loops="\n".join([*loops, f"{'    ' * 11}t = t + n"]))
    calls = {"Costly": "f(g * 2, 1), f(g * 2, 2), f(g * 2, 'a')", "Cheap": "f(g, None)"}
    assert reported(tmp_path, helper, **{name: calls[name] for name in order}) == {("Cheap", "CTX404")}


@pytest.mark.parametrize("module", ["kinds", "lattice", "torch"])
def test_a_name_of_a_module_is_passed_to_another_file(tmp_path: Path, module: str) -> None:
    """Whatever the module is called."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "helpers.py").write_text("def cast(t, dtype):\n    return t.view(dtype)\n", encoding="utf-8")
    (tmp_path / "layers.py").write_text(INTEGERS.format(module=module), encoding="utf-8")
    results = lint_paths([str(tmp_path / "layers.py")], Configuration())
    assert [each.code for result in results for each in result.diagnostics] == ["CTX225"]


_OBJECT = """\
from dataclasses import dataclass, field


class Kept:
    def __init__(self, t):
        self._t = t
        self.flat = t.view(-1)
        self.copy = t.clone()
        self.moved = t.view(-1)
        self.several = [t]
        self.maybe = t.view(-1) if t.dim() else t * 2

    @property
    def t(self):
        return self._t

    @property
    def twice(self):
        return self._t * 2

    def move(self):
        self.moved = self.copy


@dataclass
class Scaled:
    t: torch.Tensor
    flat: torch.Tensor = field(init=False)

    def __post_init__(self):
        self.flat = self.t.view(-1)


@dataclass
class Copied:
    t: torch.Tensor

    def __post_init__(self):
        self.t = self.t.clone()


class Zeroing:
    def __init__(self, t):
        t.zero_()


class Registered:
    def __init__(self, t):
        REGISTRY.append(self)
        self.flat = t.view(-1)
"""
OBJECTS = {
    "Kept(g).t.mul_(2)": ["CTX404"],
    "Kept(g).flat.mul_(2)": ["CTX404"],
    "Kept(g).copy.mul_(2)": [],
    "Kept(g).twice.mul_(2)": [],
    "Kept(g).moved.mul_(2)": [],
    "Kept(g).maybe.mul_(2)": [],
    "Scaled(g).flat.mul_(2)": ["CTX404"],
    "Scaled(g).t.mul_(2)": ["CTX404"],
    "Copied(g).t.mul_(2)": [],
    "(Zeroing(g), g)[1]": ["CTX404"],
    "Registered(g).flat.mul_(2)": [],
}


@pytest.mark.parametrize("returned", OBJECTS)
def test_what_initialises_an_object_and_what_its_properties_return(tmp_path: Path, returned: str) -> None:
    assert [each.code for each in found(tmp_path, returned, _OBJECT)] == OBJECTS[returned]


@pytest.mark.parametrize(
    ("imports", "others", "codes"),
    [
        ("from helpers import comm", "", ["CTX404"]),
        ("from helpers import *", "", ["CTX404"]),
        ("from helpers import *\nfrom others import *", "from helpers import *\n", ["CTX404"]),
        ("from helpers import *\nfrom others import *", "import mpi as comm\n", []),
        ("from others import comm", "import mpi as comm\n", []),
    ],
)
def test_what_another_file_imports_from_torch(tmp_path: Path, imports: str, others: str, codes: list[str]) -> None:
    (tmp_path / "others.py").write_text(others)
    helpers = "import torch.distributed as comm\n"
    assert [each.code for each in found(tmp_path, "(comm.all_reduce(g), g)[1]", helpers, imports)] == codes


_APPLIED = """\
class Reduce(torch.autograd.Function):
    {own}
    @staticmethod
    def forward(ctx, t):
        {body}
        return t
"""
APPLIED = {
    "Reduce.apply(g)": ("pass", "dist.all_reduce(t)", ["CTX404"]),
    "Reduce.apply(g.clone())": ("pass", "dist.all_reduce(t)", []),
    "(Reduce.apply(g))": ("pass", "t = t + 1", []),
    "[Reduce.apply(g)][0]": ("def apply(t): return t.clone()", "dist.all_reduce(t)", []),
}


@pytest.mark.parametrize("returned", APPLIED)
def test_what_an_applied_function_writes(tmp_path: Path, returned: str) -> None:
    own, body, codes = APPLIED[returned]
    helpers = _APPLIED.format(own=own, body=body)
    assert [each.code for each in found(tmp_path, returned, helpers, "from helpers import Reduce")] == codes


_PROMISED = """\
class Group:
    def __init__(self, group):
        self.group = group

    def reduce(self, t):
        dist.all_reduce(t, group=self.group)
        return t

    def copied(self, t):
        return self.reduce(t.clone())


def make(group):
    global GROUP
    GROUP = Group(group)


def group() -> {promised}:
    return GROUP
"""
PROMISED = {
    ("Group", "group().reduce(g)"): ["CTX404"],
    ("'Group'", "group().reduce(g)"): ["CTX404"],
    ("Group", "group().copied(g)"): [],
    ("Other", "group().reduce(g)"): [],
    ("object", "group().reduce(g)"): [],
}


@pytest.mark.parametrize(("promised", "returned"), PROMISED)
def test_the_class_that_a_function_promises(tmp_path: Path, promised: str, returned: str) -> None:
    helpers = _PROMISED.format(promised=promised)
    assert [each.code for each in found(tmp_path, returned, helpers, "from helpers import group")] == PROMISED[
        promised, returned
    ]


def test_an_operator_that_another_file_declares(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").touch()
    (tmp_path / "ops.py").write_text(
        'import torch\n\n\n@torch.library.custom_op("my::f", mutates_args={"t"})\ndef f(t: torch.Tensor) -> None:\n    t.zero_()\n'
    )
    assert [each.code for each in found(tmp_path, "(torch.ops.my.f(g), g)[1]", "")] == ["CTX404"]


_FUSER = """\
import torch

fuser = torch.jit.script


def plain(function):
    return function


def counted(function):
    def inner(*args):
        print(args)
        return function(args[0])
    return inner


def disable():
    global fuser
    fuser = {other}
"""


@pytest.mark.parametrize(("other", "codes"), [("plain", ["CTX404"]), ("torch.compile", ["CTX404"]), ("counted", [])])
def test_a_decorator_that_a_module_chooses(tmp_path: Path, other: str, codes: list[str]) -> None:
    (tmp_path / "fusers.py").write_text(_FUSER.format(other=other))
    helpers = "from fusers import fuser\n\n\n@fuser\ndef f(t):\n    return t.mul_(2)\n"
    assert [each.code for each in found(tmp_path, "f(g)", helpers)] == codes


_YIELDING = """\
def two(t):
    yield t * 2
    yield None


def some(t, n):
    for _ in range(n):
        yield t * 2


def views(t):
    yield t.view(-1)
    yield from (t.clone(), t[0])


def scaled(t):
    yield t.mul_(2)


def maybe(t):
    if t.dim():
        return
    yield t.view(-1)
"""
YIELDING = {
    "*two(g), g": ["CTX202"],
    "*some(g, 2), g": [],
    "[each.mul_(2) for each in views(g)][0]": ["CTX404"],
    "tuple(views(g))[1].mul_(2)": [],
    "tuple(views(g))[2].mul_(2)": ["CTX404"],
    "tuple(scaled(g))[0]": ["CTX404"],
    "(scaled(g), g)[1]": [],
    "tuple(maybe(g))[0].mul_(2)": [],
    "two(g)": ["CTX213"],
}


@pytest.mark.parametrize("returned", YIELDING)
def test_what_a_generator_yields(tmp_path: Path, returned: str) -> None:
    assert [each.code for each in found(tmp_path, returned, _YIELDING)] == YIELDING[returned]
